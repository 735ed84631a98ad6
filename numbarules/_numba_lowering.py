"""What the runtime needs of `numba.core`, in one place: typing and lowering helpers, and the lowering pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import cgutils
from numba.core import types as _types
from numba.core.compiler_machinery import register_pass
from numba.core.imputils import impl_ret_borrowed, impl_ret_new_ref, lower_constant
from numba.core.lowering import Lower
from numba.core.typed_passes import BaseNativeLowering
from numba.core.typing import Signature, signature
from numba.cpython.listobj import build_list
from numba.extending import intrinsic as _numba_intrinsic
from numba.np.arrayobj import get_itemsize, load_item, make_array, populate_array, store_item

__all__ = [
    "BaseNativeLowering",
    "Builder",
    "Codegen",
    "Context",
    "Intrinsic",
    "Lower",
    "Signature",
    "Typed",
    "Value",
    "build_list",
    "cgutils",
    "get_itemsize",
    "impl_ret_borrowed",
    "impl_ret_new_ref",
    "intrinsic",
    "load_item",
    "lower_constant",
    "make_array",
    "populate_array",
    "register_pass",
    "signature",
    "store_item",
    "types",
]

# llvmlite and numba.core carry no type information.
Builder = Any
Context = Any
Value = Any
Intrinsic = Callable[..., Any]
Codegen = Callable[[Context, Builder, Signature, Any], Value]
Typed = tuple[Signature, Codegen] | None

types: Any = _types


def intrinsic(definition: Callable[..., Typed]) -> Intrinsic:
    """`numba.extending.intrinsic`, typed: `definition` takes the typing context and argument types, and returns the
    signature and the function that generates the code, or None where it does not accept the types."""
    typed: Intrinsic = _numba_intrinsic(definition)
    return typed

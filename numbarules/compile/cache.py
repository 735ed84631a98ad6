"""The disk cache of derivatives: Numba's files, an index of ours.

Numba's own index goes by the bytecode of the function that was compiled, which for a derivative is a stub. Ours goes by
what the code is made from: the primal, all that it calls and refers to, the rules, and the sources of this package.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from .._numba import CompileResultCacheImpl, FunctionCache, NumbaWarning, types
from ..runtime import arena
from .identity import Unidentifiable, digest, engine_digest, rules_digest

__all__ = ["DerivativeCache"]


class _Files(CompileResultCacheImpl):
    """Beside the primal's own cache files, under another name."""

    def __init__(self, function: Any, kind: str) -> None:
        self.kind = kind
        super().__init__(function)

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        return str(super().get_filename_base(f"{fullname}.{self.kind}", abiflags))


class DerivativeCache(FunctionCache):
    """The cache of one derivative: `identity` is what it is the derivative of, and which; `kind` a name for files.

    `loaded` is called back with the argument types that code was found for.

    The index is started anew when the primal's file changes, as Numba does; other changes give other keys.
    """

    def __init__(self, function: Any, kind: str, identity: Any, loaded: Callable[[tuple[Any, ...]], None]) -> None:
        self._impl_class = partial(_Files, kind=kind)
        self._identity = identity
        self._loaded = loaded
        self._digests: dict[Any, str | None] = {}
        super().__init__(function)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled derivative at argument types, None where it is not there."""
        self._digests[sig] = self._digest(sig)
        if self._digests[sig] is None:
            return None
        target_context.refresh()  # brings up Numba's runtime,
        arena.load()  # which this needs, and cached code needs this
        found = super().load_overload(sig, target_context)
        if found is not None:
            self._loaded(tuple(found.signature.args))
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keeps a compiled derivative under the digest that was taken before it was compiled."""
        if self._digests[sig] is not None:
            super().save_overload(sig, data)

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return sig, codegen.magic_tuple(), self._digests[sig]

    def _digest(self, sig: Any) -> str | None:
        if any(isinstance(t, types.Dispatcher) for t in sig):
            return None  # Numba reads such a type back as that of another dispatcher
        try:
            return digest(self._identity, engine_digest(), rules_digest())
        except Unidentifiable as error:
            warnings.warn(f"{self._name} has no cached derivative: it refers to {error}", NumbaWarning, stacklevel=2)
            return None

"""Element and record accesses that tell LLVM what they cannot touch.

Our alias analysis knows which arrays are separate; Numba's lowering does not say so, and LLVM then reloads and refuses
to vectorise. Each access names its scope (an alias class) and the scopes that it never touches, by LLVM's
`alias.scope` and `noalias` metadata.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from numbarules._numba_lowering import (
    Builder,
    Context,
    Intrinsic,
    Signature,
    Typed,
    Value,
    cgutils,
    impl_ret_borrowed,
    intrinsic,
    load_item,
    make_array,
    signature,
    store_item,
    types,
)

__all__ = ["Access", "element_add_in", "element_get_in", "element_set_in", "record_get_in", "record_put_in"]


@dataclass(frozen=True, slots=True)
class Access:
    """`scope` of `total`; `wrap`: negative indices count from the end."""

    scope: int
    total: int
    wrap: bool = False


@contextmanager
def _tagged(builder: Builder, access: Access) -> Iterator[None]:
    """Marks the loads and stores that are made meanwhile, all in one block."""
    start = len(builder.block.instructions)
    yield
    module = builder.module
    domain = module.add_metadata(["numbarules"])
    scopes = [module.add_metadata([f"numbarules.{i}", domain]) for i in range(access.total)]
    own = module.add_metadata([scopes[access.scope]])
    others = module.add_metadata([s for i, s in enumerate(scopes) if i != access.scope])
    for instruction in builder.block.instructions[start:]:
        if instruction.opname in ("load", "store"):
            instruction.set_metadata("alias.scope", own)
            if access.total > 1:
                instruction.set_metadata("noalias", others)


def _pointer(context: Context, builder: Builder, array: Any, access: Access, args: Any) -> tuple[Value, list[Value]]:
    value, packed = args
    unpacked = cgutils.unpack_tuple(builder, packed, len(packed.type.elements))
    struct = make_array(array)(context, builder, value)
    pointer = cgutils.get_item_pointer2(
        context,
        builder,
        data=struct.data,
        shape=cgutils.unpack_tuple(builder, struct.shape, array.ndim),
        strides=cgutils.unpack_tuple(builder, struct.strides, array.ndim),
        layout=array.layout,
        inds=unpacked[: array.ndim],
        wraparound=access.wrap,
        boundscheck=False,
    )
    return pointer, unpacked[array.ndim :]


def _indices(array: Any, *value: Any) -> Any:
    return types.StarArgTuple.from_types((types.intp,) * array.ndim + value)


@cache
def element_get_in(access: Access) -> Intrinsic:
    """The intrinsic `(array, *indices)` that loads an element, without bounds checks."""

    @intrinsic
    def get(typingctx: Any, array: Any, *indices: Any) -> Typed:
        def codegen(context: Context, builder: Builder, sig: Signature, args: Any) -> Value:
            pointer, _ = _pointer(context, builder, array, access, args)
            with _tagged(builder, access):
                return load_item(context, builder, array, pointer)

        return signature(array.dtype, array, _indices(array)), codegen

    return get


@cache
def element_set_in(access: Access) -> Intrinsic:
    """The intrinsic `(array, *indices, value)` that stores an element, without bounds checks."""

    @intrinsic
    def put(typingctx: Any, array: Any, *rest: Any) -> Typed:
        def codegen(context: Context, builder: Builder, sig: Signature, args: Any) -> Value:
            pointer, (value,) = _pointer(context, builder, array, access, args)
            with _tagged(builder, access):
                store_item(context, builder, array, value, pointer)
            return context.get_dummy_value()

        return signature(types.none, array, _indices(array, array.dtype)), codegen

    return put


@cache
def element_add_in(access: Access) -> Intrinsic:
    """The intrinsic `(array, *indices, value)` that adds to an element, without bounds checks."""

    @intrinsic
    def add(typingctx: Any, array: Any, *rest: Any) -> Typed:
        def codegen(context: Context, builder: Builder, sig: Signature, args: Any) -> Value:
            dtype = array.dtype
            pointer, (value,) = _pointer(context, builder, array, access, args)
            with _tagged(builder, access):
                old = load_item(context, builder, array, pointer)
                new = context.get_function(operator.add, signature(dtype, dtype, dtype))(builder, (old, value))
                store_item(context, builder, array, new, pointer)
            return context.get_dummy_value()

        return signature(types.none, array, _indices(array, array.dtype)), codegen

    return add


def _item(context: Context, builder: Builder, numba_type: Any, slab: Value, index: Value) -> Value:
    pointer = builder.bitcast(slab, context.get_data_type(numba_type).as_pointer())
    return builder.gep(pointer, [index], inbounds=True)


@cache
def record_put_in(access: Access) -> Intrinsic:
    """The intrinsic `(slab, index, value)`: `record_put` in a scope."""

    @intrinsic
    def put(typingctx: Any, slab: Any, index: Any, value: Any) -> Typed:
        value = types.unliteral(value)

        def codegen(context: Context, builder: Builder, sig: Signature, args: Any) -> Value:
            slab, index, stored = args
            place = _item(context, builder, value, slab, index)
            with _tagged(builder, access):
                context.pack_value(builder, value, stored, place)
            return context.get_dummy_value()

        return signature(types.none, types.voidptr, types.intp, value), codegen

    return put


@cache
def record_get_in(numba_type: Any, access: Access) -> Intrinsic:
    """The intrinsic `(slab, index)`: `record_get` in a scope."""

    @intrinsic
    def get(typingctx: Any, slab: Any, index: Any) -> Typed:
        def codegen(context: Context, builder: Builder, sig: Signature, args: Any) -> Value:
            place = _item(context, builder, numba_type, *args)
            with _tagged(builder, access):
                value = context.unpack_value(builder, numba_type, place)
            return impl_ret_borrowed(context, builder, numba_type, value)

        return signature(numba_type, types.voidptr, types.intp), codegen

    return get

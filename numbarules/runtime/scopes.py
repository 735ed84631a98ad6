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

from llvmlite import ir

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

from ..analysis.rows import Row

__all__ = ["Access", "element_add_in", "element_get_in", "element_set_in", "record_get_in", "record_put_in", "row_start"]


@dataclass(frozen=True, slots=True)
class Access:
    """`scope` of `total`; `wrap`: negative indices count from the end; `row`: the part of the array, where a loop tells parts apart."""

    scope: int
    total: int
    wrap: bool = False
    row: Row | None = None


@contextmanager
def _tagged(builder: Builder, access: Access) -> Iterator[None]:
    """Marks the loads and stores that are made meanwhile, all in one block."""
    start = len(builder.block.instructions)
    yield
    own, others = _scopes(builder.module, "numbarules", access.scope, access.total)
    if access.row is not None:
        row, other_rows = _row_scopes(builder.module, access.row)
        own, others = own + row, others + other_rows
    scope, noalias = builder.module.add_metadata(own), builder.module.add_metadata(others)
    for instruction in builder.block.instructions[start:]:
        if instruction.opname in ("load", "store"):
            instruction.set_metadata("alias.scope", scope)
            if others:
                instruction.set_metadata("noalias", noalias)


class _Domain(ir.values.MDValue):
    """A domain of scopes that is itself its first operand, and so no other function's.

    LLVM makes one node of equal ones. Where a function is inlined, its scopes must be told from those of the caller, and from those of
    its own other copies: LLVM copies the domains that are distinct, and equal numbers mean nothing to each other then.
    """

    def __init__(self, module: Any, name: str) -> None:
        super().__init__(module, (), name=str(len(module.metadata)))
        self.operands = (self, ir.MetaDataString(module, name))

    def is_called(self, name: str) -> bool:
        """True for the domain of that name."""
        return bool(self.operands[1].string == name)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


def _scopes(module: Any, domain_name: str, scope: int, total: int) -> tuple[list[Any], list[Any]]:
    """A scope of a domain, and the others."""
    domain = next((d for d in module.metadata if isinstance(d, _Domain) and d.is_called(domain_name)), None) or _Domain(module, domain_name)
    scopes = [module.add_metadata([f"{domain_name}.{i}", domain]) for i in range(total)]
    return [scopes[scope]], scopes[:scope] + scopes[scope + 1 :]


def _row_scopes(module: Any, row: Row) -> tuple[list[Any], list[Any]]:
    return _scopes(module, f"numbarules.rows.{row.group}", row.index, row.total)


@cache
def row_start(row: Row) -> Intrinsic:
    """The intrinsic `()` that stands before a loop: what is said of `row` holds from here until it is said again."""

    @intrinsic
    def start(typingctx: Any) -> Typed:
        def codegen(context: Context, builder: Builder, sig: Signature, args: Any) -> Value:
            own, _ = _row_scopes(builder.module, row)
            kind = ir.FunctionType(ir.VoidType(), [ir.MetaDataType()])
            declare = cgutils.get_or_insert_function(builder.module, kind, "llvm.experimental.noalias.scope.decl")
            builder.call(declare, [builder.module.add_metadata(own)])
            return context.get_dummy_value()

        return signature(types.none), codegen

    return start


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

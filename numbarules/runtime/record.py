"""The record: the memory in which a gradient call keeps what its reverse sweep needs.

A slab is cut off the record by moving a pointer, and never moves. Nothing is given back before the record is closed,
and then all at once. A closed record keeps its memory, up to `KEPT_BYTES`, and waits for the next call in one
process-wide slot, because memory touched for the first time is slow. Opening takes what is in the slot by an atomic
exchange, so two threads never hold the same record. Everything here is an intrinsic.

    opened = record_open()
    slab = record_slab(float64)(opened, n)        room for n values
    record_put(slab, i, x)
    x = record_get(float64)(slab, i)
    record_close(opened)
"""

from __future__ import annotations

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
    signature,
    types,
)
from numbarules.errors import RecursionDepthError, message
from numbarules.runtime.arena import KEPT_BYTES, close, depth_pointer, i64, open_record, reserve, retain

__all__ = [
    "KEPT_BYTES",
    "MAX_DEPTH",
    "record_close",
    "record_enter",
    "record_extend",
    "record_from_handle",
    "record_get",
    "record_handle",
    "record_leave",
    "record_offset",
    "record_open",
    "record_put",
    "record_reserve",
    "record_retain",
    "record_slab",
]

MAX_DEPTH = 10_000


@intrinsic
def record_open(typingctx: Any) -> Typed:
    """An empty record: the kept one if no other call holds it, else a new one. Raises MemoryError."""

    def codegen(context: Context, builder: Builder, sig: Signature, args: Any) -> Value:
        return open_record(context, builder)

    return signature(types.voidptr), codegen


@intrinsic
def record_close(typingctx: Any, record: Any) -> Typed:
    """Release what `record` retains and keep its memory for the next call. Null is left alone.

    Every slab and shadow of the record is gone; closing a record twice corrupts memory.
    """

    def codegen(context: Context, builder: Builder, sig: Signature, args: Any) -> Value:
        close(context, builder, args[0])
        return context.get_dummy_value()

    return signature(types.none, types.voidptr), codegen


@intrinsic
def record_reserve(typingctx: Any, record: Any, nbytes: Any) -> Typed:
    """`nbytes` bytes of the record, 16-byte aligned, not initialised. None or fewer give a pointer to nothing.

    Raises MemoryError. Costs a load, an add, a compare and a store while the chunk lasts.
    """

    def codegen(context: Context, builder: Builder, sig: Signature, args: Any) -> Value:
        return reserve(context, builder, *args)

    return signature(types.voidptr, types.voidptr, types.int64), codegen


@cache
def record_slab(numba_type: Any) -> Intrinsic:
    """The intrinsic `(record, n)` that reserves room for `max(n, 0)` values of `numba_type`. Raises MemoryError."""

    @intrinsic
    def slab(typingctx: Any, record: Any, n: Any) -> Typed:
        def codegen(context: Context, builder: Builder, sig: Signature, args: Any) -> Value:
            record, n = args
            itemsize = i64(context.get_abi_sizeof(context.get_data_type(numba_type)))
            count = builder.select(builder.icmp_signed("<", n, i64(0)), i64(0), n)
            product, overflow = cgutils.unpack_tuple(builder, builder.smul_with_overflow(count, itemsize), 2)
            nbytes = builder.select(overflow, i64(2**63 - 1), product)
            return reserve(context, builder, record, nbytes)

        return signature(types.voidptr, types.voidptr, types.int64), codegen

    return slab


@intrinsic
def record_handle(typingctx: Any, address: Any) -> Typed:
    """An address as an integer, for Python to hold."""

    def codegen(context: Context, builder: Builder, sig: Signature, args: Any) -> Value:
        return builder.ptrtoint(args[0], context.get_value_type(types.uintp))

    return signature(types.uintp, types.voidptr), codegen


@intrinsic
def record_from_handle(typingctx: Any, handle: Any) -> Typed:
    """The address that an integer from `record_handle` stands for."""

    def codegen(context: Context, builder: Builder, sig: Signature, args: Any) -> Value:
        return builder.inttoptr(args[0], context.get_value_type(types.voidptr))

    return signature(types.voidptr, types.uintp), codegen


@intrinsic
def record_offset(typingctx: Any, address: Any, distance: Any) -> Typed:
    """The address `distance` bytes behind `address`."""

    def codegen(context: Context, builder: Builder, sig: Signature, args: Any) -> Value:
        return builder.gep(args[0], [args[1]])

    return signature(types.voidptr, types.voidptr, types.int64), codegen


@cache
def record_extend(numba_type: Any) -> Intrinsic:
    """The intrinsic `(record, slab, old, new)` that reserves room for `new` values and copies the first `old` there. Raises MemoryError."""

    @intrinsic
    def extend(typingctx: Any, record: Any, slab: Any, old: Any, new: Any) -> Typed:
        def codegen(context: Context, builder: Builder, sig: Signature, args: Any) -> Value:
            record, slab, old, new = args
            itemsize = i64(context.get_abi_sizeof(context.get_data_type(numba_type)))
            fresh = reserve(context, builder, record, builder.mul(new, itemsize))
            cgutils.raw_memcpy(builder, fresh, slab, builder.mul(old, itemsize), 1)
            return fresh

        return signature(types.voidptr, types.voidptr, types.voidptr, types.int64, types.int64), codegen

    return extend


@intrinsic
def record_put(typingctx: Any, slab: Any, index: Any, value: Any) -> Typed:
    """Store `value` as item `index` of a slab of its type. References are not counted: see `record_retain`."""
    value = types.unliteral(value)

    def codegen(context: Context, builder: Builder, sig: Signature, args: Any) -> Value:
        slab, index, stored = args
        context.pack_value(builder, value, stored, _item(context, builder, value, slab, index))
        return context.get_dummy_value()

    return signature(types.none, types.voidptr, types.intp, value), codegen


@cache
def record_get(numba_type: Any) -> Intrinsic:
    """The intrinsic `(slab, index)` that loads an item. What it refers to must be retained or otherwise alive."""

    @intrinsic
    def get(typingctx: Any, slab: Any, index: Any) -> Typed:
        def codegen(context: Context, builder: Builder, sig: Signature, args: Any) -> Value:
            value = context.unpack_value(builder, numba_type, _item(context, builder, numba_type, *args))
            return impl_ret_borrowed(context, builder, numba_type, value)

        return signature(numba_type, types.voidptr, types.intp), codegen

    return get


@intrinsic
def record_retain(typingctx: Any, record: Any, value: Any) -> Typed:
    """Keep alive what `value` refers to (arrays, tuples of arrays, lists) until the record is closed.

    Costs a call and 16 bytes for each. Raises MemoryError.
    """
    value = types.unliteral(value)

    def codegen(context: Context, builder: Builder, sig: Signature, args: Any) -> Value:
        record, kept = args
        for _, meminfo in context.nrt.get_meminfos(builder, value, kept):
            retain(context, builder, record, meminfo)
        return context.get_dummy_value()

    return signature(types.none, types.voidptr, value), codegen


@intrinsic
def record_enter(typingctx: Any, record: Any) -> Typed:
    """Count one level of recursion. Raises RecursionDepthError at the level after `MAX_DEPTH`."""

    def codegen(context: Context, builder: Builder, sig: Signature, args: Any) -> Value:
        depth = depth_pointer(builder, args[0])
        deeper = builder.add(builder.load(depth), i64(1))
        with builder.if_then(builder.icmp_signed(">", deeper, i64(MAX_DEPTH)), likely=False):
            text = message(
                "the gradient recursed too deep",
                contract=f"a differentiated function calls itself at most {MAX_DEPTH} levels deep",
                instead="write the recursion as a loop",
            )
            context.call_conv.return_user_exc(builder, RecursionDepthError, (text,))
        builder.store(deeper, depth)
        return context.get_dummy_value()

    return signature(types.none, types.voidptr), codegen


@intrinsic
def record_leave(typingctx: Any, record: Any) -> Typed:
    """Count back the level that `record_enter` counted."""

    def codegen(context: Context, builder: Builder, sig: Signature, args: Any) -> Value:
        depth = depth_pointer(builder, args[0])
        builder.store(builder.sub(builder.load(depth), i64(1)), depth)
        return context.get_dummy_value()

    return signature(types.none, types.voidptr), codegen


def _item(context: Context, builder: Builder, numba_type: Any, slab: Value, index: Value) -> Value:
    pointer = builder.bitcast(slab, context.get_data_type(numba_type).as_pointer())
    return builder.gep(pointer, [index], inbounds=True)

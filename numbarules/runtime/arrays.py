"""Arrays in a reverse sweep: shadows and copies, unchecked element access, overlap in memory, division without a check.

Everything here is an intrinsic. Each takes any Numba array: any number of dimensions (0 too), layout and strides.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import cache
from typing import Any

from numba.cpython.setobj import SetInstance
from numba.typed import Dict, List

from numbarules._numba_lowering import (
    Builder,
    Context,
    Intrinsic,
    Signature,
    Typed,
    Value,
    build_list,
    cgutils,
    get_itemsize,
    impl_ret_borrowed,
    impl_ret_new_ref,
    intrinsic,
    load_item,
    make_array,
    populate_array,
    signature,
    store_item,
    types,
)
from numbarules.runtime.arena import i64, reserve

__all__ = [
    "accumulate",
    "element_add",
    "element_get",
    "element_set",
    "empty_container",
    "gradient_like",
    "ieee_divide",
    "overlaps",
    "private_copy",
    "retype",
    "shadow_like",
    "snapshot",
]


# --- new arrays and lists


@cache
def empty_container(t: Any) -> Intrinsic:
    """`() -> t`: an empty list, set or dictionary, reflected or typed."""

    @intrinsic
    def empty_container_(typingctx: Any) -> Typed:
        def codegen(context: Context, builder: Builder, sig: Signature, args: Any) -> Value:
            if isinstance(t, types.DictType):
                key, value = t.key_type, t.value_type
                return context.compile_internal(builder, lambda: Dict.empty(key, value), sig, [])
            if isinstance(t, types.ListType):
                item = t.item_type
                return context.compile_internal(builder, lambda: List.empty_list(item), sig, [])
            if isinstance(t, types.Set):
                return impl_ret_new_ref(context, builder, t, SetInstance.allocate(context, builder, t).value)
            return build_list(context, builder, t, [])

        return signature(t), codegen

    return empty_container_


@intrinsic
def shadow_like(typingctx: Any, record: Any, array: Any) -> Typed:
    """Zeros of the shape and dtype of `array`, in the memory of `record`: gone when it is closed.

    Contiguous, in F order where the type of `array` says F, else in C order; the type is that of `array`, writable. It
    may therefore be typed A, so that it can stand where `array` can. Raises MemoryError.
    """
    if not isinstance(array, types.Array):
        return None
    result = _writable(array)

    def codegen(context: Context, builder: Builder, sig: Signature, args: Any) -> Value:
        record, primal = args
        shape = _shape(context, builder, array, primal)
        nbytes = _nbytes(context, builder, result, shape)
        data = reserve(context, builder, record, nbytes)
        cgutils.memset(builder, data, nbytes, 0)
        # Without a meminfo there are no references to count: NRT_incref and NRT_decref pass over null.
        return _contiguous(context, builder, result, data, shape, meminfo=None)._getvalue()

    return signature(result, types.voidptr, array), codegen


@intrinsic
def snapshot(typingctx: Any, record: Any, array: Any) -> Typed:
    """A copy of a contiguous `array` in the memory of `record`: gone when it is closed. Raises MemoryError."""
    if not isinstance(array, types.Array) or array.layout not in "CF":
        return None
    result = _writable(array)

    def codegen(context: Context, builder: Builder, sig: Signature, args: Any) -> Value:
        record, primal = args
        shape = _shape(context, builder, array, primal)
        nbytes = _nbytes(context, builder, result, shape)
        data = reserve(context, builder, record, nbytes)
        cgutils.raw_memcpy(builder, data, make_array(array)(context, builder, primal).data, nbytes, 1)
        return _contiguous(context, builder, result, data, shape, meminfo=None)._getvalue()

    return signature(result, types.voidptr, array), codegen


@intrinsic
def gradient_like(typingctx: Any, array: Any) -> Typed:
    """Zeros like `array` that belong to the caller, in F order where the type of `array` says F, else in C order."""
    if not isinstance(array, types.Array):
        return None
    result = _writable(array, "F" if array.layout == "F" else "C")

    def codegen(context: Context, builder: Builder, sig: Signature, args: Any) -> Value:
        shape = _shape(context, builder, array, args[0])
        made, nbytes = _allocate(context, builder, result, shape)
        cgutils.memset(builder, made.data, nbytes, 0)
        return impl_ret_new_ref(context, builder, result, made._getvalue())

    return signature(result, array), codegen


@intrinsic
def private_copy(typingctx: Any, array: Any) -> Typed:
    """A copy of `array` that belongs to the caller: contiguous, writable, of the same layout letter."""
    if not isinstance(array, types.Array):
        return None
    result = _writable(array)

    def codegen(context: Context, builder: Builder, sig: Signature, args: Any) -> Value:
        source = make_array(array)(context, builder, args[0])
        shape = _shape(context, builder, array, args[0])
        made, nbytes = _allocate(context, builder, result, shape)
        if array.layout in "CF":
            cgutils.raw_memcpy(builder, made.data, source.data, nbytes, 1)
        else:
            packed = _writable(array, "C")
            with cgutils.loop_nest(builder, shape, i64) as indices:
                item = load_item(context, builder, array, _item_pointer(context, builder, array, source, indices))
                store_item(context, builder, packed, item, _item_pointer(context, builder, packed, made, indices))
        return impl_ret_new_ref(context, builder, result, made._getvalue())

    return signature(result, array), codegen


@cache
def retype(array_type: Any) -> Intrinsic:
    """The intrinsic `(array)` that gives the same array under `array_type`, of equal dtype and dimensions.

    Nothing is checked: who calls it a C array knows that it is contiguous.
    """

    @intrinsic
    def retyped(typingctx: Any, array: Any) -> Typed:
        if not isinstance(array, types.Array) or (array.dtype, array.ndim) != (array_type.dtype, array_type.ndim):
            return None

        def codegen(context: Context, builder: Builder, sig: Signature, args: Any) -> Value:
            return impl_ret_borrowed(context, builder, array_type, args[0])

        return signature(array_type, array), codegen

    return retyped


@intrinsic
def fill(typingctx: Any, array: Any, value: Any) -> Typed:
    """Set each element of `array` to `value`. Numba's own `array[...] = value` compiles a function for its errors first, for seconds."""
    if not isinstance(array, types.Array) or not array.mutable:
        return None

    def codegen(context: Context, builder: Builder, sig: Signature, args: Any) -> Value:
        struct = make_array(array)(context, builder, args[0])
        with cgutils.loop_nest(builder, _shape(context, builder, array, args[0]), i64) as indices:
            store_item(context, builder, array, args[1], _item_pointer(context, builder, array, struct, indices))
        return context.get_dummy_value()

    return signature(types.none, array, array.dtype), codegen


# --- elements


@intrinsic
def element_get(typingctx: Any, array: Any, *indices: Any) -> Typed:
    """`array[indices]`, for as many integers as dimensions, none of them negative or out of bounds: no check."""
    if not _is_element(array, indices):
        return None

    def codegen(context: Context, builder: Builder, sig: Signature, args: Any) -> Value:
        pointer, _ = _element(context, builder, array, *args)
        return load_item(context, builder, array, pointer)

    return signature(array.dtype, array, _integers(indices)), codegen


@intrinsic
def element_set(typingctx: Any, array: Any, *indices_and_value: Any) -> Typed:
    """`array[indices] = value`, without checks. The value comes last and is cast to the dtype."""
    return _store_signature(array, indices_and_value, lambda context, builder, old, value: value)


@intrinsic
def element_add(typingctx: Any, array: Any, *indices_and_value: Any) -> Typed:
    """`array[indices] += value`, without checks. The value comes last and is cast to the dtype."""

    def add(context: Context, builder: Builder, old: Value, value: Value) -> Value:
        dtype = array.dtype
        return context.get_function(operator.add, signature(dtype, dtype, dtype))(builder, (old(), value))

    return _store_signature(array, indices_and_value, add)


def _store_signature(array: Any, indices_and_value: Sequence[Any], new_value: Any) -> Typed:
    """The typing of an intrinsic that stores `new_value(context, builder, load the old value, value)` in an element."""
    *indices, value = indices_and_value or (None,)
    if value is None or not _is_element(array, indices) or not array.mutable:
        return None

    def codegen(context: Context, builder: Builder, sig: Signature, args: Any) -> Value:
        pointer, (value,) = _element(context, builder, array, *args)
        stored = new_value(context, builder, lambda: load_item(context, builder, array, pointer), value)
        store_item(context, builder, array, stored, pointer)
        return context.get_dummy_value()

    return signature(types.none, array, _integers(indices, array.dtype)), codegen


def _is_element(array: Any, indices: Sequence[Any]) -> bool:
    integers = all(isinstance(types.unliteral(index), types.Integer) for index in indices)
    return isinstance(array, types.Array) and len(indices) == array.ndim and integers


def _integers(indices: Sequence[Any], *value: Any) -> Any:
    return types.StarArgTuple.from_types((types.intp,) * len(indices) + value)


def _element(context: Context, builder: Builder, array: Any, value: Value, packed: Value) -> tuple[Value, list[Value]]:
    """The address of an element, and those of the packed arguments that are not its indices."""
    unpacked = cgutils.unpack_tuple(builder, packed, len(packed.type.elements))
    indices, rest = unpacked[: array.ndim], unpacked[array.ndim :]
    struct = make_array(array)(context, builder, value)
    return _item_pointer(context, builder, array, struct, indices), rest


# --- questions and arithmetic


@intrinsic
def overlaps(typingctx: Any, a: Any, b: Any) -> Typed:
    """Whether the address ranges of two arrays, from the lowest byte to the highest, intersect.

    An array without elements overlaps nothing. Interleaved arrays (`x[::2]` and `x[1::2]`) do overlap by this measure.
    """
    if not (isinstance(a, types.Array) and isinstance(b, types.Array)):
        return None

    def codegen(context: Context, builder: Builder, sig: Signature, args: Any) -> Value:
        a_low, a_high = _address_range(context, builder, a, args[0])
        b_low, b_high = _address_range(context, builder, b, args[1])
        low = builder.select(builder.icmp_unsigned(">", a_low, b_low), a_low, b_low)
        high = builder.select(builder.icmp_unsigned("<", a_high, b_high), a_high, b_high)
        return builder.icmp_unsigned("<", low, high)

    return signature(types.boolean, a, b), codegen


def _address_range(context: Context, builder: Builder, array: Any, value: Value) -> tuple[Value, Value]:
    """The address of the lowest byte of an array and of the one past the highest, 0 if it has no elements."""
    struct = make_array(array)(context, builder, value)
    shape = _shape(context, builder, array, value)
    strides = cgutils.unpack_tuple(builder, struct.strides, array.ndim)
    low = builder.ptrtoint(struct.data, i64)
    high = builder.add(low, i64(get_itemsize(context, array)))
    empty = cgutils.false_bit
    for length, stride in zip(shape, strides, strict=True):
        reach = builder.mul(builder.sub(length, i64(1)), stride)
        backwards = builder.icmp_signed("<", stride, i64(0))
        low = builder.add(low, builder.select(backwards, reach, i64(0)))
        high = builder.add(high, builder.select(backwards, i64(0), reach))
        empty = builder.or_(empty, builder.icmp_signed("==", length, i64(0)))
    return low, builder.select(empty, i64(0), high)


@intrinsic
def accumulate(typingctx: Any, total: Any, term: Any) -> Typed:
    """`total + term` of equal float types, free to be reordered with other steps of the sum."""
    if total != term or not isinstance(total, types.Float):
        return None

    def codegen(context: Context, builder: Builder, sig: Signature, args: Any) -> Value:
        return builder.fadd(*args, flags=("reassoc",))

    return signature(total, total, total), codegen


@intrinsic
def ieee_divide(typingctx: Any, a: Any, b: Any) -> Typed:
    """`a / b` of two floats by IEEE rules: infinity or NaN where Python raises ZeroDivisionError."""
    if not (isinstance(a, types.Float) and isinstance(b, types.Float)):
        return None
    result = max(a, b, key=lambda float_type: float_type.bitwidth)

    def codegen(context: Context, builder: Builder, sig: Signature, args: Any) -> Value:
        # A function's fastmath flags are set on all its instructions after lowering.
        return builder.fdiv(*args)

    return signature(result, result, result), codegen


# --- pieces of code


def _writable(array: Any, layout: str | None = None) -> Any:
    """The type of `array`, writable and aligned, of another layout if one is given."""
    return types.Array(array.dtype, array.ndim, layout or array.layout)


def _shape(context: Context, builder: Builder, array: Any, value: Value) -> list[Value]:
    struct = make_array(array)(context, builder, value)
    return list(cgutils.unpack_tuple(builder, struct.shape, array.ndim))


def _nbytes(context: Context, builder: Builder, array: Any, shape: Sequence[Value]) -> Value:
    nbytes = i64(get_itemsize(context, array))
    for length in shape:
        nbytes = builder.mul(nbytes, length)
    return nbytes


def _contiguous(context: Context, builder: Builder, array: Any, data: Value, shape: Sequence[Value], meminfo: Value | None) -> Value:
    """The structure of a contiguous array over `data`: F order where the layout of `array` is F, else C order."""
    itemsize = i64(get_itemsize(context, array))
    f_order = array.layout == "F"
    strides: list[Value] = []
    stride = itemsize
    for length in shape if f_order else reversed(shape):
        strides.append(stride)
        stride = builder.mul(stride, length)
    struct = make_array(array)(context, builder)
    populate_array(
        struct,
        data=builder.bitcast(data, context.get_data_type(array.dtype).as_pointer()),
        shape=shape,
        strides=strides if f_order else strides[::-1],
        itemsize=itemsize,
        meminfo=meminfo,
    )
    return struct


def _allocate(context: Context, builder: Builder, array: Any, shape: Sequence[Value]) -> tuple[Value, Value]:
    """The structure of a new contiguous array that NRT allocates, not initialised, and its size in bytes."""
    nbytes = _nbytes(context, builder, array, shape)
    meminfo = context.nrt.meminfo_alloc_aligned(builder, nbytes, context.get_preferred_array_alignment(array.dtype))
    data = context.nrt.meminfo_data(builder, meminfo)
    return _contiguous(context, builder, array, data, shape, meminfo), nbytes


def _item_pointer(context: Context, builder: Builder, array: Any, struct: Value, indices: Sequence[Value]) -> Value:
    shape = cgutils.unpack_tuple(builder, struct.shape, array.ndim)
    strides = cgutils.unpack_tuple(builder, struct.strides, array.ndim)
    return cgutils.get_item_pointer2(context, builder, struct.data, shape, strides, array.layout, list(indices))

"""The pullback as a value in jitted code: a counted reference to a record, which is closed with the last one."""

from __future__ import annotations

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
    impl_ret_new_ref,
    intrinsic,
    signature,
    types,
)
from numbarules.runtime.arena import close

__all__ = ["frame_of", "own_record"]


def own_record(pullback_type: Any) -> Intrinsic:
    """The intrinsic `(record, frame)`, both integers, that makes a value of `pullback_type`, which closes the record when it dies."""

    @intrinsic
    def own(typingctx: Any, record: Any, frame: Any) -> Typed:
        def codegen(context: Context, builder: Builder, sig: Signature, args: Any) -> Value:
            size = context.get_constant(types.intp, 8)
            owner = context.nrt.meminfo_alloc_dtor_unchecked(builder, size, _destructor(context, builder.module))
            data = context.nrt.meminfo_data(builder, owner)
            builder.store(args[0], builder.bitcast(data, args[0].type.as_pointer()))
            made = cgutils.create_struct_proxy(pullback_type)(context, builder)
            made.owner = owner
            made.frame = args[1]
            return impl_ret_new_ref(context, builder, pullback_type, made._getvalue())

        return signature(pullback_type, types.uintp, types.uintp), codegen

    return own


@intrinsic
def frame_of(typingctx: Any, pullback: Any) -> Typed:
    """The frame of a pullback, as an integer."""

    def codegen(context: Context, builder: Builder, sig: Signature, args: Any) -> Value:
        return cgutils.create_struct_proxy(pullback)(context, builder, value=args[0]).frame

    return signature(types.uintp, pullback), codegen


def _destructor(context: Context, module: Any) -> Any:
    """The function that Numba's runtime calls when the last reference is gone: it closes the record."""
    byte = cgutils.voidptr_t
    kind = ir.FunctionType(ir.VoidType(), [byte, context.get_value_type(types.uintp), byte])
    function = cgutils.get_or_insert_function(module, kind, "numbarules_close_pullback")
    if not function.is_declaration:
        return function
    function.linkage = "linkonce_odr"
    builder = ir.IRBuilder(function.append_basic_block())
    handle = builder.load(builder.bitcast(function.args[0], context.get_value_type(types.uintp).as_pointer()))
    close(context, builder, builder.inttoptr(handle, byte))
    builder.ret_void()
    return function

"""Lowering of the function that owns a record: whichever way it is left, the record is closed.

Numba raises by returning a code from the middle of the function, so no statement of its IR stands on every way out.
`RecordLower` therefore works on the LLVM function: it closes the record before each `ret`, success or failure.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from numbarules._numba_lowering import BaseNativeLowering, Lower, Value, register_pass
from numbarules.runtime.arena import close, is_close

__all__ = ["RecordLower", "RecordNativeLowering"]


class RecordLower(Lower):
    """Lowers a function; closes the record held by the variable `record_variable`, if there is one, at each return.

    A record held by `kept_variable` is closed only at returns by an exception: a caller goes on with it.

    The variable is assigned once, from `record_open()`, and need not be closed. Until then it is null, and closing null
    does nothing; a `record_close` in the function closes it earlier and makes it null again.
    """

    record_variable = "record.0"
    kept_variable = "kept.0"

    def _find_singly_assigned_variable(self) -> None:
        super()._find_singly_assigned_variable()
        # The variable needs a slot in memory: its value is read at returns in every block.
        self._singly_assigned_vars.discard(self.record_variable)
        self._singly_assigned_vars.discard(self.kept_variable)

    def delvar(self, name: str) -> None:
        """Numba deletes a variable, and zeroes its slot, after its last use; the record's must last to the end."""
        if name not in (self.record_variable, self.kept_variable):
            super().delvar(name)

    def lower_function_body(self) -> Any:
        entry = super().lower_function_body()
        for name in (self.record_variable, self.kept_variable):
            slot = self.varmap.get(name)
            if slot is not None:
                self._close_at_returns(slot, kept=name == self.kept_variable)
        return entry

    def _close_at_returns(self, slot: Value, kept: bool) -> None:
        builder = self.builder
        for instruction in [each for block in self.function.blocks for each in block.instructions if is_close(each)]:
            builder.position_after(instruction)
            builder.store(ir.Constant(slot.type.pointee, None), slot)
        for block in self.function.blocks:
            if isinstance(block.terminator, ir.Ret) and not (kept and _succeeds(block.terminator)):
                builder.position_before(block.terminator)
                close(self.context, builder, builder.load(slot))


def _succeeds(ret: Any) -> bool:
    """True for a return with the status "no exception", which is the constant 0."""
    value = ret.operands[0]
    return isinstance(value, ir.Constant) and value.constant == 0


@register_pass(mutates_CFG=True, analysis_only=False)
class RecordNativeLowering(BaseNativeLowering):
    """Numba's native lowering with `RecordLower`: takes the place of `NativeLowering` in a pass manager."""

    _name = "numbarules_record_native_lowering"

    @property
    def lowering_class(self) -> type[RecordLower]:
        return RecordLower

"""Dispatchers whose code depends on rules, gradients and jitted functions that call them: who calls whom, and compiling again.

Numba compiles a caller against its callee's code and never asks again. Here the record that is being made while a dispatcher is compiled
is its own; and a dispatcher that has a record enters it into that of whoever compiles a call of it.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from .._numba import NullCache, NumbaError, compiler_lock, function_being_typed, on_compilation
from ..errors import NumbarulesError, message
from .cache import DerivativeCache
from .lookups import Record, begin, current, end, use
from .owned import existing_memo, memo_of

__all__ = ["internal", "loaded", "refresh", "watch"]

Types = tuple[Any, ...]


def watch(dispatcher: Any, record: Record | None = None) -> None:
    """Lets whoever compiles a call of the dispatcher know its record; `record`: one for all its signatures.

    Attributes of the instance, because a dispatcher may be of Numba's own class.
    """
    records = memo_of(dispatcher, "records")
    if record is not None:
        records[None] = record
    if "get_call_template" in dispatcher.__dict__:
        return
    itself = weakref.ref(dispatcher)

    def get_call_template(args: Any, kws: Any) -> Any:
        callee: Any = itself()
        refresh(callee)
        found = type(callee).get_call_template(callee, args, kws)
        _called(callee, tuple(found[2]))
        return found

    def get_compile_result(signature: Any) -> Any:
        callee: Any = itself()
        refresh(callee)
        found = type(callee).get_compile_result(callee, signature)
        _called(callee, tuple(signature.args))
        return found

    dispatcher.get_call_template = get_call_template
    dispatcher.get_compile_result = get_compile_result


def internal(function: Any) -> Any:
    """Marks a Python function that Numba compiles into its caller, and that has no code of its own."""
    function.__numbarules_internal__ = True
    return function


def loaded(dispatcher: Any, args: Types) -> None:
    """Notes that code came from the disk cache, which does not tell the look-ups: every change of the table resets it."""
    reset = partial(_drop, weakref.ref(dispatcher), args, None)
    memo_of(dispatcher, "records")[args] = Record(dispatcher.py_func.__name__, reset, anything=True)


# ---------------------------------------------------------------------------------------------- who calls whom


def _called(callee: Any, args: Types) -> None:
    """Enters the record of a callee into that of its caller, which is being compiled."""
    records = memo_of(callee, "records")
    record = records.get(args) or records.get(None)
    if record is None:
        return
    use(record)
    caller, typed = current(), function_being_typed()
    if typed is None or getattr(typed, "__numbarules_internal__", False) or typed.__name__.startswith("__numba_parfor"):
        return
    if caller is None or caller.function is None or caller.function() is not typed:
        own = memo_of(typed, "records")
        if None not in own or own[None].dropped:  # dropped: it was named, and has compiled something else since
            own[None] = _fixed(typed)
        own[None].add_use(record)


def _fixed(function: Any) -> Record:
    """The record of what is compiled otherwise than by a dispatcher: a C callback, a ufunc."""
    code = function.__code__
    text = message(
        f"the compiled code of `{function.__qualname__}` holds a derivative that a change of the rules has made old",
        filename=code.co_filename,
        line=code.co_firstlineno,
        contract="gradients, and jitted functions that call them, are compiled again; other compiled code cannot be",
        instead="define it again, after the rules",
    )
    return Record(function.__qualname__, lambda: text)


def _started(dispatcher: Any, args: Types, return_type: Any) -> None:
    records = existing_memo(dispatcher, "records")
    record = records.get(None) if records is not None else None
    if record is None:
        record = Record(dispatcher.py_func.__name__, partial(_drop, weakref.ref(dispatcher), args, return_type))
    record.function = weakref.ref(dispatcher.py_func)
    begin(record)


def _ended(dispatcher: Any, args: Types) -> None:
    record = current()
    assert record is not None
    records = existing_memo(dispatcher, "records")
    if records is None and (record.lookups or record.uses):
        watch(dispatcher)
        records = memo_of(dispatcher, "records")
    if records is not None and records.get(None) is not record:
        records[args] = record
    end()
    if records is not None:
        use(record)  # the call was resolved before the callee had a record


on_compilation(_started, _ended)


# ---------------------------------------------------------------------------------------------- compiling again


@dataclass(slots=True)
class _Pending:
    """What a dispatcher has to compile at its next call. `order`: its signatures as they were; which comes first matters to Numba."""

    order: list[Types]
    frozen: bool
    dropped: dict[Types, Any] = field(default_factory=dict)  # the return types that were asked for


def _drop(itself: weakref.ref[Any], args: Types, return_type: Any) -> str | None:
    """Takes the code for one signature out of a dispatcher, to be compiled again at the next call.

    A call in another thread goes on with the code that it has: its entry point is kept, which Numba's table only borrows.
    """
    dispatcher = itself()
    if dispatcher is None:
        return None
    failed = dispatcher._compiler._failed_cache
    for key in [k for k in failed if k[0] == args]:
        del failed[key]
    if args not in dispatcher.overloads:
        return None
    pending = memo_of(dispatcher, "pending")
    if None not in pending:
        pending[None] = _Pending(list(dispatcher.overloads), not dispatcher._can_compile)
    if args not in pending[None].order:
        pending[None].order.append(args)
    pending[None].dropped[args] = return_type
    dispatcher._compile_for_args = partial(_compile_for_args, itself)
    dispatcher._can_compile = True
    dispatcher._clear()
    code = dispatcher.overloads.pop(args)
    memo_of(dispatcher, "retired").setdefault(None, []).append(code.entry_point)
    dispatcher.targetctx.remove_user_function(code.entry_point)
    return _without_disk_cache(dispatcher)


def _without_disk_cache(dispatcher: Any) -> str | None:
    """Turns off a disk cache that knows nothing of rules and would bring the old code back."""
    if isinstance(dispatcher._cache, NullCache | DerivativeCache):
        return None
    dispatcher._cache = NullCache()
    code = dispatcher.py_func.__code__
    return message(
        f"the cache on disk of `{dispatcher.py_func.__qualname__}` holds a derivative that a change of the rules has made old",
        filename=code.co_filename,
        line=code.co_firstlineno,
        contract="with cache=True Numba loads a caller of a gradient with the code of that gradient, whatever the rules",
        found="it is compiled again in this process, and no longer cached",
        instead="leave cache=True to the gradient, and compile its callers without",
    )


def _compile_for_args(itself: weakref.ref[Any], *args: Any, **kws: Any) -> Any:
    """Stands in for Numba's method until the dispatcher has its code again; then the call is made once more."""
    dispatcher = itself()
    refresh(dispatcher)
    return dispatcher


def refresh(dispatcher: Any) -> None:
    """Compiles what was dropped.

    Signatures that do not compile any more are left to the calls that need them; where no others may be compiled, the error is raised.
    """
    if existing_memo(dispatcher, "pending") is None:
        return
    with compiler_lock:
        memo = memo_of(dispatcher, "pending")
        pending: _Pending | None = memo.pop(None, None)
        if pending is None:
            return
        try:
            _restore(dispatcher, pending)
        except BaseException:
            memo[None] = pending
            dispatcher._clear()
            dispatcher._can_compile = True
            raise
        del dispatcher._compile_for_args


def _restore(dispatcher: Any, pending: _Pending) -> None:
    dispatcher._clear()
    for args in pending.order:
        kept = dispatcher.overloads.get(args)
        if kept is not None:
            dispatcher.add_overload(kept)
            continue
        return_type = pending.dropped[args]
        try:
            dispatcher.compile(args if return_type is None else return_type(*args))
        except (NumbarulesError, NumbaError):
            if pending.frozen:
                raise
    if pending.frozen:
        dispatcher._can_compile = False

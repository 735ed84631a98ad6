"""The ranked table of rules: entries, which of them match a call, and which one wins.

Argument patterns are compared first, then the function: an entry for the function itself before one for what it is an alias of. An entry
for `Any` function has one pattern and matches a call with such an argument anywhere; it beats entries that name the type nowhere and loses
to those that do. The winner is the one entry that no other matching entry beats; its answer is final.
"""

from __future__ import annotations

import itertools
import math
import os
import threading
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import FunctionType, GetSetDescriptorType, MethodDescriptorType
from typing import Any
from typing import Literal as OneOf

from numba import types

from numbarules.errors import AmbiguousRuleError, RuleError, message
from numbarules.rules import patterns as pt
from numbarules.rules.patterns import Tail, covers, matches, meet, show
from numbarules.rules.unreachable import unreachable

__all__ = ["CAPABILITIES", "Entry", "Found", "Origin", "Problem", "ScalarRule", "Table", "function_key", "question", "show_key", "table"]

CAPABILITIES = frozenset({"reverse", "forward", "debug"})
"""What a rule may require of the system that asks: that it differentiates in reverse or in forward mode, that it is in debug mode."""

Kind = OneOf["rule", "opt_out", "non_differentiable", "scalar"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an entry was written; `package` is the top-level module name."""

    package: str
    filename: str
    line: int
    name: str

    def __str__(self) -> str:
        return f"{self.name} ({self.filename}:{self.line})"


@dataclass(frozen=True, slots=True)
class ScalarRule:
    """The payload of a `scalar` entry.

    `partials[i](y, *args)` is dy/d(args[i]); None where that argument is discrete and contributes nothing. Where `guard[i]`, the partial
    may be infinite or NaN, and a cotangent that is exactly zero contributes exactly zero. `at` are sample points inside the domain, each a
    tuple of arguments.
    """

    partials: tuple[Callable[..., Any] | None, ...]
    guard: tuple[bool, ...]
    at: tuple[tuple[Any, ...], ...]
    doc: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One row of the table. The last pattern may be a `Tail`; arguments after the first `required` may be left out.

    The payload is the rule; for an opt-out that comes with an implementation, that; else None.
    """

    function: Any
    patterns: tuple[Any, ...]
    kind: Kind
    payload: Any
    origin: Origin
    required: int
    on_unstable: OneOf["error", "branch"] = "error"
    requires: frozenset[str] = frozenset()  # capabilities, see `CAPABILITIES`
    at: tuple[tuple[Any, ...], ...] = ()

    @property
    def points(self) -> tuple[tuple[Any, ...], ...]:
        """Sample points, each a tuple of arguments at which a test can check the entry."""
        return self.payload.at if self.kind == "scalar" else self.at

    @property
    def any_function(self) -> bool:
        """True for an entry that is about a type, whatever the function."""
        return self.function is Any

    @property
    def first(self) -> types.Type | None:
        """The one type that the first argument of every call has that the entry matches; None where there are several."""
        found = self.patterns[0] if self.patterns and self.required else None
        return found if isinstance(found, types.Type) and not self.any_function else None

    def at_arity(self, n: int) -> tuple[Any, ...] | None:
        """The patterns of a call with n arguments, None where there is no such call."""
        tail = self.patterns[-1] if self.patterns and isinstance(self.patterns[-1], Tail) else None
        fixed = len(self.patterns) - (tail is not None)
        if n < self.required or (n > fixed and tail is None):
            return None
        return self.patterns[:n] if n <= fixed else (*self.patterns[:fixed], *(tail.pattern,) * (n - fixed))  # type: ignore[union-attr]

    def matches(self, argument_types: Sequence[types.Type]) -> bool:
        """True where the entry describes arguments of these types, whatever the function."""
        if self.any_function:
            return any(matches(self.patterns[0], t) for t in argument_types)
        at = self.at_arity(len(argument_types))
        return at is not None and all(map(matches, at, argument_types))

    @property
    def signature(self) -> str:
        """The call that the entry describes, as text."""
        shown = [show(p) + ("=..." if i >= self.required and not isinstance(p, Tail) else "") for i, p in enumerate(self.patterns)]
        return f"{show_key(self.function)}({', '.join(shown)})"

    def __str__(self) -> str:
        needs = f" that requires {' and '.join(sorted(self.requires))}" if self.requires else ""
        return f"{self.kind.replace('_', ' ')} {self.signature}{needs}, {self.origin}"


@dataclass(frozen=True, slots=True)
class Found:
    """The answer of a look-up: the winner, or None; the strongest entry that it beat, or None; and why."""

    entry: Entry | None
    runner_up: Entry | None
    reason: str


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding of `Table.check`."""

    kind: OneOf["ambiguous", "shadows nothing", "unreachable", "no sample points"]
    entries: tuple[Entry, ...]
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


_MEMBERS = (FunctionType, MethodDescriptorType, GetSetDescriptorType, property)


def function_key(function: Any) -> Any:
    """The key of a function: the callable itself, `Any`, or (Numba type class, name) for a method or attribute.

    A method may be written `"Array.sum"` (a class of `numba.types` or a registered Python class), `(SomeClass, "sum")`, or as the method
    or property itself, `np.ndarray.sum`, of a registered Python class.
    """
    if isinstance(function, _MEMBERS) and (method := pt.method_of_class(function)) is not None:
        function = method
    if isinstance(function, str):
        class_name, _, name = function.rpartition(".")
        return _class_by_name(class_name, function), name
    if isinstance(function, tuple) and len(function) == 2 and isinstance(function[1], str):
        owner = pt.as_pattern(function[0])
        if isinstance(owner, types.Type):
            owner = type(owner)
        if not (isinstance(owner, type) and issubclass(owner, types.Type)):
            raise RuleError(
                message(
                    f"{function!r} names no method",
                    contract="a method's key is (a Numba type class or a registered Python class, its name)",
                )
            )
        return owner, function[1]
    if function is not Any and not callable(function):
        raise RuleError(
            message(f"{function!r} cannot have a rule", contract='a rule is for a callable, a method such as "Array.sum", or Any')
        )
    return function


def show_key(key: Any) -> str:
    """The function of an entry, as text."""
    if key is Any:
        return "Any"
    if isinstance(key, tuple):
        return f"{key[0].__name__}.{key[1]}"
    module = getattr(key, "__module__", None) or ("numpy" if type(key).__name__ == "ufunc" else "")
    name = getattr(key, "__qualname__", None) or getattr(key, "__name__", None) or repr(key)
    module = {"_operator": "operator", "builtins": "", "__main__": ""}.get(module, module)
    return f"{module}.{name}" if module else str(name)


@dataclass(slots=True)
class _Group:
    """The live entries of one function; `key` keeps the function alive, so that its id stays its own."""

    key: Any
    entries: dict[Entry, None] = field(default_factory=dict)  # in the order of their coming
    _by_first: dict[types.Type, dict[Entry, None]] = field(default_factory=dict)  # those whose first pattern is one type
    _others: dict[Entry, None] = field(default_factory=dict)

    def add(self, entry: Entry) -> None:
        """Takes an entry in, as the last."""
        self.entries[entry] = self._shelf(entry)[entry] = None

    def remove(self, entry: Entry) -> None:
        """Takes an entry out."""
        del self.entries[entry], self._shelf(entry)[entry]

    def facing(self, first: types.Type | None) -> Iterator[Entry]:
        """The entries that may match a call whose first argument is of this type; all with None."""
        if first is None:
            return iter(self.entries)
        return itertools.chain(self._by_first.get(first, ()), self._others)

    def _shelf(self, entry: Entry) -> dict[Entry, None]:
        first = entry.first
        return self._others if first is None else self._by_first.setdefault(first, {})


class Table:
    """Entries by function. Safe to use from several threads."""

    def __init__(self, capabilities: frozenset[str] = frozenset({"reverse"})) -> None:
        self.capabilities = capabilities
        self._lock = threading.RLock()
        self._groups: dict[Hashable, _Group] = {}
        self._stacks: dict[
            Hashable, list[tuple[Entry, bool]]
        ] = {}  # by function, signature and package: (entry, made in a scope), the last is live
        self._aliases: dict[Hashable, list[Any]] = {}
        self._aliased: dict[Hashable, list[Any]] = {}
        self._memo: dict[Hashable, tuple[Found, Callable[[], Any]]] = {}
        self._listeners: list[Callable[[Entry | None], None]] = []
        self._scopes = threading.local()
        self.version = 0  # counts changes: equal versions, equal answers
        pt._changed.append(self._forget)

    # Look-up

    def lookup(self, function: Any, argument_types: Sequence[types.Type]) -> Found:
        """The entry for a call; an `AmbiguousRuleError` where no entry beats all others. Omitted arguments are not in `argument_types`."""
        memo = self._memo
        asked = question(function, argument_types)
        known = memo.get(asked)
        if known is not None and (known[1]() is function or isinstance(function, tuple | str)):
            return known[0]
        key = function_key(function)
        with self._lock:
            found = self._choose(key, tuple(argument_types))
            if len(memo) > 50_000:
                memo.clear()
            memo[asked] = found, _weakly(function)  # the question is about its id, which another may have later
        return found

    def entries(self, function: Any = None) -> tuple[Entry, ...]:
        """The live entries, all or one function's own."""
        with self._lock:
            if function is not None:
                group = self._groups.get(_identity(function_key(function)))
                return tuple(group.entries) if group else ()
            return tuple(e for g in self._groups.values() for e in g.entries)

    def aliases_of(self, function: Any) -> tuple[Any, ...]:
        """The functions that were made aliases of this one."""
        with self._lock:
            return tuple(self._aliased.get(_identity(function_key(function)), [])[1:])

    def aliases(self) -> tuple[tuple[Any, Any], ...]:
        """All pairs (new, old) of functions of which one is an alias of the other."""
        with self._lock:
            return tuple((targets[0], old) for targets in self._aliases.values() for old in targets[1:])

    def touches(self, entry: Entry, function: Any, argument_types: Sequence[types.Type]) -> bool:
        """True where adding or removing the entry may change the answer of that look-up."""
        return entry.matches(argument_types) and self.serves(entry, function_key(function))

    def serves(self, entry: Entry, key: Any) -> bool:
        """True where the entry is one that calls of a function may get; `key` is the function's `function_key`."""
        return entry.any_function or any(_identity(k) == _identity(entry.function) for k in self._chain(key))

    def served(self, entry: Entry) -> list[Any]:
        """The entry's function and what is an alias of it, directly or not; a method stands for that of all derived classes."""
        keys = [entry.function]
        with self._lock:
            for k in keys:  # grows while it is walked
                keys.extend(u for u in self._aliased.get(_identity(k), [])[1:] if all(_identity(u) != _identity(x) for x in keys))
        return keys

    # Change

    def add(self, entry: Entry, replace: bool = False) -> Entry:
        """Adds an entry. An equal signature in its package needs `replace`; a tie in its package is an `AmbiguousRuleError`."""
        slot = _slot(entry)
        with self._lock:
            stack = self._stacks.setdefault(slot, [])
            old = stack[-1][0] if stack else None
            if old is not None and not replace:
                raise AmbiguousRuleError(
                    message(
                        f"{entry.signature} has an entry already",
                        filename=entry.origin.filename,
                        line=entry.origin.line,
                        contract="within one package, an equal signature needs replace=True",
                        found=str(old),
                        instead="pass replace=True, or narrow the types",
                    )
                )
            if old is None and not entry.any_function:
                try:
                    self._refuse_ties(entry)
                except AmbiguousRuleError:
                    del self._stacks[slot]
                    raise
            journal = self._journal()
            if stack and journal is None and not stack[-1][1]:
                stack.pop()
            stack.append((entry, journal is not None))
            if old is not None:
                self._groups[_identity(entry.function)].remove(old)
            self._groups.setdefault(_identity(entry.function), _Group(entry.function)).add(entry)
            self._memo.clear()
            if journal is not None:
                journal.append(lambda: self.remove(entry))
        self._tell(*([entry] if old is None else [old, entry]))
        return entry

    def remove(self, entry: Entry) -> None:
        """Takes an entry out, if it is there; one that it had replaced in a `rule_scope` is back."""
        slot = _slot(entry)
        with self._lock:
            stack = self._stacks.get(slot, [])
            place = next((i for i, (e, _) in enumerate(stack) if e is entry), None)
            if place is None:
                return
            live = place == len(stack) - 1
            del stack[place]
            back = stack[-1][0] if stack and live else None
            if not stack:
                del self._stacks[slot]
            if not live:
                return
            group = self._groups[_identity(entry.function)]
            group.remove(entry)
            if back is not None:
                group.add(back)
            if not group.entries:
                del self._groups[_identity(entry.function)]
            self._memo.clear()
        self._tell(*([entry] if back is None else [entry, back]))

    def alias(self, new: Any, old: Any) -> None:
        """Lets `new` use the entries of `old`, those made later too; an entry of its own with equal argument patterns comes first."""
        new, old = function_key(new), function_key(old)
        if any(_identity(k) == _identity(new) for k in self._chain(old)):
            raise RuleError(message(f"{show_key(new)} cannot be an alias of {show_key(old)}", contract="aliases do not go in a circle"))
        with self._lock:
            targets = self._aliases.setdefault(_identity(new), [new])  # the first keeps `new` alive
            if any(t is old or t == old for t in targets[1:]):
                return
            targets.append(old)
            sources = self._aliased.setdefault(_identity(old), [old])
            sources.append(new)
            self._memo.clear()
            if (journal := self._journal()) is not None:
                journal.append(lambda: self._unalias(targets, old, sources, new))
        self._tell(None)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What this thread adds inside lasts until the end; what it replaced is back then."""
        self._scopes.stack = [*getattr(self._scopes, "stack", []), []]
        try:
            yield
        finally:
            journal = self._scopes.stack[-1]
            self._scopes.stack = self._scopes.stack[:-1]
            with ExitStack() as undoing:  # to the end, also where a listener raises
                for undo in journal:
                    undoing.callback(undo)

    def subscribe(self, callback: Callable[[Entry | None], None]) -> Callable[[], None]:
        """Calls back with each entry that comes or goes, after the change, and with None where an alias or a category changed, so that any
        look-up may answer otherwise. Returns a function that ends the subscription."""
        self._listeners = [*self._listeners, callback]

        def unsubscribe() -> None:
            self._listeners = [c for c in self._listeners if c is not callback]

        return unsubscribe

    # Report

    def check(self) -> tuple[Problem, ...]:
        """Ambiguities, opt-outs that shadow nothing, entries that no call can reach, and scalar rules without sample points."""
        with self._lock:
            everything = self.entries()
            found = [*self._ambiguities()]
        for e in everything:
            if e.kind == "opt_out" and e.payload is None and not any(
                o.kind != "opt_out" and self._meets(e, o) for o in (everything if e.any_function else self._related(e.function))
            ):
                found.append(Problem("shadows nothing", (e,), f"{e}: no rule matches a call that it opts out"))
            if e.kind in ("scalar", "rule") and not e.points:
                found.append(Problem("no sample points", (e,), f"{e}: nothing checks it"))
            found.extend(Problem("unreachable", (e,), f"{e}: {reason}") for reason in unreachable(e))
            found.extend(Problem("unreachable", (e, *by), f"{e}: shadowed by {'; '.join(map(str, by))}") for by in self._shadowing(e))
            if lacking := e.requires & CAPABILITIES - {"debug"} - self.capabilities:
                found.append(Problem("unreachable", (e,), f"{e}: there is no {' and '.join(sorted(lacking))} mode"))
        return tuple(found)

    # Order

    def _chain(self, key: Any) -> list[Any]:
        """The keys whose entries serve a function, nearest first: its own, a method's base classes, what each is an alias of."""
        chain = [(c, key[1]) for c in key[0].__mro__ if issubclass(c, types.Type)] if isinstance(key, tuple) else [key]
        for k in chain:  # grows while it is walked
            chain.extend(t for t in self._aliases.get(_identity(k), [])[1:] if all(_identity(t) != _identity(c) for c in chain))
        return chain

    def _choose(self, key: Any, argument_types: tuple[types.Type, ...]) -> Found:
        rank: dict[Entry, int] = {}
        first = pt.plain(argument_types[0]) if argument_types else None
        for place, k in enumerate(self._chain(key)):
            group = self._groups.get(_identity(k))
            for e in group.facing(first) if group else ():
                if e.requires <= self.capabilities and e.matches(argument_types):
                    rank[e] = place
        by_type = [e for e in self._any_entries() if e.matches(argument_types)]
        candidates = [*rank, *by_type]
        if not candidates:
            return Found(None, None, f"no entry matches {_call(key, argument_types)}")
        best = _unbeaten(candidates, rank, len(argument_types))
        if best and best[0].any_function:
            best = [_first_of_any(best, argument_types)]
        if len(best) != 1:
            tied = best or _unbeaten(list(rank), rank, len(argument_types))
            raise _ambiguous(key, argument_types, tied[0], tied[1])
        winner = best[0]
        others = _unbeaten([e for e in candidates if e is not winner], rank, len(argument_types))
        runner_up = others[0] if others else None
        return Found(winner, runner_up, _reason(winner, runner_up))

    def _any_entries(self) -> list[Entry]:
        group = self._groups.get(_identity(Any))
        return list(group.entries) if group else []

    def _related(self, key: Any, first: types.Type | None = None) -> list[Entry]:
        """The entries that some call can meet together with one of `key`: of its chain, and of whatever has it in theirs.

        `first`: the type of the first argument of the calls meant.
        """
        keys = self._chain(key)
        users = [key]
        for k in users:
            users.extend(u for u in self._aliased.get(_identity(k), [])[1:] if all(_identity(u) != _identity(x) for x in users))
        if isinstance(key, tuple):
            users.extend(
                g.key for g in self._groups.values() if isinstance(g.key, tuple) and g.key[1] == key[1] and issubclass(g.key[0], key[0])
            )
        groups = {i: g for i in map(_identity, [*keys, *users]) if (g := self._groups.get(i)) is not None}
        return [e for g in groups.values() for e in g.facing(first)]

    def _refuse_ties(self, entry: Entry) -> None:
        related = self._related(entry.function, entry.first)
        for other in related:
            if other.origin.package != entry.origin.package:
                continue
            same = _identity(other.function) == _identity(entry.function)
            if (settling := _tie(entry, other, related, same_function=same)) is not None:
                raise AmbiguousRuleError(
                    message(
                        f"two rules for {show_key(entry.function)} match the same calls, and neither is more specific",
                        filename=entry.origin.filename,
                        line=entry.origin.line,
                        contract="within one package, a tie is an error when it is written",
                        found=f"{entry}; {other}",
                        instead=f"register an entry for {_settle(entry.function, settling)} first",
                    )
                )

    def _ambiguities(self) -> Iterator[Problem]:
        place = {e: i for i, e in enumerate(self.entries())}
        for group in list(self._groups.values()):
            if group.key is Any:
                continue
            related = self._related(group.key)
            serving = {_identity(k) for k in self._chain(group.key)}
            for o in [o for o in related if _identity(o.function) in serving]:
                own = _identity(o.function) == _identity(group.key)
                for e in group.entries:
                    if (not own or place[o] < place[e]) and (settling := _tie(e, o, related, same_function=own)) is not None:
                        yield Problem("ambiguous", (o, e), f"{o}; {e}: settled by an entry for {_settle(e.function, settling)}")

    def _shadowing(self, e: Entry) -> Iterator[list[Entry]]:
        """The entries that together win every call which an entry of alternatives describes, if they do."""
        alternatives = [tuple(p.members) if isinstance(p, pt.Union) else (p,) for p in e.patterns if not isinstance(p, Tail)]
        if e.any_function or len(alternatives) != len(e.patterns) or math.prod(map(len, alternatives)) not in range(2, 65):
            return
        own = [o for o in self.entries(e.function) if o is not e and o.required <= e.required and _compare(o, e, len(e.patterns)) == -1]
        winners: list[Entry] = []
        for signature in itertools.product(*alternatives):
            by = next((o for o in own if all(map(covers, o.at_arity(len(signature)) or (), signature))), None)
            if by is None:
                return
            winners.append(by)
        yield list(dict.fromkeys(winners))

    def _meets(self, opt_out: Entry, other: Entry) -> bool:
        if opt_out.any_function:
            return not other.any_function and any(
                meet(opt_out.patterns[0], p.pattern if isinstance(p, Tail) else p) is not pt._NOTHING for p in other.patterns
            )
        return any(_meet_at(opt_out, other, n) is not None for n in _arities(opt_out, other))

    # Bookkeeping

    def _journal(self) -> list[Callable[[], None]] | None:
        stack = getattr(self._scopes, "stack", [])
        return stack[-1] if stack else None

    def _unalias(self, targets: list[Any], old: Any, sources: list[Any], new: Any) -> None:
        with self._lock:
            targets[1:] = [t for t in targets[1:] if _identity(t) != _identity(old)]
            sources[1:] = [s for s in sources[1:] if _identity(s) != _identity(new)]
            self._memo.clear()
        self._tell(None)

    def _forget(self) -> None:
        with self._lock:
            self._memo.clear()
        self._tell(None)

    def _tell(self, *entries: Entry | None) -> None:
        self.version += 1
        for callback in self._listeners:
            for entry in entries:
                callback(entry)


def question(function: Any, argument_types: Sequence[types.Type]) -> Hashable:
    """A look-up as a dictionary's key, good as long as the function lives."""
    return (_identity(function), *argument_types)


def _weakly(function: Any) -> Callable[[], Any]:
    """A weak reference; a strong one to what allows none, which is code of NumPy or a pair that names a method."""
    try:
        return weakref.ref(function)
    except TypeError:
        return lambda: function


def _identity(key: Any) -> Hashable:
    if isinstance(key, tuple):
        return tuple(k if isinstance(k, str) else id(k) for k in key)
    return key if isinstance(key, str) else id(key)


def _slot(entry: Entry) -> Hashable:
    return _identity(entry.function), entry.patterns, entry.required, entry.requires, entry.origin.package


def _class_by_name(owner: str, written: str) -> Any:
    for python_class, numba_type in list(pt._CLASSES.items()):
        if python_class.__name__ == owner:
            return numba_type if isinstance(numba_type, type) else type(numba_type)
    found = getattr(types, owner, None) if owner else None
    if not (isinstance(found, type) and issubclass(found, types.Type)):
        raise RuleError(
            message(
                f'"{written}" names no method',
                contract='a method is written "Class.name", with a class of numba.types or a registered Python class',
                instead='write (TheNumbaTypeClass, "name")',
            )
        )
    return found


def _arities(a: Entry, b: Entry) -> list[int]:
    longest = max(len(a.patterns), len(b.patterns)) + 1
    return [n for n in range(longest + 1) if a.at_arity(n) is not None and b.at_arity(n) is not None]


def _compare(a: Entry, b: Entry, n: int) -> int | None:
    """-1 where a is more specific for calls with n arguments, 1 where b is, 0 where they say the same, None where neither."""
    pa, pb = a.at_arity(n), b.at_arity(n)
    if pa is None or pb is None:
        return None
    a_in_b, b_in_a = all(map(covers, pb, pa)), all(map(covers, pa, pb))
    if a_in_b != b_in_a:
        return -1 if a_in_b else 1
    if not a_in_b:
        return None
    few_a, few_b = _arity_range(a), _arity_range(b)
    if few_a == few_b:
        return 0
    if few_b[0] <= few_a[0] and few_a[1] <= few_b[1]:
        return -1
    return 1 if few_a[0] <= few_b[0] and few_b[1] <= few_a[1] else None


def _arity_range(e: Entry) -> tuple[int, float]:
    return e.required, float("inf") if e.patterns and isinstance(e.patterns[-1], Tail) else len(e.patterns)


def _beats(a: Entry, b: Entry, rank: dict[Entry, int], n: int) -> bool:
    if a.any_function or b.any_function:
        if a.any_function and b.any_function:
            return False
        return not _names(b, a.patterns[0]) if a.any_function else _names(a, b.patterns[0])
    order = _compare(a, b, n)
    return order == -1 or (order == 0 and (rank[a] < rank[b] or (rank[a] == rank[b] and a.requires > b.requires)))


def _names(entry: Entry, pattern: Any) -> bool:
    """True where an entry names a type: some argument's pattern, or one alternative of it, is that type or narrower."""
    written = [p.pattern if isinstance(p, Tail) else p for p in entry.patterns]
    return any(covers(pattern, alternative) for p in written for alternative in (p.members if isinstance(p, pt.Union) else (p,)))


def _unbeaten(candidates: list[Entry], rank: dict[Entry, int], n: int) -> list[Entry]:
    if len(candidates) <= 16:
        return [e for e in candidates if not any(o is not e and _beats(o, e, rank, n) for o in candidates)]
    strongest = candidates[:1]  # many: one pass drops what the strongest so far beat, so that the full comparison is of few
    for e in candidates[1:]:
        if not any(_beats(o, e, rank, n) for o in strongest):
            strongest = [o for o in strongest if not _beats(e, o, rank, n)] + [e]
    return [e for e in strongest if not any(o is not e and _beats(o, e, rank, n) for o in candidates)]


def _first_of_any(entries: list[Entry], argument_types: tuple[types.Type, ...]) -> Entry:
    """Of entries for `Any` function: the narrowest type, then the leftmost argument, then the oldest entry. They never tie."""
    narrowest = [e for e in entries if not any(pt.more_specific(o.patterns[0], e.patterns[0]) for o in entries)]
    return min(narrowest, key=lambda e: next(i for i, t in enumerate(argument_types) if matches(e.patterns[0], t)))


def _meet_at(a: Entry, b: Entry, n: int) -> tuple[Any, ...] | None:
    met = []
    for p, q in zip(a.at_arity(n) or (), b.at_arity(n) or (), strict=True):
        if (m := meet(p, q)) is pt._NOTHING:
            return None
        met.append(m)
    return tuple(met)


def _tie(a: Entry, b: Entry, others: list[Entry], *, same_function: bool) -> tuple[Any, ...] | None:
    """The signature that would settle a tie of two entries, None where there is none to settle."""
    if any(map(pt.apart, a.patterns[: a.required], b.patterns[: b.required])):
        return None
    for n in _arities(a, b):
        if (met := _meet_at(a, b, n)) is None:
            continue
        order = _compare(a, b, n)
        if order in (-1, 1) or (order == 0 and (not same_function or a.requires < b.requires or b.requires < a.requires)):
            continue
        settled = (
            c is not a
            and c is not b
            and (at := c.at_arity(n)) is not None
            and all(map(covers, at, met))
            and _compare(c, a, n) == -1
            and _compare(c, b, n) == -1
            for c in others
        )
        if not any(settled):
            return met
    return None


def _ambiguous(key: Any, argument_types: tuple[types.Type, ...], a: Entry, b: Entry) -> AmbiguousRuleError:
    n = len(argument_types)
    met = _meet_at(a, b, n) if _compare(a, b, n) is None else None
    return AmbiguousRuleError(
        message(
            f"{_call(key, argument_types)} matches two rules, and neither is more specific",
            filename=a.origin.filename,
            line=a.origin.line,
            contract="the most specific entry wins, by its argument patterns and then by its function",
            found=f"{a}; {b}",
            instead=f"register an entry for {_settle(key, argument_types if met is None else met)}",
        )
    )


def _settle(key: Any, signature: Sequence[Any]) -> str:
    return f"{show_key(key)}({', '.join(map(show, signature))})"


def _call(key: Any, argument_types: Sequence[types.Type]) -> str:
    return f"{show_key(key)}({', '.join(map(str, argument_types))})"


def _reason(winner: Entry, runner_up: Entry | None) -> str:
    if runner_up is None:
        return f"{winner.signature} is the only entry that matches"
    if winner.any_function:
        if runner_up.any_function:
            return f"entries for any function never tie: {winner.signature} comes first"
        return f"{winner.signature} beats {runner_up.signature}, which does not name {show(winner.patterns[0])}"
    if runner_up.any_function:
        return f"{winner.signature} names {show(runner_up.patterns[0])}, so that it beats {runner_up.signature}"
    if winner.requires > runner_up.requires and winner.patterns == runner_up.patterns:
        return f"{winner.signature} requires {' and '.join(sorted(winner.requires - runner_up.requires))}, which there is"
    return f"{winner.signature} is more specific than {runner_up.signature}"


table = Table(frozenset({"reverse", "debug"} if os.environ.get("NUMBARULES_DEBUG", "0") not in ("", "0") else {"reverse"}))

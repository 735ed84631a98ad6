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
from typing import Any

from numba import types

from numbarules.errors import AmbiguousRuleError, RuleError, message
from numbarules.rules import patterns as pt
from numbarules.rules.entries import (
    CAPABILITIES,
    Entry,
    Found,
    Kind,
    Origin,
    Problem,
    ScalarRule,
    function_key,
    identity,
    question,
    show_key,
)
from numbarules.rules.order import ambiguous, arities, compare, first_of_any, meet_at, reason, settle, show_call, tie, unbeaten
from numbarules.rules.patterns import Tail, covers, meet
from numbarules.rules.unreachable import unreachable

__all__ = [
    "CAPABILITIES",
    "Entry",
    "Found",
    "Kind",
    "Origin",
    "Problem",
    "ScalarRule",
    "Table",
    "function_key",
    "question",
    "show_key",
    "table",
]


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
                group = self._groups.get(identity(function_key(function)))
                return tuple(group.entries) if group else ()
            return tuple(e for g in self._groups.values() for e in g.entries)

    def aliases_of(self, function: Any) -> tuple[Any, ...]:
        """The functions that were made aliases of this one."""
        with self._lock:
            return tuple(self._aliased.get(identity(function_key(function)), [])[1:])

    def aliases(self) -> tuple[tuple[Any, Any], ...]:
        """All pairs (new, old) of functions of which one is an alias of the other."""
        with self._lock:
            return tuple((targets[0], old) for targets in self._aliases.values() for old in targets[1:])

    def touches(self, entry: Entry, function: Any, argument_types: Sequence[types.Type]) -> bool:
        """True where adding or removing the entry may change the answer of that look-up."""
        return entry.matches(argument_types) and self.serves(entry, function_key(function))

    def serves(self, entry: Entry, key: Any) -> bool:
        """True where the entry is one that calls of a function may get; `key` is the function's `function_key`."""
        return entry.any_function or any(identity(k) == identity(entry.function) for k in self._chain(key))

    def served(self, entry: Entry) -> list[Any]:
        """The entry's function and what is an alias of it, directly or not; a method stands for that of all derived classes."""
        keys = [entry.function]
        with self._lock:
            for k in keys:  # grows while it is walked
                keys.extend(u for u in self._aliased.get(identity(k), [])[1:] if all(identity(u) != identity(x) for x in keys))
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
                self._groups[identity(entry.function)].remove(old)
            self._groups.setdefault(identity(entry.function), _Group(entry.function)).add(entry)
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
            group = self._groups[identity(entry.function)]
            group.remove(entry)
            if back is not None:
                group.add(back)
            if not group.entries:
                del self._groups[identity(entry.function)]
            self._memo.clear()
        self._tell(*([entry] if back is None else [entry, back]))

    def ranked(self, function: Any, argument_types: tuple[types.Type, ...]) -> Iterator[Entry]:
        """The entries that match a call of these types, each before those that it beats."""
        with self._lock:
            rank, candidates = self._candidates(function_key(function), argument_types)
        while candidates:
            for e in unbeaten(candidates, rank, len(argument_types)) or list(candidates):
                candidates.remove(e)
                yield e

    def alias(self, new: Any, old: Any) -> None:
        """Lets `new` use the entries of `old`, those made later too; an entry of its own with equal argument patterns comes first."""
        new, old = function_key(new), function_key(old)
        if any(identity(k) == identity(new) for k in self._chain(old)):
            raise RuleError(message(f"{show_key(new)} cannot be an alias of {show_key(old)}", contract="aliases do not go in a circle"))
        with self._lock:
            targets = self._aliases.setdefault(identity(new), [new])  # the first keeps `new` alive
            if any(t is old or t == old for t in targets[1:]):
                return
            targets.append(old)
            sources = self._aliased.setdefault(identity(old), [old])
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
            if (
                e.kind == "opt_out"
                and e.payload is None
                and not any(
                    o.kind != "opt_out" and self._meets(e, o) for o in (everything if e.any_function else self._related(e.function))
                )
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
            chain.extend(t for t in self._aliases.get(identity(k), [])[1:] if all(identity(t) != identity(c) for c in chain))
        return chain

    def _candidates(self, key: Any, argument_types: tuple[types.Type, ...]) -> tuple[dict[Entry, int], list[Entry]]:
        """The entries that match a call; and those of functions, by how near the function is to the one that is called."""
        rank: dict[Entry, int] = {}
        first = pt.plain(argument_types[0]) if argument_types else None
        for place, k in enumerate(self._chain(key)):
            group = self._groups.get(identity(k))
            for e in group.facing(first) if group else ():
                if e.requires <= self.capabilities and e.matches(argument_types):
                    rank[e] = place
        return rank, [*rank, *(e for e in self._any_entries() if e.matches(argument_types))]

    def _choose(self, key: Any, argument_types: tuple[types.Type, ...]) -> Found:
        rank, candidates = self._candidates(key, argument_types)
        if not candidates:
            return Found(None, None, f"no entry matches {show_call(key, argument_types)}")
        best = unbeaten(candidates, rank, len(argument_types))
        if best and best[0].any_function:
            best = [first_of_any(best, argument_types)]
        if len(best) != 1:
            tied = best or unbeaten(list(rank), rank, len(argument_types))
            raise ambiguous(key, argument_types, tied[0], tied[1])
        winner = best[0]
        others = unbeaten([e for e in candidates if e is not winner], rank, len(argument_types))
        runner_up = others[0] if others else None
        return Found(winner, runner_up, reason(winner, runner_up))

    def _any_entries(self) -> list[Entry]:
        group = self._groups.get(identity(Any))
        return list(group.entries) if group else []

    def _related(self, key: Any, first: types.Type | None = None) -> list[Entry]:
        """The entries that some call can meet together with one of `key`: of its chain, and of whatever has it in theirs.

        `first`: the type of the first argument of the calls meant.
        """
        keys = self._chain(key)
        users = [key]
        for k in users:
            users.extend(u for u in self._aliased.get(identity(k), [])[1:] if all(identity(u) != identity(x) for x in users))
        if isinstance(key, tuple):
            users.extend(
                g.key for g in self._groups.values() if isinstance(g.key, tuple) and g.key[1] == key[1] and issubclass(g.key[0], key[0])
            )
        groups = {i: g for i in map(identity, [*keys, *users]) if (g := self._groups.get(i)) is not None}
        return [e for g in groups.values() for e in g.facing(first)]

    def _refuse_ties(self, entry: Entry) -> None:
        related = self._related(entry.function, entry.first)
        for other in related:
            if other.origin.package != entry.origin.package:
                continue
            same = identity(other.function) == identity(entry.function)
            if (settling := tie(entry, other, related, same_function=same)) is not None:
                raise AmbiguousRuleError(
                    message(
                        f"two rules for {show_key(entry.function)} match the same calls, and neither is more specific",
                        filename=entry.origin.filename,
                        line=entry.origin.line,
                        contract="within one package, a tie is an error when it is written",
                        found=f"{entry}; {other}",
                        instead=f"register an entry for {settle(entry.function, settling)} first",
                    )
                )

    def _ambiguities(self) -> Iterator[Problem]:
        place = {e: i for i, e in enumerate(self.entries())}
        for group in list(self._groups.values()):
            if group.key is Any:
                continue
            related = self._related(group.key)
            serving = {identity(k) for k in self._chain(group.key)}
            for o in [o for o in related if identity(o.function) in serving]:
                own = identity(o.function) == identity(group.key)
                for e in group.entries:
                    if (not own or place[o] < place[e]) and (settling := tie(e, o, related, same_function=own)) is not None:
                        yield Problem("ambiguous", (o, e), f"{o}; {e}: settled by an entry for {settle(e.function, settling)}")

    def _shadowing(self, e: Entry) -> Iterator[list[Entry]]:
        """The entries that together win every call which an entry of alternatives describes, if they do."""
        alternatives = [tuple(p.members) if isinstance(p, pt.Union) else (p,) for p in e.patterns if not isinstance(p, Tail)]
        if e.any_function or len(alternatives) != len(e.patterns) or math.prod(map(len, alternatives)) not in range(2, 65):
            return
        own = [o for o in self.entries(e.function) if o is not e and o.required <= e.required and compare(o, e, len(e.patterns)) == -1]
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
        return any(meet_at(opt_out, other, n) is not None for n in arities(opt_out, other))

    # Bookkeeping

    def _journal(self) -> list[Callable[[], None]] | None:
        stack = getattr(self._scopes, "stack", [])
        return stack[-1] if stack else None

    def _unalias(self, targets: list[Any], old: Any, sources: list[Any], new: Any) -> None:
        with self._lock:
            targets[1:] = [t for t in targets[1:] if identity(t) != identity(old)]
            sources[1:] = [s for s in sources[1:] if identity(s) != identity(new)]
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


def _weakly(function: Any) -> Callable[[], Any]:
    """A weak reference; a strong one to what allows none, which is code of NumPy or a pair that names a method."""
    try:
        return weakref.ref(function)
    except TypeError:
        return lambda: function


def _slot(entry: Entry) -> Hashable:
    return identity(entry.function), entry.patterns, entry.required, entry.requires, entry.origin.package


table = Table(frozenset({"reverse", "debug"} if os.environ.get("NUMBARULES_DEBUG", "0") not in ("", "0") else {"reverse"}))

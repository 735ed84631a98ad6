"""Derivatives as dispatchers: stubs with the primal's parameters, whose code is made per signature."""

from __future__ import annotations

import inspect
import operator
import weakref
from collections.abc import Callable, Iterable
from functools import cached_property, partial
from types import FunctionType
from typing import Any, Literal

from .._numba import (
    FULL_TRACEBACKS,
    CPUDispatcher,
    DifferentiableType,
    Dispatcher,
    ForceLiteralArg,
    GeneratedCompiler,
    NullCache,
    NumbaError,
    eager,
    types,
)
from ..emit.emit import Generated, emit
from ..emit.stubs import make_stub
from ..errors import DifferentiationError, NumbarulesError, message
from .cache import DerivativeCache
from .callers import loaded, refresh, watch
from .capture import capture, forget, options_of, python_function
from .gradient import Request, gradient_function
from .invalidation import invalidate, made_from
from .lookups import Record, reached
from .owned import memo_of
from .rules import is_derivative

__all__ = ["DifferentiableDispatcher", "GradientDispatcher", "argument_numbers", "differentiable_function", "gradient_dispatcher"]

Kind = Literal["grad", "value_and_grad"]
Argnums = int | tuple[int, ...]

# Options of `njit` that say how code runs; those that say what it means are in `options_of`.
_RUNNING = ("nogil",)


class GradientDispatcher(CPUDispatcher):
    """The dispatcher of a gradient. `primal` is the function or dispatcher that it was made of."""

    def __init__(self, primal: Any, kind: Kind, argnums: Argnums) -> None:
        self.primal = primal
        self.kind = kind
        self.argnums = argnums
        function = python_function(primal)
        options = options_of(primal)
        self._request = Request(argnums, kind == "value_and_grad", tuple(sorted(options.items())))
        itself = weakref.ref(self)  # the stub is held by compiled code, which Numba holds until the dispatcher goes

        def generate(func_id: Any, args: tuple[Any, ...]) -> Generated:
            return itself()._generate(func_id, args)  # type: ignore[union-attr]

        name = f"{function.__name__}_{kind}"
        doc = f"The {'value and gradient' if kind == 'value_and_grad' else 'gradient'} of `{function.__qualname__}`."
        stub = make_stub(name, list(inspect.signature(function).parameters.values()), generate, function.__module__, doc)
        given = primal.targetoptions if isinstance(primal, Dispatcher) else {}
        stub_options = {k: v for k, v in options.items() if k != "locals"} | {k: given[k] for k in _RUNNING if k in given}
        super().__init__(stub, {}, {"nopython": True, **stub_options}, GeneratedCompiler)
        watch(self)
        if is_cached(primal):
            self.enable_caching()

    def _generate(self, func_id: Any, args: tuple[Any, ...]) -> Generated:
        function = python_function(self.primal)
        check_compiles(function, args, dict(self._request.options))
        for i in self._request.positions:
            if isinstance(args[i], types.Omitted):
                raise _left_out(function, list(inspect.signature(function).parameters)[i])
        return emit(gradient_function(function, args, self._request), func_id)

    @property
    def identity(self) -> tuple[Any, Kind, Argnums]:
        """What makes its code."""
        return self.primal, self.kind, self.argnums

    def enable_caching(self) -> None:
        """Keeps compiled code on disk, in a cache of its own."""
        numbers = "".join(f".{i}" for i in ([self.argnums] if isinstance(self.argnums, int) else self.argnums))
        told = partial(_loaded, weakref.ref(self))
        self._cache = DerivativeCache(python_function(self.primal), f"{self.kind}{numbers}", self.identity, told)

    def recompile(self) -> None:
        """Compiles all signatures again, from the functions and rules as they are now."""
        forget()
        records = [r for r in memo_of(self, "records").values() if isinstance(r, Record)]
        invalidate(reached(records, lambda r: r.uses))  # also what older gradients of other functions share with it
        refresh(self)

    def _compile_for_args(self, *args: Any, **kws: Any) -> Any:
        try:
            return super()._compile_for_args(*args, **kws)
        except NumbarulesError as error:
            if FULL_TRACEBACKS:
                raise
            raise error.with_traceback(None) from None  # the way through Numba's compiler tells a user nothing

    def _reduce_states(self) -> dict[str, Any]:
        return {"uuid": str(self._uuid), "primal": self.primal, "kind": self.kind, "argnums": self.argnums}

    @classmethod
    def _rebuild(cls, uuid: str, primal: Any, kind: Kind, argnums: Argnums) -> Any:
        if uuid not in cls._memo:
            found = gradient_dispatcher(primal, argnums, kind)
            if found._uuid_is_free:
                found._set_uuid(uuid)
            return found
        return cls._memo[uuid]

    @property
    def _uuid_is_free(self) -> bool:
        return getattr(self, "_MemoMixin__uuid", None) is None


class DifferentiableDispatcher(CPUDispatcher):
    """An `@njit` function that also has gradients: `grad` and `value_and_grad`, by the arguments `argnums`."""

    def __init__(self, py_func: Callable[..., Any], locals: Any = None, targetoptions: Any = None, argnums: Argnums = 0) -> None:
        self.argnums = argnums
        super().__init__(py_func, locals, targetoptions)
        self._type = self._numba_type_

    @property
    def _numba_type_(self) -> Any:
        return DifferentiableType(self)

    @cached_property
    def grad(self) -> Any:
        """The gradient, a dispatcher of the same parameters."""
        return gradient_dispatcher(self, self.argnums, "grad")

    @cached_property
    def value_and_grad(self) -> Any:
        """The value and the gradient, a dispatcher of the same parameters."""
        return gradient_dispatcher(self, self.argnums, "value_and_grad")

    def recompile(self) -> None:
        """Compiles all signatures again, those of gradients too."""
        forget()
        super().recompile()
        invalidate(made_from(self.py_func))
        for gradient in memo_of(self, "gradients").values():
            refresh(gradient)

    def _reduce_states(self) -> dict[str, Any]:
        return {**super()._reduce_states(), "argnums": self.argnums, "cached": is_cached(self)}

    @classmethod
    def _rebuild(
        cls, uuid: str, py_func: Any, locals: Any, targetoptions: Any, can_compile: bool, sigs: Any, argnums: Argnums, cached: bool
    ) -> Any:
        if uuid in cls._memo:
            return cls._memo[uuid]
        self = cls(py_func, locals, targetoptions, argnums)
        self._set_uuid(uuid)
        if cached:
            self.enable_caching()
        for sig in sigs:
            self.compile(sig)
        self._can_compile = can_compile
        return self


def _loaded(itself: weakref.ref[GradientDispatcher], args: tuple[Any, ...]) -> None:
    if (gradient := itself()) is not None:
        loaded(gradient, args)


def is_cached(f: Any) -> bool:
    """True for a dispatcher whose compiled code is kept on disk."""
    return isinstance(f, Dispatcher) and not isinstance(getattr(f, "_cache", None), NullCache)


def differentiable_function(function: Any, signatures: list[Any], argnums: Any, cache: bool, locals: Any, options: dict[str, Any]) -> Any:
    """The dispatcher of a decorated Python function; with signatures, it and its gradients are compiled for these and no others."""
    if not isinstance(function, FunctionType):
        raise TypeError(f"`njit_grad` decorates a Python function, not a {type(function).__name__}")
    f = DifferentiableDispatcher(function, dict(locals), {"nopython": True, **options}, argument_numbers(function, argnums))
    if cache:
        f.enable_caching()
    if signatures:
        types_of_arguments = eager(f, signatures)
        for gradient in (f.grad, f.value_and_grad):
            eager(gradient, types_of_arguments)
    return f


# ---------------------------------------------------------------------------------------------- each gradient once


def gradient_dispatcher(f: Any, argnums: Any, kind: Kind) -> GradientDispatcher:
    """The dispatcher of a derivative of a Python function or dispatcher.

    The same one whenever it is asked for. It is compiled again when a rule changes that it was made with.
    """
    check_function(f, kind)
    known = memo_of(f, "gradients")
    checked = type(argnums) in (int, tuple) and (kind, argnums) in known
    numbers = argnums if checked else argument_numbers(python_function(f), argnums)
    if (kind, numbers) not in known:
        known.setdefault((kind, numbers), GradientDispatcher(f, kind, numbers))
    found: GradientDispatcher = known[kind, numbers]
    return found


# ---------------------------------------------------------------------------------------------- contract


def check_function(f: Any, what: str) -> None:
    """Raises a DifferentiationError where `f` is no Python function and no dispatcher, or a derivative itself."""
    if is_derivative(f):
        raise DifferentiationError(
            message(
                f"`{f.py_func.__name__}` is a derivative, and second derivatives are not supported",
                contract=f"`{what}` takes a function of yours",
                found="what `grad`, `value_and_grad` or `vjp` has made",
                instead="take differences of the first derivative",
            )
        )
    if not isinstance(f, Dispatcher | FunctionType):
        raise DifferentiationError(
            message(
                f"`{getattr(f, '__name__', f)}` cannot be differentiated",
                contract=f"`{what}` takes a Python function, an `@njit` function or an `@njit_grad` function",
                found=f"a value of type `{type(f).__qualname__}`",
                instead="write a function that calls it, and differentiate that",
            )
        )


def argument_numbers(function: Any, argnums: Any) -> Argnums:
    """`argnums` as non-negative positions among the parameters of `function`; a DifferentiationError where they are none."""
    names = list(inspect.signature(function).parameters)
    n = len(names)

    def refuse(found: str) -> DifferentiationError:
        listed = ", ".join(f"{i} `{name}`" for i, name in enumerate(names)) or "it has none"
        return DifferentiationError(
            message(
                f"`argnums={argnums!r}` does not name arguments of `{function.__name__}`",
                filename=function.__code__.co_filename,
                line=function.__code__.co_firstlineno,
                contract="`argnums` is a position among the parameters, or a tuple of different ones; negative ones count from the end",
                found=found,
                instead=f"choose from the parameters: {listed}",
            )
        )

    def position(i: Any) -> int:
        try:
            k = operator.index(i)
        except TypeError:
            raise refuse(f"a value of type `{type(i).__qualname__}`") from None
        if isinstance(i, bool):
            raise refuse("a value of type `bool`")
        if not -n <= k < n:
            raise refuse(f"position {k}, where `{function.__name__}` has {n} parameter{'s' if n != 1 else ''}")
        return k % n

    if not isinstance(argnums, Iterable) or isinstance(argnums, str):
        return position(argnums)
    positions = tuple(map(position, argnums))
    if not positions:
        raise refuse("no position at all")
    for k in positions:
        if positions.count(k) > 1:
            raise refuse(f"parameter `{names[k]}` twice")
    return positions


def check_compiles(function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Raises a DifferentiationError with Numba's own message where Numba cannot compile the primal."""
    try:
        capture(function, args, options)
    except ForceLiteralArg:
        raise  # Numba's dispatcher answers it
    except NumbaError as error:
        lines = str(error).strip().splitlines()
        theirs = [x for x in lines if not x.startswith(("Failed in numbarules_capture", "During: Pass"))]
        names = list(inspect.signature(function).parameters)
        unknown = [f"`{name}`" for name, t in zip(names, args, strict=False) if t is types.pyobject]
        raise DifferentiationError(
            message(
                f"`{function.__name__}` has no gradient: Numba cannot compile it",
                filename=function.__code__.co_filename,
                line=function.__code__.co_firstlineno,
                contract="what is differentiated compiles under `@njit` at the types of the call: "
                + ", ".join(f"{name} {t}" for name, t in zip(names, args, strict=False)),
                found=(f"Numba has no type for the value of {', '.join(unknown)}; " if unknown else "") + "\n".join(theirs).strip(),
                instead=f"call `numba.njit({function.__name__})` with these arguments until it runs, then differentiate it",
            )
        ) from None


def _left_out(function: Any, name: str) -> DifferentiationError:
    return DifferentiationError(
        message(
            f"`{function.__name__}` cannot be differentiated by its argument `{name}`, which the call leaves out",
            filename=function.__code__.co_filename,
            line=function.__code__.co_firstlineno,
            contract="an argument to differentiate by is given in the call: a default value is a constant",
            instead=f"pass `{name}`",
        )
    )

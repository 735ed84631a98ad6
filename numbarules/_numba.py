"""The only door to `numba.core`: pipelines, IR classes and type conversions, for Numba 0.60 to 0.68."""

from __future__ import annotations

import operator
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import typeof, types
from numba.core import ir as nir
from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags, PassManager, run_frontend
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.config import FULL_TRACEBACKS
from numba.core.dispatcher import Dispatcher
from numba.core.errors import ForceLiteralArg, NumbaError, NumbaWarning, TypingError
from numba.core.event import Event, Listener, register
from numba.core.inline_closurecall import length_of_iterator  # what an array comprehension calls for the length of its array
from numba.core.ir_utils import build_definitions
from numba.core.registry import CPUDispatcher, cpu_target
from numba.core.runtime import _nrt_python, rtsys
from numba.core.sigutils import is_signature, normalize_signature
from numba.core.target_extension import resolve_dispatcher_from_str
from numba.core.typed_passes import AnnotateTypes, IRLegalization, NoPythonBackend, NopythonTypeInference
from numba.core.typeinfer import register_dispatcher
from numba.core.typing.arraydecl import get_array_index_type
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, lower_getattr, models, register_model

from .ir import types as T
from .runtime.lowering import RecordNativeLowering

__all__ = [
    "FULL_TRACEBACKS",
    "CPUDispatcher",
    "CompileResultCacheImpl",
    "DifferentiableType",
    "Dispatcher",
    "ForceLiteralArg",
    "FunctionCache",
    "GeneratedCompiler",
    "NullCache",
    "NumbaError",
    "NumbaWarning",
    "TypedIR",
    "TypingError",
    "build_definitions",
    "compiler_lock",
    "counting_heap",
    "eager",
    "forget_implementations",
    "function_being_typed",
    "index_result",
    "is_signature",
    "length_of_iterator",
    "nir",
    "numba_type",
    "on_compilation",
    "our_type",
    "overload_implementation",
    "typed_from",
    "typed_ir",
    "types",
    "untyped_ir",
]

compiler_lock = global_compiler_lock


# ---------------------------------------------------------------------------------------------- types


def our_type(t: Any) -> T.Type:
    """The IR's term for a Numba type; `Opaque` for what the IR does not model."""
    t = _without_values(t)
    if isinstance(t, types.Omitted):
        return our_type(typeof(t.value))
    if isinstance(t, types.Boolean | types.Integer | types.Float | types.Complex):
        return T.Scalar(t.name)
    if isinstance(t, types.Array) and type(t) is types.Array:
        dtype = our_type(t.dtype)
        if isinstance(dtype, T.Scalar):
            return T.Array(dtype, t.ndim, t.layout, t.mutable, t.aligned)
    if isinstance(t, types.NamedTuple | types.NamedUniTuple):
        return T.Tuple(tuple(our_type(x) for x in t), t.instance_class, isinstance(t, types.NamedUniTuple))
    if isinstance(t, types.UniTuple | types.Tuple):
        return T.Tuple(tuple(our_type(x) for x in t), None, isinstance(t, types.UniTuple))
    if hasattr(getattr(t, "struct", None), "python_class"):  # a `structs.StructType`
        return T.Tuple(tuple(map(our_type, t.items)), t.struct)
    if isinstance(t, types.NoneType):
        return T.NONE
    if t == types.voidptr:
        return T.POINTER
    constant = isinstance(t, types.Dispatcher) or (isinstance(t, types.Function) and callable(t.typing_key))
    return T.Opaque(str(t), t, constant)


def numba_type(t: T.Type) -> Any:
    """The Numba type that an IR type stands for."""
    match t:
        case T.Scalar("bool"):
            return types.boolean
        case T.Scalar(kind):
            return getattr(types, kind)
        case T.Array(dtype, ndim, layout, mutable, aligned):
            return types.Array(numba_type(dtype), ndim, layout, readonly=not mutable, aligned=aligned)
        case T.Tuple(items, None, _):
            return types.Tuple([numba_type(i) for i in items])
        case T.Tuple(items, cls) if t.struct:
            return cls.numba_type(tuple(map(numba_type, items)))
        case T.Tuple(items, cls, _):
            inner = [numba_type(i) for i in items]
            uniform = bool(inner) and inner.count(inner[0]) == len(inner)
            return types.NamedUniTuple(inner[0], len(inner), cls) if uniform else types.NamedTuple(inner, cls)
        case T.Pointer():
            return types.voidptr
        case T.NoneType():
            return types.none
        case T.Opaque(_, payload):
            return payload
    raise AssertionError(t)


def _without_values(t: Any) -> Any:
    """A type without the values that Numba knows of a literal, also in what iterates over a display or holds one.

    A container that is nothing without them, such as a dictionary of values of different types, stays as it is.
    """
    match t:
        case types.ListIter():
            return types.ListIter(_without_values(t.container))
        case types.DictItemsIterableType() | types.DictKeysIterableType() | types.DictValuesIterableType():
            return type(t)(_without_values(t.parent))
        case types.DictIteratorType():
            return types.DictIteratorType(_without_values(t.iterable))
        case types.EnumerateType():
            return types.EnumerateType(_without_values(t.source_type))
        case types.ZipType():
            return types.ZipType(tuple(map(_without_values, t.source_types)))
        case types.Pair():
            return types.Pair(_without_values(t.first_type), _without_values(t.second_type))
    plain = types.unliteral(t)
    return t if isinstance(plain, types.Poison) else plain


_INDEX = {"i": types.intp, "s": types.slice3_type, "n": types.none}


def index_result(array: T.Array, spec: str) -> T.Type:
    """The type of `array` indexed by integers (`i`), slices (`s`: any; `t`: without a step) and new axes (`n`)."""
    parts = [types.slice2_type if c == "t" else _INDEX[c] for c in spec]
    index = parts[0] if len(parts) == 1 else types.Tuple(parts)
    return our_type(get_array_index_type(numba_type(array), index).result)


# ---------------------------------------------------------------------------------------------- capture


@dataclass(frozen=True, slots=True)
class TypedIR:
    """What type inference left: Numba's IR, the type of each variable, the signature of each call."""

    ir: Any
    typemap: Mapping[str, Any]
    calltypes: Mapping[Any, Any]
    return_type: Any
    function: Callable[..., Any]


@register_pass(mutates_CFG=False, analysis_only=True)
class _Stop(FunctionPass):
    _name = "numbarules_stop"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        state.cr = TypedIR(state.func_ir, dict(state.typemap), dict(state.calltypes), state.return_type, state.func_id.func)
        return False


class _CaptureCompiler(CompilerBase):
    """Numba's own front end, stopped after type inference."""

    def define_pipelines(self) -> list[Any]:
        full = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pm = PassManager("numbarules_capture")
        for pass_, text in full.passes:
            pm.add_pass(pass_, text)
            if pass_ is NopythonTypeInference:
                break
        pm.add_pass(_Stop, "keep the typed IR")
        pm.finalize()
        return [pm]


def typed_ir(function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any], return_type: Any = None) -> TypedIR:
    """Numba's typed IR of a Python function at Numba argument types, under `njit` options.

    Raises Numba's own errors where the function does not compile.
    """
    with compiler_lock:
        typing_context, target_context = cpu_target.typing_context, cpu_target.target_context
        typing_context.refresh()
        target_context.refresh()
        compiler = _CaptureCompiler(typing_context, target_context, None, args, return_type, flags(options), {})
        with _captured(function):
            result = compiler.compile_extra(function)
    assert isinstance(result, TypedIR)
    return result


def untyped_ir(function: Callable[..., Any]) -> Any:
    """Numba's IR of a Python function as its bytecode says it, before any pass."""
    with compiler_lock:
        return run_frontend(function)


def typed_from(
    ir: Any, blocks: Mapping[int, Any], arg_names: tuple[str, ...], args: tuple[Any, ...], options: Mapping[str, Any]
) -> TypedIR:
    """As `typed_ir`, from untyped IR with other blocks and parameters."""
    with compiler_lock:
        typing_context, target_context = cpu_target.typing_context, cpu_target.target_context
        typing_context.refresh()
        target_context.refresh()
        derived = ir.derive(dict(blocks), arg_count=len(arg_names), arg_names=arg_names)
        derived._definitions = build_definitions(derived.blocks)
        compiler = _CaptureCompiler(typing_context, target_context, None, args, None, flags(options), {})
        with _captured(ir.func_id.func):
            result = compiler.compile_ir(derived)
    assert isinstance(result, TypedIR)
    return result


def overload_implementation(function: Any, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    """The dispatcher of the `@overload` implementation that a call resolves to at these types; None where it has no Python source.

    `function` is a Python callable, or for a method or attribute of `args[0]` its name.
    """
    with compiler_lock:
        context = cpu_target.typing_context
        context.refresh()
        cpu_target.target_context.refresh()
        try:
            if isinstance(function, str):
                return _attribute_implementation(context, function, args, keywords)
            found = context.resolve_value_type(function)
            return _implementation(context, found, args, keywords)
        except (NumbaError, ValueError):  # ValueError: a Python function that Numba knows nothing about
            return None


def forget_implementations(function: Any, choose: Any, at: Callable[[Any], bool] = lambda args: True) -> None:
    """Lets Numba ask `choose`, registered by `@overload` for `function`, again for the types that it was asked for before.

    `at` tells which argument types; all, if it is not given.
    """
    context = cpu_target.typing_context
    context.refresh()
    for template in context.resolve_value_type(function).templates:
        if getattr(template, "_overload_func", None) is choose:
            for key in [k for k in template._impl_cache if at(k[1])]:
                del template._impl_cache[key]


def _implementation(context: Any, function_type: Any, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    """The first template that accepts the call, in Numba's order, where it comes from `@overload`."""
    if not isinstance(function_type, types.Function):
        return None
    plain = tuple(map(types.unliteral, args)), {k: types.unliteral(v) for k, v in keywords.items()}
    for template in function_type.templates:
        made = template(context)
        orders = [(args, dict(keywords)), plain] if made.prefer_literal else [plain, (args, dict(keywords))]
        for positional, named in orders:
            try:
                if not hasattr(made, "_get_impl"):
                    if made.apply(positional, named) is not None:
                        return None
                    continue
                dispatcher = made._get_impl(positional, named)[0]
            except NumbaError:
                continue
            if dispatcher is not None:
                return dispatcher
    return None


def _attribute_implementation(context: Any, name: str, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    for template in context._get_attribute_templates(args[0]):
        if getattr(template, "_attr", None) == name and hasattr(template, "_overload_func"):
            return _implementation(context, template._get_function_type(context, args[0]), args, keywords)
        if template.resolve(args[0], name) is not None:
            return None
    return None


_FLAGS = ("fastmath", "error_model", "boundscheck", "nogil", "no_cfunc_wrapper")


def flags(options: Mapping[str, Any]) -> Any:
    """Numba's flags for the `njit` options that change what code means or may do."""
    out = Flags()
    kept = {k: v for k, v in options.items() if k in _FLAGS}
    kept["nopython"] = True
    cpu_target.options.parse_as_flags(out, kept)
    return out


# ---------------------------------------------------------------------------------------------- generated functions


@register_pass(mutates_CFG=True, analysis_only=False)
class _Generate(FunctionPass):
    """Takes the IR from the generator that is attached to the stub, in place of bytecode."""

    _name = "numbarules_generate"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        generated = state.func_id.func.__numbarules_generator__(state.func_id, state.args)
        state.typingctx.refresh()  # intrinsics may have been made just now
        state.targetctx.refresh()
        # Numba numbers the functions of a process, and a disk cache brings back those of other processes: without a name of its
        # own, a generated function could be linked in the place of another one (Numba issue 10486).
        state.func_id.func_qualname += f"_{uuid.uuid4().hex}"
        state.func_id.unique_name = state.func_id.func_qualname
        state.func_ir = generated.ir
        state.locals = dict(generated.locals)
        state.return_type = None
        state.nargs = state.func_ir.arg_count
        for name, value in generated.flags:
            setattr(state.flags, name, value)
        return True


class GeneratedCompiler(CompilerBase):
    """Types and lowers generated IR."""

    def define_pipelines(self) -> list[Any]:
        pm = PassManager("numbarules_generated")
        pm.add_pass(_Generate, "generate")
        pm.add_pass(NopythonTypeInference, "type inference")
        pm.add_pass(IRLegalization, "legalise")
        pm.add_pass(AnnotateTypes, "annotate types")
        pm.add_pass(RecordNativeLowering, "lower")
        pm.add_pass(NoPythonBackend, "link")
        pm.finalize()
        return [pm]


INPLACE = {
    operator.iadd: operator.add,
    operator.isub: operator.sub,
    operator.imul: operator.mul,
    operator.itruediv: operator.truediv,
    operator.ifloordiv: operator.floordiv,
    operator.imod: operator.mod,
    operator.ipow: operator.pow,
    operator.iand: operator.and_,
    operator.ior: operator.or_,
    operator.ixor: operator.xor,
    operator.ilshift: operator.lshift,
    operator.irshift: operator.rshift,
    operator.imatmul: operator.matmul,
}


def jit_dispatcher(stub: Callable[..., Any], options: Mapping[str, Any], pipeline: type[CompilerBase]) -> Any:
    """A dispatcher whose code comes from `pipeline`."""
    cls = resolve_dispatcher_from_str("cpu")
    return cls(py_func=stub, locals={}, targetoptions={"nopython": True, **options}, pipeline_class=pipeline)


def scalar_value(t: T.Scalar, value: Any) -> Any:
    """A NumPy scalar of the type."""
    return np.dtype(t.kind).type(value)


# ---------------------------------------------------------------------------------------------- dispatchers with derivatives


class DifferentiableType(types.Dispatcher):
    """The type of a dispatcher that has the attributes `grad` and `value_and_grad`, dispatchers again, in jitted code too."""


register_model(DifferentiableType)(models.OpaqueModel)


@infer_getattr
class _Derivatives(AttributeTemplate):
    key = DifferentiableType

    def resolve_grad(self, t: Any) -> Any:
        return t.dispatcher.grad._numba_type_

    def resolve_value_and_grad(self, t: Any) -> Any:
        return t.dispatcher.value_and_grad._numba_type_


@lower_getattr(DifferentiableType, "grad")
@lower_getattr(DifferentiableType, "value_and_grad")
def _derivative(context: Any, builder: Any, typ: Any, value: Any) -> Any:
    return context.get_dummy_value()  # which code is called is in its type


def eager(dispatcher: Any, signatures: list[Any]) -> list[tuple[Any, ...]]:
    """Compiles a dispatcher for these signatures and no others; returns their argument types."""
    with register_dispatcher(dispatcher):
        for signature in signatures:
            dispatcher.compile(signature)
        dispatcher.disable_compile()
    return [tuple(normalize_signature(s)[0]) for s in signatures]


# ---------------------------------------------------------------------------------------------- what is being compiled


_capturing: list[Any] = []  # Python functions that are typed and not compiled; guarded by the compiler lock


@contextmanager
def _captured(function: Any) -> Iterator[None]:
    _capturing.append(function)
    try:
        yield
    finally:
        _capturing.pop()


def function_being_typed() -> Any:
    """The Python function whose types Numba infers just now; None where it infers none, or only for a capture."""
    stack = cpu_target.typing_context.callstack
    function = stack[0].func_id.func if len(stack) else None
    return None if any(function is f for f in _capturing) else function


class _Compilations(Listener):
    def __init__(self, started: Callable[[Any, Any, Any], None], ended: Callable[[Any, Any], None]) -> None:
        self.started = started
        self.ended = ended

    def on_start(self, event: Event) -> None:
        self.started(event.data["dispatcher"], event.data["args"], event.data["return_type"])

    def on_end(self, event: Event) -> None:
        self.ended(event.data["dispatcher"], event.data["args"])


def on_compilation(started: Callable[[Any, Any, Any], None], ended: Callable[[Any, Any], None]) -> None:
    """Calls back when a dispatcher is compiled: `started(dispatcher, argument types, return type or None)`, `ended(dispatcher, types)`.

    Compilations nest, each within one thread, and all under the compiler lock. Loading from a disk cache is none.
    """
    register("numba:compile", _Compilations(started, ended))


@contextmanager
def counting_heap() -> Iterator[Callable[[], int]]:
    """Lets Numba count; gives a function that tells how many blocks on its heap are in use, from an unknown start."""

    def in_use() -> int:
        stats = rtsys.get_allocation_stats()
        return int(stats.alloc - stats.free)

    counted = bool(_nrt_python.memsys_stats_enabled())
    _nrt_python.memsys_enable_stats()
    try:
        yield in_use
    finally:
        if not counted:
            _nrt_python.memsys_disable_stats()

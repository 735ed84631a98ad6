"""The arena under a record: its layout in memory, and the LLVM code that cuts slabs off it.

A record is a head of six words and a list of chunks; each chunk is a link, a size and that many bytes. Memory is taken
in list order: the chunks before the current one are full, those after it are kept from an earlier call.

    record   cursor, end (what is left of the current chunk), current, first, retained, depth
    chunk    next, size, data...
    node     next, meminfo: one retained object; stands in a slab

Short paths are generated in place. The rest is four LLVM functions (`open`, `grow`, `retain`, `close`), compiled once
a process without Numba, in about 20 ms, by `load`. (Written into each module that used them, they added 30 to 50 ms to
each compilation of a gradient.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import CFUNCTYPE, c_void_p
from functools import cache
from typing import Any

from llvmlite import binding, ir

from numbarules._numba_lowering import Builder, Context, Value, cgutils

__all__ = ["KEPT_BYTES", "close", "closer", "depth_pointer", "i64", "is_close", "load", "open_record", "reserve", "retain"]

KEPT_BYTES = 128 << 20  # what a closed record keeps
MIN_CHUNK = 64 << 10
MAX_GROWTH = 64 << 20  # a chunk is larger than this only if one request is
ALIGNMENT = 16  # of a slab; NRT_Allocate gives as much, and the chunk's head is 16 bytes

# Compiled code in a disk cache holds a part of the layout: change this with it, so that old code finds no function.
LAYOUT = "1"
SLOT = f"numbarules_record_slot_{LAYOUT}"

i32, i64 = ir.IntType(32), ir.IntType(64)
VOID, POINTER = ir.VoidType(), cgutils.voidptr_t
NULL = ir.Constant(POINTER, None)

RECORD = ir.LiteralStructType([POINTER, POINTER, POINTER, POINTER, POINTER, i64])
CURSOR, END, CURRENT, FIRST, RETAINED, DEPTH = range(6)

CHUNK = ir.LiteralStructType([POINTER, i64])  # then `SIZE` bytes of data
NEXT, SIZE = range(2)
CHUNK_HEAD = 16

NODE = ir.LiteralStructType([POINTER, POINTER])  # the next node, a meminfo


def open_record(context: Context, builder: Builder) -> Value:
    """Generate the opening of a record. Raises MemoryError."""
    opened = builder.call(_function(context, builder, "open"), [])
    with builder.if_then(cgutils.is_null(builder, opened), likely=False):
        _raise_memory_error(context, builder)
    return opened


def reserve(context: Context, builder: Builder, record: Value, nbytes: Value) -> Value:
    """Generate the reservation of `nbytes` bytes. Raises MemoryError."""
    grow = _function(context, builder, "grow")
    return _bump(builder, grow, record, nbytes, lambda: _raise_memory_error(context, builder))


def retain(context: Context, builder: Builder, record: Value, meminfo: Value) -> None:
    """Generate what keeps the object of `meminfo`, if not null, until `record` is closed. Raises MemoryError."""
    pointer = builder.bitcast(meminfo, POINTER)
    done = builder.call(_function(context, builder, "retain"), [record, pointer])
    with builder.if_then(cgutils.is_null(builder, done), likely=False):
        _raise_memory_error(context, builder)


def close(context: Context, builder: Builder, record: Value) -> None:
    """Generate the closing of `record`, which may be null."""
    builder.call(_function(context, builder, "close"), [record])


def is_close(instruction: Value) -> bool:
    """Whether an LLVM instruction is what `close` generates."""
    return isinstance(instruction, ir.CallInstr) and instruction.callee.name == _symbol("close")


@cache
def closer() -> Callable[[int], None]:
    """The closing of a record, for Python, which has its address as an integer."""
    return CFUNCTYPE(None, c_void_p)(load().get_function_address(_symbol("close")))


def depth_pointer(builder: Builder, record: Value) -> Value:
    """Where the record counts the depth of recursion: an int64."""
    return _field(builder, RECORD, record, DEPTH)


# --- the four functions


@cache
def load() -> Any:
    """Compile the four functions, once a process, and make their symbols known; returns the engine that owns them.

    Has to come before code that calls them: lowering sees to it, and Numba's cache does when it loads such code again.
    """
    module = ir.Module("numbarules.record")
    ir.GlobalVariable(module, i64, SLOT).initializer = i64(0)
    functions = {name: _declare(module, name) for name in _FUNCTIONS}
    for name, function in functions.items():
        write, _ = _FUNCTIONS[name]
        write(ir.IRBuilder(function.append_basic_block()), *function.args)
    machine = binding.Target.from_default_triple().create_target_machine(opt=1, jit=True)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(str(module)), machine)
    engine.finalize_object()
    for name in _FUNCTIONS:
        binding.add_symbol(_symbol(name), engine.get_function_address(_symbol(name)))
    return engine


def _function(context: Context, builder: Builder, name: str) -> Value:
    """The function `name`, declared in the module that is being built."""
    load()
    # Numba's disk cache calls these before it loads the code, or that of a caller. Numba 0.60 has them for parfors only:
    # there, `load` has to be called before cached callers of a gradient run.
    on_reload = getattr(context.active_code_library, "_reload_init", None)
    if on_reload is not None:
        on_reload.add(load)
    return _declare(builder.module, name)


def _declare(module: Value, name: str) -> Value:
    symbol = _symbol(name)
    if symbol in module.globals:
        return module.globals[symbol]
    _, function_type = _FUNCTIONS[name]
    function = ir.Function(module, function_type, name=symbol)
    if name == "grow":
        function.attributes.add("cold")
    return function


def _symbol(name: str) -> str:
    return f"numbarules_record_{name}_{LAYOUT}"


def _write_open(builder: Builder) -> None:
    """open() -> a record, null on failure"""
    kept = _exchange_slot(builder, NULL)
    with builder.if_then(cgutils.is_not_null(builder, kept)):
        builder.ret(kept)
    made = builder.call(_nrt_allocate(builder), [i64(8 * len(RECORD.elements))])
    with builder.if_then(cgutils.is_not_null(builder, made)):
        builder.store(ir.Constant(RECORD, None), builder.bitcast(made, RECORD.as_pointer()))
    builder.ret(made)


def _write_grow(builder: Builder, record: Value, nbytes: Value) -> None:
    """grow(record, nbytes) -> a slab at the start of another chunk, null on failure"""
    with builder.if_then(builder.icmp_signed("<=", nbytes, i64(0))):
        builder.ret(record)
    with builder.if_then(builder.icmp_signed(">", nbytes, i64(2**62))):
        builder.ret(NULL)
    nbytes = _round_up(builder, nbytes)
    current = _load(builder, RECORD, record, CURRENT)
    has_current = cgutils.is_not_null(builder, current)
    # The link that will point to the chunk, and the size to grow from.
    first, after = _field(builder, RECORD, record, FIRST), _field(builder, CHUNK, current, NEXT)
    here = builder.select(has_current, after, first)
    with builder.if_else(has_current) as (then, otherwise):
        with then:
            last_size = _load(builder, CHUNK, current, SIZE)
            then_block = builder.block
        with otherwise:
            otherwise_block = builder.block
    grown_from = _phi(builder, i64, (last_size, then_block), (i64(0), otherwise_block))

    # A kept chunk that is large enough moves here.
    with _walk(builder, here) as (link, chunk):
        fits = builder.icmp_unsigned(">=", _load(builder, CHUNK, chunk, SIZE), nbytes)
        with builder.if_then(fits):
            builder.store(_load(builder, CHUNK, chunk, NEXT), link)
            builder.ret(_use_chunk(builder, record, here, chunk, nbytes))

    doubled = builder.mul(grown_from, i64(2))
    size = _unsigned_max(builder, _unsigned_min(builder, doubled, i64(MAX_GROWTH)), i64(MIN_CHUNK))
    size = _unsigned_max(builder, size, nbytes)
    made = builder.call(_nrt_allocate(builder), [builder.add(size, i64(CHUNK_HEAD))])
    with builder.if_then(cgutils.is_null(builder, made)):
        builder.ret(NULL)
    builder.store(size, _field(builder, CHUNK, made, SIZE))
    builder.ret(_use_chunk(builder, record, here, made, nbytes))


def _write_retain(builder: Builder, record: Value, meminfo: Value) -> None:
    """retain(record, meminfo) -> null on failure"""
    with builder.if_then(cgutils.is_null(builder, meminfo)):
        builder.ret(record)
    grow = _declare(builder.module, "grow")
    node = _bump(builder, grow, record, i64(8 * len(NODE.elements)), lambda: builder.ret(NULL))
    # The count is the first word of a meminfo. Done here and not by Numba, which may strike out pairs of counting.
    builder.atomic_rmw("add", builder.bitcast(meminfo, i64.as_pointer()), i64(1), "monotonic")
    retained = _field(builder, RECORD, record, RETAINED)
    builder.store(builder.load(retained), _field(builder, NODE, node, 0))
    builder.store(meminfo, _field(builder, NODE, node, 1))
    builder.store(node, retained)
    builder.ret(record)


def _write_close(builder: Builder, record: Value) -> None:
    """close(record)"""
    with builder.if_then(cgutils.is_null(builder, record)):
        builder.ret_void()

    free = _nrt(builder, "Free", VOID, POINTER)
    retained, first = _field(builder, RECORD, record, RETAINED), _field(builder, RECORD, record, FIRST)
    with _walk(builder, retained) as (_, node):
        builder.call(_nrt(builder, "MemInfo_release", VOID, POINTER), [_load(builder, NODE, node, 1)])

    # Chunks are kept in order while they fit: each is unlinked, then linked again behind the last one kept.
    kept_bytes, tail = cgutils.alloca_once(builder, i64), cgutils.alloca_once_value(builder, first)
    with _walk(builder, first) as (_, chunk):
        total = builder.add(builder.load(kept_bytes), _load(builder, CHUNK, chunk, SIZE))
        with builder.if_else(builder.icmp_unsigned("<=", total, i64(KEPT_BYTES))) as (keep, drop):
            with keep:
                builder.store(total, kept_bytes)
                builder.store(chunk, builder.load(tail))
                builder.store(_field(builder, CHUNK, chunk, NEXT), tail)
            with drop:
                builder.call(free, [chunk])
    builder.store(NULL, builder.load(tail))

    head = builder.load(first)
    has_chunk = cgutils.is_not_null(builder, head)
    with builder.if_else(has_chunk) as (then, otherwise):
        with then:
            _set_room(builder, record, head, i64(0))
        with otherwise:
            for field in (CURSOR, END, CURRENT):
                builder.store(NULL, _field(builder, RECORD, record, field))
    builder.store(NULL, retained)
    builder.store(i64(0), _field(builder, RECORD, record, DEPTH))

    other = _exchange_slot(builder, record)
    with builder.if_then(cgutils.is_not_null(builder, other)):
        with _walk(builder, _field(builder, RECORD, other, FIRST)) as (_, chunk):
            builder.call(free, [chunk])
        builder.call(free, [other])
    builder.ret_void()


_FUNCTIONS: dict[str, tuple[Callable[..., None], Value]] = {
    "open": (_write_open, ir.FunctionType(POINTER, [])),
    "grow": (_write_grow, ir.FunctionType(POINTER, [POINTER, i64])),
    "retain": (_write_retain, ir.FunctionType(POINTER, [POINTER, POINTER])),
    "close": (_write_close, ir.FunctionType(VOID, [POINTER])),
}


# --- pieces of code


def _bump(builder: Builder, grow: Value, record: Value, nbytes: Value, fail: Callable[[], Any]) -> Value:
    """A slab of `nbytes`; `fail` generates what to do, and how to leave, where there is no memory."""
    cursor = _load(builder, RECORD, record, CURSOR)
    end = _load(builder, RECORD, record, END)
    rounded = _round_up(builder, nbytes)
    room = builder.sub(builder.ptrtoint(end, i64), builder.ptrtoint(cursor, i64))
    # Unsigned: what is negative, or wrapped around when rounded, goes to `grow`.
    with builder.if_else(builder.icmp_unsigned("<=", rounded, room), likely=True) as (fast, slow):
        with fast:
            builder.store(builder.gep(cursor, [rounded]), _field(builder, RECORD, record, CURSOR))
            fast_block = builder.block
        with slow:
            grown = builder.call(grow, [record, nbytes])
            with builder.if_then(cgutils.is_null(builder, grown), likely=False):
                fail()
            slow_block = builder.block
    return _phi(builder, POINTER, (cursor, fast_block), (grown, slow_block))


def _use_chunk(builder: Builder, record: Value, link: Value, chunk: Value, nbytes: Value) -> Value:
    """Put `chunk` in at `link`, make it the current one, and return its first `nbytes` bytes as a slab."""
    builder.store(builder.load(link), _field(builder, CHUNK, chunk, NEXT))
    builder.store(chunk, link)
    return _set_room(builder, record, chunk, nbytes)


def _set_room(builder: Builder, record: Value, chunk: Value, used: Value) -> Value:
    """Make `chunk`, of which `used` bytes are taken, the current one; returns its data."""
    data = builder.gep(chunk, [i64(CHUNK_HEAD)])
    builder.store(chunk, _field(builder, RECORD, record, CURRENT))
    builder.store(builder.gep(data, [used]), _field(builder, RECORD, record, CURSOR))
    builder.store(builder.gep(data, [_load(builder, CHUNK, chunk, SIZE)]), _field(builder, RECORD, record, END))
    return data


@contextmanager
def _walk(builder: Builder, start: Value) -> Iterator[tuple[Value, Value]]:
    """Generate a loop over a list whose nodes begin with the pointer to the next.

    Yields the link (where the pointer to the node stands) and the node. The body may free the node or link it anew.
    """
    before, test = builder.block, builder.append_basic_block("walk")
    body, after = builder.append_basic_block("walk.body"), builder.append_basic_block("walk.end")
    builder.branch(test)
    builder.position_at_end(test)
    link = builder.phi(start.type)
    link.add_incoming(start, before)
    node = builder.phi(POINTER)
    with builder.goto_block(before):
        node.add_incoming(builder.load(start), before)
    builder.cbranch(cgutils.is_not_null(builder, node), body, after)
    builder.position_at_end(body)
    next_link = _field(builder, CHUNK, node, NEXT)
    next_node = builder.load(next_link)
    yield link, node
    link.add_incoming(next_link, builder.block)
    node.add_incoming(next_node, builder.block)
    builder.branch(test)
    builder.position_at_end(after)


def _exchange_slot(builder: Builder, record: Value) -> Value:
    old = builder.atomic_rmw("xchg", builder.module.globals[SLOT], builder.ptrtoint(record, i64), "acq_rel")
    return builder.inttoptr(old, POINTER)


def _nrt_allocate(builder: Builder) -> Value:
    return _nrt(builder, "Allocate", POINTER, i64)


def _nrt(builder: Builder, name: str, result: Value, *arguments: Value) -> Value:
    """A function of Numba's runtime in C."""
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, arguments), f"NRT_{name}")


def _field(builder: Builder, struct: Value, pointer: Value, index: int) -> Value:
    return builder.gep(builder.bitcast(pointer, struct.as_pointer()), [i32(0), i32(index)])


def _load(builder: Builder, struct: Value, pointer: Value, index: int) -> Value:
    return builder.load(_field(builder, struct, pointer, index))


def _phi(builder: Builder, type_: Value, *incoming: tuple[Value, Value]) -> Value:
    phi = builder.phi(type_)
    for value, block in incoming:
        phi.add_incoming(value, block)
    return phi


def _round_up(builder: Builder, nbytes: Value) -> Value:
    return builder.and_(builder.add(nbytes, i64(ALIGNMENT - 1)), i64(-ALIGNMENT))


def _unsigned_max(builder: Builder, a: Value, b: Value) -> Value:
    return builder.select(builder.icmp_unsigned(">", a, b), a, b)


def _unsigned_min(builder: Builder, a: Value, b: Value) -> Value:
    return builder.select(builder.icmp_unsigned("<", a, b), a, b)


def _raise_memory_error(context: Context, builder: Builder) -> None:
    context.call_conv.return_user_exc(builder, MemoryError, ("no memory for what the gradient records",))

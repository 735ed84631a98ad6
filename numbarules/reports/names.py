"""Names of values as the user knows them: of the variable, or of the operation that makes a value without a name."""

from __future__ import annotations

import functools
import io
import linecache
import re
import tokenize

from ..ir.nodes import Apply, Attribute, Const, Invoke, Load, Loc, Named, Operand, Shape, Stmt, Var, View
from ..rules.table import show_key

__all__ = ["value_name"]

SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
}  # fmt: skip


def value_name(v: Var, made_by: Stmt | None, around: Loc | None = None) -> str:
    """The name of a value, or what makes it: `np.exp(...)`, `y[...]`, `x * ...`. Nothing makes a parameter of `around`."""
    if made_by is None:
        return _variable(v, around) or "a value"
    loc = made_by.loc
    if loc is not None and loc.inlined_at is not None and loc.inlined_at == loc:  # a rule's or a library's code, at the user's line
        return f"{_made(made_by, None)} inside the call"
    return _variable(v, loc) or _made(made_by, loc)


def _variable(v: Operand, loc: Loc | None) -> str:
    """The name of a variable in the user's source, empty for what has none."""
    if isinstance(v, Const):
        return repr(v)
    base = v.name.split(".")[0]
    return base if loc is not None and base in _words(loc.filename) else ""


def _made(stmt: Stmt, loc: Loc | None) -> str:
    """What makes a value that has no name."""

    def arg(i: int) -> str:
        return _variable(stmt.args[i], loc) or "..."

    match stmt.op:
        case Apply(Named(obj)):
            symbol = SYMBOLS.get(getattr(obj, "__name__", "")) if getattr(obj, "__module__", "") == "_operator" else None
            if symbol is not None and len(stmt.args) == 2:
                return f"{arg(0)} {symbol} {arg(1)}"
            if getattr(obj, "__name__", "") == "neg":
                return f"-{arg(0)}"
            return re.sub(r"^numpy\.", "np.", show_key(obj)) + "(...)"
        case Apply(Attribute(name)):
            return f"{arg(0)}.{name}"
        case Load() | View("index"):
            return f"{arg(0)}[...]"
        case Shape(axis):
            return f"{arg(0)}.shape[{axis}]"
        case Invoke(name):
            return f"{name.removesuffix('_forward')}(...)"
    return "a value"


@functools.lru_cache(maxsize=64)
def _words(filename: str) -> frozenset[str]:
    """The names in a file."""
    text = "".join(linecache.getlines(filename))
    try:
        return frozenset(t.string for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type == tokenize.NAME)
    except (tokenize.TokenError, SyntaxError):
        return frozenset(re.findall(r"\b[^\W\d]\w*", text))

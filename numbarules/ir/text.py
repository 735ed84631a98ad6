"""The IR as text, for people and for golden tests."""

from __future__ import annotations

from .nodes import Apply, Cast, Const, For, Function, If, Item, Op, Operand, Raise, Raw, Region, Rule, Shape, Stmt, View, While

__all__ = ["function_text", "region_text", "statement_text"]


def function_text(function: Function) -> str:
    """The whole function, one statement a line."""
    params = ", ".join(f"%{p.name}: {p.type}" for p in function.region.params)
    return f"def {function.name}({params}) -> {function.result}:\n{region_text(function.region, 1)}"


def region_text(region: Region, depth: int = 0) -> str:
    """The statements of a region and its `yield`."""
    lines = [statement_text(s, depth) for s in region.body]
    if region.yields is not None:
        lines.append(("    " * depth + "yield " + ", ".join(map(_operand, region.yields))).rstrip())
    return "\n".join(lines)


def statement_text(stmt: Stmt, depth: int = 0) -> str:
    """One statement, with the regions it holds below it."""
    pad = "    " * depth
    left = ", ".join(f"%{r.name}: {r.type}" for r in stmt.results)
    right = f"{_op(stmt.op)} {', '.join(map(_operand, stmt.args))}".rstrip()
    text = pad + (f"{left} = {right}" if left else right)
    for i, region in enumerate(stmt.regions):
        head = ", ".join(f"%{p.name}: {p.type}" for p in region.params)
        if i:
            text += f"\n{pad}else"
        text += (f" ({head}):" if head else ":") + "\n" + region_text(region, depth + 1)
    return text


def _operand(operand: Operand) -> str:
    return repr(operand) if isinstance(operand, Const) else f"%{operand.name}"


def _op(op: Op) -> str:
    match op:
        case Apply(callee, keywords):
            return f"{callee}" + (f"[{','.join(keywords)}]" if keywords else "")
        case View(kind, spec):
            return f"view.{kind}" + (f"[{spec}]" if spec else "")
        case Shape(axis):
            return f"shape[{axis}]"
        case Item(index):
            return f"item[{index}]"
        case Raise():
            return "raise"
        case Raw(payload):
            return f"raw[{getattr(payload, 'op', type(payload).__name__)}]"
        case Rule(name):
            return f"rule[{name}]"
        case If():
            return "if"
        case For():
            return "for"
        case While():
            return "while"
        case Cast():
            return "cast"
    name = type(op).__name__.lower()
    fields = [str(getattr(op, f)) for f in op.__dataclass_fields__ if f != "cotangent" and not (f == "wrap" and getattr(op, f))]
    return name + (f"[{','.join(fields)}]" if fields else "")

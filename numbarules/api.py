"""What users call: `grad`, `value_and_grad`, `vjp` and the `njit_grad` decorator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from ._numba import is_signature
from .analysis.effects import Effects
from .compile.dispatchers import differentiable_function, gradient_dispatcher
from .compile.jitted import register
from .compile.pullback import Pullback, value_and_pullback

__all__ = ["grad", "njit_grad", "value_and_grad", "vjp"]


def njit_grad(
    signature_or_function: Any = None,
    *,
    argnums: int | Iterable[int] = 0,
    cache: bool = False,
    locals: Mapping[str, Any] = MappingProxyType({}),
    **options: Any,
) -> Any:
    """An `@njit` function that also has gradients: `f.grad(...)` and `f.value_and_grad(...)`, by the arguments `argnums`.

    `f` is an ordinary Numba dispatcher, and so are `f.grad` and `f.value_and_grad`, which take the parameters of `f`: see
    `grad` for what they return. All three can be called from Python and from jitted code.

    Takes what `numba.njit` takes: nothing, a function, a signature or a list of signatures, for which the function and its
    gradients are then compiled at once, and Numba's options. Options that say what code means (`fastmath`, `error_model`,
    `boundscheck`) or how it runs (`nogil`) hold for gradients too. With `cache=True` compiled gradients are kept on disk, in a
    cache of their own, which notices when the function, a function that it calls, a value it refers to or a rule has changed.

    Raises DifferentiationError where `argnums` does not name parameters of the function.

    >>> import numpy as np
    >>> import numbarules as nr
    >>> @nr.njit_grad(fastmath=True)
    ... def energy(x, k):
    ...     total = 0.0
    ...     for i in range(x.size - 1):
    ...         total += 0.5 * k * (x[i + 1] - x[i]) ** 2
    ...     return total
    >>> energy.grad(np.array([0.0, 1.0, 3.0]), 2.0)
    array([-2., -2.,  4.])
    """
    if isinstance(signature_or_function, list):
        signatures = signature_or_function
    elif signature_or_function is not None and is_signature(signature_or_function):
        signatures = [signature_or_function]
    else:
        signatures = []
    options.pop("nopython", None)
    decorate = partial(differentiable_function, signatures=signatures, argnums=argnums, cache=cache, locals=locals, options=options)
    if signature_or_function is None or signatures or isinstance(signature_or_function, list):
        return decorate
    return decorate(signature_or_function)


def grad(f: Any, argnums: int | Iterable[int] = 0) -> Any:
    """The gradient of `f`, a Numba dispatcher that takes the arguments of `f`, from Python or from jitted code.

    `f`: a Python function, an `@njit` function or an `@njit_grad` function that returns one float. `argnums`: the position of
    the argument to differentiate by, or several, negative ones counted from the end: an int gives one gradient, a tuple of
    them a tuple. The gradient of an argument has the argument's structure and precision: a float32 stays one, an array gives
    a new array of its shape and dtype, a tuple a tuple; what is not float in it is None. A call never changes its arguments.

    Raises DifferentiationError where `argnums` does not name parameters of `f`; a call raises it where the result is not a
    float, an argument to differentiate by holds no float, or Numba cannot compile `f`; UnsupportedError where a derivative
    would have to pass through a construct that is not supported; AliasingError where an argument that `f` writes into
    overlaps another one; and what `f` itself raises.

    The first call at new argument types compiles, for some times as long as Numba takes for `f`; the same `f` and `argnums`
    give the same dispatcher, which compiles once.

    >>> import numbarules as nr
    >>> def area(width, height):
    ...     return width * height
    >>> nr.grad(area)(3.0, 5.0)
    5.0
    >>> nr.grad(area, argnums=(0, 1))(3.0, height=5.0)
    (5.0, 3.0)
    """
    return gradient_dispatcher(f, argnums, "grad")


def value_and_grad(f: Any, argnums: int | Iterable[int] = 0) -> Any:
    """The value of `f` and its gradient, as a Numba dispatcher that returns the pair: see `grad`.

    Costs one gradient; asking for the value and the gradient apart costs the value once more.

    >>> import numpy as np
    >>> import numbarules as nr
    >>> def half_square(x):
    ...     total = 0.0
    ...     for v in x:
    ...         total += 0.5 * v * v
    ...     return total
    >>> value, gradient = nr.value_and_grad(half_square)(np.array([3.0, 4.0]))
    >>> value
    12.5
    >>> gradient
    array([3., 4.])
    """
    return gradient_dispatcher(f, argnums, "value_and_grad")


def vjp(f: Any, *args: Any) -> tuple[Any, Pullback]:
    """The value `y` of `f` at `args`, and its pullback there: `pullback(ybar)` returns one cotangent per argument.

    `f`: a Python function, an `@njit` function or an `@njit_grad` function that returns a float, a float array, or a tuple
    with such. `ybar` has the structure and shapes of `y` (and is cast to its precision; what stands for a part of `y` that is
    not float is not looked at); the cotangent of an argument is like its gradient, see `grad`, and None for an argument that
    holds no float.

    The pullback can be called later and again, whatever became of the arguments meanwhile: what it needs is copied. It holds
    the memory of the forward sweep as long as it lives.

    Raises what `grad` raises, but for the result, which need not be a scalar; the pullback raises DifferentiationError where
    `ybar` is not of the structure and shapes of `y`.

    >>> import numpy as np
    >>> import numbarules as nr
    >>> def scaled(x, k):
    ...     return k * x
    >>> y, pullback = nr.vjp(scaled, np.array([1.0, 2.0]), 3.0)
    >>> y
    array([3., 6.])
    >>> pullback(np.array([1.0, 10.0]))
    (array([ 3., 30.]), 21.0)
    """
    return value_and_pullback(f, args)


vjp.__numbarules_derivative__ = True  # type: ignore[attr-defined]
vjp.__numbarules_effects__ = Effects(reads=True, may_raise=True)  # type: ignore[attr-defined]  # the value and what the pullback keeps are new
register(vjp)

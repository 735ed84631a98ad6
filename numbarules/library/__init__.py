"""The rules and differentiable implementations that come with the package; importing it registers them."""

from . import expansions as expansions
from . import indexing as indexing
from . import linalg as linalg
from . import products as products
from . import reductions as reductions
from . import scalar as scalar
from . import selection as selection
from . import shapes as shapes

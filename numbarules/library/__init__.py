"""The rules and differentiable implementations that come with the package; importing it registers them."""

from . import convolution as convolution
from . import covariance as covariance
from . import creation as creation
from . import cumulative as cumulative
from . import diagonals as diagonals
from . import differences as differences
from . import elementwise as elementwise
from . import expansions as expansions
from . import extremes as extremes
from . import indexing as indexing
from . import interpolation as interpolation
from . import joining as joining
from . import linalg as linalg
from . import nan_reductions as nan_reductions
from . import norms as norms
from . import polynomials as polynomials
from . import products as products
from . import quantiles as quantiles
from . import rearranging as rearranging
from . import reductions as reductions
from . import scalar as scalar
from . import sorting as sorting
from . import views as views

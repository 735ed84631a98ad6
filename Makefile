# Every target sets up what it needs: a virtual environment in $(VENV), the pinned lock, this package (editable). Done once.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.numbarules-installed

export PIP_DISABLE_PIP_VERSION_CHECK = 1
export PIP_NO_INPUT = 1
export MPLBACKEND = Agg
# One BLAS thread a process: the tests run two processes, and a benchmark must not share its cores with spinning threads.
export OPENBLAS_NUM_THREADS = 1
export MKL_NUM_THREADS = 1
# Two Numba threads wherever prange is run, so that a race has somebody to race with.
export NUMBA_NUM_THREADS ?= 2

.PHONY: demo test test-slow lint types check perf setup clean

demo: setup
	$(BIN)/python examples/ode_fit.py

test: setup
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

test-slow: setup
	$(BIN)/python -m pytest -m slow

lint: setup
	$(BIN)/python -m ruff check .

types: setup
	$(BIN)/python -m mypy

check: setup
	$(BIN)/python -m numbarules check numbarules.library numbarules.structured examples

perf: setup
	$(BIN)/python -m perf.run_kernels
	$(BIN)/python -m perf.opt_out
	$(BIN)/python -m perf.dispatch

setup: $(STAMP)

$(STAMP): requirements-dev.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps --editable .
	touch $@

clean:
	rm -rf build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis examples/ode_fit.png
	find numbarules tests perf examples -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -rf .venv

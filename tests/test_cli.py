"""The command line: reports, listings, and a check that passes what is decided by types and fails on what is planted."""

from __future__ import annotations

import os
import subprocess
import sys
from textwrap import dedent

import pytest

import numbarules as nr
from numbarules.cli import main

HEAD = "import numpy as np\nimport numbarules as nr\nfrom numba import njit, types\n"

STABLE = """
@njit
def cube(x):
    return x * x * x


@nr.rrule(cube, at=[1.5])
def cube_rule(x: nr.Real):
    def cube_pullback(ybar):
        return 3.0 * x * x * ybar
    return x * x * x, cube_pullback


@nr.njit_grad
def loss(x, k):
    return cube(x[0]) * k


def shape(x):
    return np.exp(x)


__numbarules_check__ = [(loss, (np.ones(2), 0.5)), (loss, (np.ones(2), 0.5), (0, 1)), (shape, (np.ones(2),))]
"""

UNSTABLE = """
@njit
def cube(x):
    return x * x * x


@nr.rrule(cube)
def decides_by_value(x: nr.Real):
    def cube_pullback(ybar):
        return 3.0 * x * x * ybar
    if x > 0.0:
        return None
    return x * x * x, cube_pullback


@nr.njit_grad
def loss(x):
    return cube(x) * 2.0


__numbarules_check__ = [(loss, (1.0,))]
"""

ONE = "@nr.rrule(np.kron)\ndef one(x: types.Float, y: nr.Any):\n    return x, lambda ybar: (ybar, None)\n"
OTHER = "@nr.rrule(np.kron)\ndef other(x: nr.Any, y: types.Float):\n    return x, lambda ybar: (ybar, None)\n"
UNREACHABLE = "class Nobody(nr.AbstractArray): ...\n@nr.rrule(np.kron)\ndef never(x: Nobody):\n    return x, lambda ybar: ybar\n"


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes a module; its rules, and its name, are gone at the end."""
    names = []

    def to_file(name, text):
        path = tmp_path / f"{name}.py"
        path.write_text(HEAD + dedent(text), encoding="utf-8")
        names.append(name)
        return str(path)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    with nr.rule_scope():
        yield to_file
    for name in names:
        sys.modules.pop(name, None)


def test_a_module_that_is_decided_by_types_passes(write, capsys):
    assert main(["check", write("stable_module", STABLE)]) == 0
    assert capsys.readouterr().out == "0 faults, 0 notes\n"


def test_a_rule_that_decides_by_value_fails_with_its_name_and_line(write, capsys):
    path = write("unstable_module", UNSTABLE)
    assert main(["check", path, "--quiet"]) == 1
    told = capsys.readouterr().out
    assert "decides_by_value" in told
    assert f"{path}:" in told
    assert told.endswith(("1 fault, 0 notes\n", "1 fault, 1 note\n"))


def test_a_rule_that_another_one_shadows_at_its_sample_point_fails(write, capsys):
    shadow = STABLE + "\nnr.opt_out(cube, types.float64)\n"
    assert main(["check", write("shadowed_module", shadow)]) == 1
    assert "not used at its sample point" in capsys.readouterr().out


def test_a_tie_between_packages_fails(write, capsys):
    first = write("tie_one", ONE)
    second = write("tie_other", OTHER)
    assert main(["check", first]) == 0
    capsys.readouterr()
    assert main(["check", second]) == 1
    told = capsys.readouterr().out
    assert "ambiguous" in told
    assert "tie_one.py" in told
    assert "tie_other.py" in told


def test_an_entry_that_no_call_reaches_fails(write, capsys):
    assert main(["check", write("unreachable_module", UNREACHABLE)]) == 1
    assert "unreachable" in capsys.readouterr().out


def test_signatures_say_where_to_look_and_their_lack_is_a_note(write, capsys):
    text = """
    @nr.njit_grad
    def unsaid(x):
        return x * x

    @nr.njit_grad("float64(float64)")
    def said(x):
        return x * x
    """
    assert main(["check", write("with_signature", text)]) == 0
    told = capsys.readouterr().out
    assert "note: `unsaid` is not checked" in told
    assert "`said`" not in told
    assert told.endswith("0 faults, 1 note\n")


def test_what_cannot_be_imported_is_no_finding(write, capsys):
    assert main(["check", write("broken_module", "raise ValueError('broken')")]) == 2
    assert "ValueError: broken" in capsys.readouterr().err
    assert main(["check", "no_such_module_anywhere"]) == 2
    twice = "nr.opt_out(np.kron, nr.AbstractMatrix)\nnr.opt_out(np.kron, nr.AbstractMatrix)\n"
    assert main(["check", write("twice_module", twice)]) == 2
    assert "AmbiguousRuleError" in capsys.readouterr().err


def test_the_library_has_no_faults_in_its_table():
    assert main(["check"]) == 0


def test_explain_prints_a_report_or_writes_a_page(write, capsys, tmp_path):
    path = write("explained", STABLE)
    assert main(["explain", f"{path}:loss", "--args", "np.ones(3), 2.0", "--argnums", "0,1"]) == 0
    told = capsys.readouterr().out
    assert "differentiated by x, k" in told
    assert "cube_rule" in told
    assert main(["explain", f"{path}:loss", "--args", "np.ones(3), 2.0", "--html", "page.html"]) == 0
    assert "cube_rule" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("function", "args", "says"),
    [
        ("explained.py:loss", "np.ones(3)", "missing a required argument"),
        ("explained.py:loss", "undefined_name", "cannot be evaluated"),
        ("explained.py:nothing", "", "has no nothing"),
        ("explained", "", "not of the form"),
        ("nowhere.py:f", "", "no file"),
        ("explained.py:np", "1.0", "cannot be differentiated"),
    ],
)
def test_what_cannot_be_explained(write, capsys, function, args, says):
    write("explained", STABLE)
    assert main(["explain", function, "--args", args]) == 2
    assert says in capsys.readouterr().err


def test_rules_are_listed_by_function_type_and_opt_outs(write, capsys):
    path = write("listed", "nr.opt_out(np.vdot, types.float64[::1], types.float64[::1])\n")

    def told(*arguments):
        assert main(["rules", *arguments]) == 0
        return capsys.readouterr().out

    assert "det_rule" in told("--function", "np.linalg.det")
    assert told("--function", "Array.dot") == told("--function", "np.dot")
    assert "slogdet" in told("--type", "types.float64[:, ::1]")
    assert "vdot_rule" not in told("--type", "AbstractMatrix")
    assert "numpy.vdot" in told(path, "--opt-outs", "--function", "np.vdot")
    assert told("--opt-outs", "--function", "np.linalg.qr") == "Nothing is opted out.\n"
    assert main(["rules", "--function", "no.such.function"]) == 2


def test_the_module_runs():
    found = subprocess.run([sys.executable, "-m", "numbarules", "rules", "--function", "np.linalg.qr"], capture_output=True, text=True)
    assert found.returncode == 0
    assert "qr_rule" in found.stdout


def test_output_that_nobody_reads_ends_the_command_quietly():
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as nobody:
        done = subprocess.run([sys.executable, "-m", "numbarules", "rules"], stdout=nobody, stderr=subprocess.PIPE, text=True, check=False)
    assert done.stderr == ""
    assert done.returncode == 141

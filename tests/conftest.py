"""Every function that a pass of the engine makes is verified while the tests run."""

from __future__ import annotations

from numbarules.ir import verify

verify.CHECK = True

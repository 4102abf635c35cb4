"""Fleets of takes: published as tables, re-run in thousands, asked what would have been.

The command is `retake-fleet`; from Python, `Lake` reads what was published.
"""

from .lake import Lake
from .storage import FleetError

__all__ = ["FleetError", "Lake"]

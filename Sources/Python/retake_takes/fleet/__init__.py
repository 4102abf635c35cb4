"""Fleets of takes: publish them as tables, and run thousands of them under other settings.

The command is `retake-fleet`; from Python, `Lake` reads published tables.
"""

from .lake import Lake
from .storage import FleetError

__all__ = ["FleetError", "Lake"]

"""Refuses to build the package without the schema, which is a link into the repository."""

import sys
from pathlib import Path

from setuptools import setup

if not list((Path(__file__).parent / "retake_takes/sql").glob("*.sql")):
    sys.exit(
        "retake_takes/sql: the schema is missing; it is a link into Retake's repository, so "
        "install this package from a complete copy of that")
setup()

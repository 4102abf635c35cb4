"""What a node of a cluster lacks for the work.

A node that cannot import this package cannot run its functions either, so Ray sends these by value:
they import nothing but the standard library.
"""

from collections.abc import Sequence

Lack = tuple[str, str, str]
"""What is missing: `package`, `version` or `program`; its name or version; the node's Python."""


def lack(version: str, programs: Sequence[str]) -> Lack | None:
    """Returns the first thing that this process's machine lacks; None if it has everything."""
    import os
    import sys

    try:
        import retake_takes
    except ImportError as error:
        return "package", str(error), sys.executable
    if retake_takes.__version__ != version:
        return "version", retake_takes.__version__, sys.executable
    for program in programs:
        if not os.access(program, os.X_OK):
            return "program", program, sys.executable
    return None


def sentence(node: str, lack: Lack, version: str) -> str:
    """Returns what is missing on which node, and what to do, as one sentence."""
    kind, what, python = lack
    install = (
        f"{python} -m pip install 'RETAKE/Sources/Python[fleet,ray]' there, where RETAKE is a copy "
        "of Retake's repository")
    if kind == "package":
        return f"the package retake-takes is missing on node {node} ({what}): {install}"
    if kind == "version":
        return (
            f"node {node} has version {what} of the package retake-takes, and this machine "
            f"{version}: {install}")
    return f"the program {what} is missing on node {node}: install Retake there under that path"

"""Takes of WebRTC sessions in Python.

A take is one recorded session: one SQLite file. `open` reads it without the executable: its tables
and views as data frames, its packets and encoded frames one by one. Functions that need the stack
itself (`findings`, `replay`, `verify`, `whatif`, `import_`) run the program `retake`, which is
found on PATH, in the variable RETAKE, or where `executable=` says.

    import retake_takes as retake
    take = retake.open("call.take")
    take.pandas("bitrate").plot(x="second", y="bits_per_second")
"""

from .command import (
    CommandError, Finding, Findings, ImportResult, Outcome, PeerComparison, ReplayResult,
    VerifyResult, WhatIf, executable, findings, import_, replay, verify, whatif,
)
from .take import Frame, NoTake, Packet, Take, open

__all__ = [
    "CommandError", "Finding", "Findings", "Frame", "ImportResult", "NoTake", "Outcome", "Packet",
    "PeerComparison", "ReplayResult", "Take", "VerifyResult", "WhatIf", "executable", "findings",
    "import_", "open", "replay", "verify", "whatif",
]
__version__ = "0.1.0"

"""Two voices that take turns: one is a browser's microphone, the other the file that Retake
sends."""

import array
import shutil
import subprocess
import wave

# The length of each turn, and the sentence repeated during it.
TURN_SECONDS = 3.0
_VOICES = [
    ("en-us", "The quick brown fox jumps over the lazy dog and runs away through the high grass."),
    ("en-us+f3", "Peter Piper picked a peck of pickled peppers on the way down to the old mill."),
]


def make(folder):
    """Writes a file for each voice; played in a loop from the same moment on, one speaks at a
    time."""
    program = shutil.which("espeak-ng")
    if program is None:
        raise FileNotFoundError("no espeak-ng in PATH: run `make deps-interop`")
    return [_turn(program, folder, number, *voice) for number, voice in enumerate(_VOICES)]


def _turn(program, folder, number, voice, text):
    said = folder / f"said-{number}.wav"
    subprocess.run([program, "-v", voice, "-w", said, text], check=True, capture_output=True)
    with wave.open(str(said)) as source:
        rate = source.getframerate()
        samples = array.array("h", source.readframes(source.getnframes()))
    length = int(rate * TURN_SECONDS)
    # A pause at the end separates the turns.
    spoken = samples[: int(length * 0.95)]
    turn = spoken + array.array("h", bytes(2 * (length - len(spoken))))
    pause = array.array("h", bytes(2 * length))
    path = folder / f"voice-{number}.wav"
    with wave.open(str(path), "wb") as target:
        target.setnchannels(1)
        target.setsampwidth(2)
        target.setframerate(rate)
        target.writeframes((pause + turn if number else turn + pause).tobytes())
    return path

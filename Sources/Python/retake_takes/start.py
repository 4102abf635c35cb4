"""Starts `retake-fleet`; an interrupt while its modules are imported prints no traceback."""

import sys


def main() -> None:
    try:
        from .fleet.cli import main as run
    except KeyboardInterrupt:
        print("retake-fleet: it was interrupted", file=sys.stderr)
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()

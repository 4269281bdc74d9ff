"""The program: ``python -m typelift``, and ``typelift`` on the command line."""

import signal
import sys

from typelift import _typelift


def main() -> None:
    """Runs the program with the arguments of this process, and exits with its status."""
    # Python's own handler would wait for the program to end.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_typelift.run(["typelift", *sys.argv[1:]]))


if __name__ == "__main__":
    main()

"""``unmask`` and ``python -m unmask``: the command line."""

import atexit
import signal
import sys


def main() -> None:
    """Run a command; one that is stopped while it loads says so in one line."""
    # After the last line a large library takes seconds to leave memory, without a handler of
    # signals: Ctrl-C would then end a finished command as if it had failed.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    try:
        from unmask.cli import main as run

        run()
    except KeyboardInterrupt:
        print("unmask: stopped; run the same command again", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()

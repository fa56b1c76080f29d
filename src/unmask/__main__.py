"""``unmask`` and ``python -m unmask``: the command line."""

import sys


def main() -> None:
    """Run a command; one that is stopped while it loads says so in one line."""
    try:
        from unmask.cli import main as run

        run()
    except KeyboardInterrupt:
        print("unmask: stopped; run the same command again", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()

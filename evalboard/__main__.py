"""The program: `evalboard`, or `python -m evalboard`."""

import signal


def main() -> None:
    """Load the command line and run it. Ctrl-C while it loads ends the program without a traceback."""
    is_python = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_python:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from evalboard.cli.main import main as run

    if is_python:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


if __name__ == "__main__":
    main()

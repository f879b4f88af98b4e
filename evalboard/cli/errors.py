"""Why a command ends without its result: one sentence, and the exit code of docs/cli.md."""

NO_SHIP, INCONCLUSIVE, NOT_COMPARABLE = 1, 2, 3  # ship is 0
FAILED = 4  # the run failed or is incomplete, or the server could not be reached
WRONG_USE = 64
INTERRUPTED = 130


class CommandError(Exception):
    """Told on stderr as it is; never with a traceback."""

    exit_code = FAILED


class WrongUse(CommandError):
    """What was asked for cannot be: an option, a file, a name that does not exist, a right that is missing."""

    exit_code = WRONG_USE


class Unreachable(CommandError):
    """No answer came, or none that says whether the server did its work. Asking again may help."""

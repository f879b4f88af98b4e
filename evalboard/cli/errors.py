"""Exit codes of docs/cli.md, and which of them an error ends a command with."""

from evalboard.client.errors import WrongUse
from evalboard.core.errors import EvalboardError, InvalidInput

NO_SHIP, INCONCLUSIVE, NOT_COMPARABLE = 1, 2, 3  # ship is 0
FAILED = 4  # the run failed or is incomplete, or the server could not be reached
LIMIT_REACHED = 5  # of --fail-on-lean, or another --fail-on
WRONG_USE = 64
FAULT = 70  # of Evalboard itself
INTERRUPTED = 130
OUTPUT_CLOSED = 141  # as a shell says that SIGPIPE ended it


class CommandError(EvalboardError):
    """The command ends without a result; the detail says why."""

    code = "command_failed"
    title = "The command has no result"


def exit_code(problem: EvalboardError) -> int:
    return WRONG_USE if isinstance(problem, WrongUse | InvalidInput) else FAILED

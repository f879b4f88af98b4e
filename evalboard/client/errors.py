"""Errors of the client: each is one sentence for a person."""

from evalboard.core.errors import EvalboardError


class WrongUse(EvalboardError):
    """What was asked for cannot be: an option, a file, a name that does not exist, a right that is missing."""

    code = "wrong_use"
    title = "What was asked for cannot be"


class Unreachable(EvalboardError):
    """No answer came, or none that says whether the server did its work. Asking again may help."""

    code = "unreachable"
    title = "The server does not answer"
    status = 503

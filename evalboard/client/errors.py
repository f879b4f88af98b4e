"""Errors of the client: each is one sentence for a person."""

from evalboard.core.errors import EvalboardError


class WrongUse(EvalboardError):
    """The request is wrong: an unknown option, file or name, or a missing right."""

    code = "wrong_use"
    title = "The request cannot be fulfilled"


class Unreachable(EvalboardError):
    """No answer, or none that shows whether the server did the work. Trying again may help."""

    code = "unreachable"
    title = "The server does not answer"
    status = 503

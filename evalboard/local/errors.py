"""Why the one-machine set-up cannot start or go on."""

from evalboard.core.errors import EvalboardError


class CannotStart(EvalboardError):
    """Something outside the product is in the way; the detail says what, and what to do about it."""

    code = "cannot_start"
    title = "Evalboard cannot start"
    status = 503

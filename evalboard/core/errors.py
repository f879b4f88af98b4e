"""The errors of the product. Each says what happened, where, and what to do.

The HTTP status stands on the class, so that one place turns any of them into a
problem document (`runs/api/problems.py`) or an error page.
"""


class EvalboardError(Exception):
    """Base of all errors that a person can cause or mend.

    `code` is stable and machine-readable; `detail` is one sentence for a person;
    `fields` maps the path of an input field to what is wrong with it.
    """

    code = "error"
    title = "Something went wrong"
    status = 400

    def __init__(self, detail: str, *, fields: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.fields = fields or {}


class InvalidInput(EvalboardError):
    """The input is not valid; `fields` has the problems by path."""

    code = "invalid_input"
    title = "The input is not valid"


class NotFound(EvalboardError):
    code = "not_found"
    title = "There is no such thing"
    status = 404


class Conflict(EvalboardError):
    """The request is well formed but does not fit the present state."""

    code = "conflict"
    title = "The request does not fit the present state"
    status = 409


class Refused(EvalboardError):
    """The person or token may not do this."""

    code = "refused"
    title = "You may not do this"
    status = 403


class LinkSpent(Refused):
    """A sign-in link was used before, or is too old."""

    title = "This link cannot sign you in"


class ProfileRefused(EvalboardError):
    """The hardware cannot honour what the profile promises."""

    code = "profile_refused"
    title = "This hardware cannot honour the profile"
    status = 422


class TraceDamaged(EvalboardError):
    """Stored trace bytes are of an unknown version or do not match their checksum."""

    code = "trace_damaged"
    title = "A stored trace cannot be read"
    status = 500


class LeaseLost(EvalboardError):
    """Another attempt took the shard; everything this attempt still writes is refused."""

    code = "lease_lost"
    title = "The shard was taken by another attempt"
    status = 409

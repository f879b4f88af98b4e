"""The audit trail: who changed what, and whether its lines are whole."""

from typing import Annotated

from evalboard.contract.base import Contract, Count, Instant, says

ACTORS = ("person", "token", "anonymous", "operator", "database")
ACTS = ("created", "changed", "deleted", "signed_in", "sign_in_failed", "link_made", "refused", "cut")
KINDS_AUDITED = (
    "anchor set",
    "audit trail",
    "baseline",
    "comment",
    "deletion",
    "end of the tour",
    "endpoint",
    "experiment",
    "follow",
    "forced scoring",
    "import",
    "import reading",
    "judging",
    "label",
    "message",
    "model name",
    "person",
    "policy",
    "probe",
    "profile",
    "release",
    "repeat",
    "replay",
    "retention rule",
    "rollout series",
    "rollout step",
    "run",
    "schedule",
    "score",
    "scorer",
    "scoring",
    "session",
    "settling",
    "sign-off",
    "suite",
    "suite version",
    "token",
    "trial",
    "upload",
    "webhook",
)


class AuditLine(Contract):
    """One change of one row by a person, a token or the operator of the server, or one security event."""

    number: Annotated[int | None, says(description="its place in the chain")]
    at: Instant
    actor: Annotated[str, says(enum=ACTORS, description="operator: manage.py on the server; database: past Evalboard")]
    person: Annotated[str, says(description="name of the person, or of the server's account")]
    credential: Annotated[str, says(description="the token by its label, or a digest of the session")]
    address: str
    via: Annotated[str, says(description="the method and the name of the address, or the command")]
    act: Annotated[str, says(enum=ACTS)]
    kind: Annotated[str, says(description="of what was changed, such as run; empty where nothing was")]
    subject: Annotated[str, says(description="its id")]
    name: str
    changes: Annotated[
        dict[str, tuple[str | None, str | None]],
        says(description="by field: before and after, as text. Secrets are hidden, long texts are digests"),
    ]
    request_id: str
    role: Annotated[str, says(description="the role that was connected to the database")]
    previous: Annotated[str, says(description="the digest of the line before")]
    digest: str


class AuditChain(Contract):
    """The result of following exported lines, each of which has the digest of the line before."""

    n_lines: Count
    first: Annotated[int | None, says(description="number of the oldest line that is kept")]
    last: int | None
    digest: Annotated[str, says(description="of the last line; it covers all lines before")]
    broken: Annotated[int | None, says(description="number of the first line that is not as it was written")]
    problem: str


class AuditCheck(AuditChain):
    """Whether the lines of the audit trail are whole: numbers, digests and seals."""

    sealed_to: Annotated[int | None, says(description="the newest sealed line; null where nothing is sealed")]
    is_whole: bool

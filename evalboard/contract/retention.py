"""Rules that delete old answers, what they would delete, what was deleted, and what suites take."""

from typing import Annotated

from evalboard.contract.base import Contract, Count, Id, Instant, says

WHAT = ("traces", "texts", "runs")


class RetentionRule(Contract):
    """Delete something of runs that ended long ago."""

    id: Id
    what: Annotated[
        str,
        says(
            enum=WHAT,
            description="traces: tokens and logprobs; texts: answers as well, and what quotes them; runs: everything",
        ),
    ]
    days: Annotated[int, says(minimum=1, description="since the run ended, or its log was imported")]
    suite: Annotated[str | None, says(description="only its runs; null: all")]
    label: Annotated[str, says(description="only runs with this label, as key=value; empty: any")]
    text: Annotated[str, says(description="the rule in words, as tombstones name it")]
    created_by: str | None
    created_at: Instant


class DueDeletion(Contract):
    """What a rule deletes at the next sweep."""

    run: Id
    what: Annotated[str, says(enum=WHAT)]
    rule: Annotated[str, says(description="in words")]
    n_responses: Count
    n_bytes: Annotated[int, says(minimum=0, description="of the database, about")]


class Deletion(Contract):
    """The tombstone of something that was deleted."""

    id: Id
    what: Annotated[str, says(enum=(*WHAT, "case"))]
    run: Annotated[Id | None, says(description="which may be gone too; null: a case")]
    suite: str | None
    version: Annotated[int | None, says(description="of the suite")]
    case: Annotated[str, says(description="empty: all cases of the run")]
    why: Annotated[str, says(description="the rule in words, or the reason that a person gave")]
    n_responses: Count
    n_bytes: Annotated[int, says(minimum=0, description="about")]
    by: Annotated[str | None, says(description="null: a rule")]
    at: Instant


class SuiteStorage(Contract):
    """Bytes of the database that the runs of a suite take, without indexes."""

    suite: str
    n_runs: Count
    n_responses: Count
    traces: Annotated[int, says(minimum=0, description="tokens and logprobs, packed")]
    texts: Annotated[int, says(minimum=0, description="answers with their provenance")]
    scores: Annotated[int, says(minimum=0, description="scores, reasons and digests, packed")]

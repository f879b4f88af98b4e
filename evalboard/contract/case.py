"""The history of one case over the runs of its suite."""

from typing import Annotated, Any

from evalboard.contract.base import (
    Contract,
    Count,
    Digest,
    Id,
    Instant,
    Number,
    PageAddress,
    Score,
    Share,
    page_only,
    says,
)
from evalboard.contract.excerpt import AnswerExcerpt

ChangedFact = Annotated[str, says(enum=("model", "server", "endpoint", "profile", "case", "scorer"))]


class CaseChange(Contract):
    """A fact that differs from the run before."""

    what: ChangedFact
    before: str
    after: str


class CaseRepeat(Contract):
    """One response. answer: the letter of its text, null if the response is missing; error: why it is.

    is_sample: false for an answer from a cache or a fallback, which no count includes.
    """

    repeat: Number
    answer: str | None
    score: Score | None
    error: str | None
    is_sample: bool


class CaseRun(Contract):
    """One run's responses to the case. changes: what differs from the run before it."""

    run: Id
    ran_at: Instant
    model: str
    server: str
    changes: tuple[CaseChange, ...]
    repeats: tuple[CaseRepeat, ...]
    url: PageAddress


class CaseAnswer(Contract):
    """One distinct answer. text: its start; excerpt: around its first difference from answer A.

    A is the most frequent right answer, else the most frequent. n_repeats of the newest `runs` gave it. run, repeat:
    its newest response, whose score and reason these are.
    """

    letter: str
    text: str
    is_cut: bool
    excerpt: AnswerExcerpt
    n_repeats: Count
    runs: tuple[Id, ...]
    run: Id
    repeat: Number
    score: Score | None
    reason: str | None


class LastingChange(Contract):
    """The last change of a case's results: since `run`, every repeat passes, or every repeat fails.

    before: the run before it. chance: the probability of as many equal runs by chance, from the results before.
    """

    is_pass: bool
    run: Id
    before: Id
    n_passed_before: Count
    n_before: Count
    n_after: Count
    n_runs_after: Count
    changes: tuple[CaseChange, ...]
    chance: Share


class CaseHistory(Contract):
    """A case over the runs of its suite, newest first, matched by id over all versions of the suite.

    claim and rest: the history in words. change and answers: of the newest `n_runs_read` runs of `n_runs`. runs: the
    requested part. endpoints: ours that ran it, which can decode it now. version, digest: of the newest version.
    """

    suite: str
    case: str
    version: Number
    digest: Digest
    prompt: str
    target: Any
    tags: tuple[str, ...]
    claim: str
    rest: tuple[str, ...]
    n_runs: Count
    n_runs_read: Count
    n_repeats: Count
    n_passed: Count
    n_answers: Count
    change: LastingChange | None
    answers: tuple[CaseAnswer, ...]
    runs: tuple[CaseRun, ...]
    endpoints: tuple[str, ...]
    url: PageAddress
    messages: tuple[Any, ...] = page_only  # as sent

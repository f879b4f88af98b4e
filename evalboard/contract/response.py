"""Responses of a run, one by one and case by case."""

from collections import Counter
from typing import Annotated, Any

from evalboard.contract.base import Contract, Count, Digest, Instant, Number, PageAddress, Score, page_only, says
from evalboard.contract.parts import ResponseError

Mark = Annotated[str, says(enum=("cached", "fallback", "retried"))]  # core.stats.MARKS, which would bring numpy
ENDINGS = ("complete", "cut", "filtered", "refused", "empty", "unknown")  # core.trace.Ending, of answers that are there

FlipChance = Annotated[
    float | None,
    says(description="from the first repeat's margins; null if not greedy, or without alternatives"),
]


class ResponseContent(Contract):
    """The response to a case in one repeat."""

    repeat: Number
    text: Annotated[str, says(description="the answer; words and tool calls together are JSON (docs/suites.md)")]
    reasoning: Annotated[str | None, says(description="the model's thinking; null if not stored separately")]
    n_reasoning_tokens: Annotated[
        Count | None, says(description="number of the trace's first tokens that are thinking, including tags")
    ]
    is_truncated: Annotated[
        bool | None, says(description="cut during thinking, so there is no answer; null like `reasoning`")
    ]
    finish_reason: str | None
    ending: Annotated[str | None, says(enum=ENDINGS, description="how it ended; null if missing or unknown")]
    error: ResponseError | None
    reason: str | None
    trace_digest: Digest | None


class Response(ResponseContent):
    """One response."""

    case: str
    case_index: Count
    score: Annotated[Score | None, says(description="by the suite's own scorer")]
    flip_chance: FlipChance
    is_vouched: Annotated[bool, says(description="whether the engine's self-checks vouch for it")]
    marks: Annotated[tuple[Mark, ...], says(description="marks from the log (docs/imports.md)")]
    trace_reason: Annotated[str | None, says(description="why its tokens are shown but not measured (docs/imports.md)")]
    provenance: dict[str, Any]
    recorded_at: Instant
    place: int = page_only  # in lists: by repeat, then by case


class CaseOfRun(Contract):
    """One case over the repeats of a run."""

    case: str
    case_index: Count
    tags: tuple[str, ...]
    score: Annotated[
        Score | None, says(description="the mean of scores; null also if several buckets answered the case")
    ]
    scores: Annotated[tuple[Score | None, ...], says(description="by repeat; null if missing or not scored yet")]
    reason: Annotated[
        str | None,
        says(description="of the first repeat with the lowest score, or an answer without one; `url` shows it"),
    ]
    errors: Annotated[tuple[str, ...], says(description="codes of its missing responses")]
    marks: Annotated[tuple[tuple[Mark, ...], ...], says(description="of each repeat's response (docs/imports.md)")]
    n_texts: Annotated[int, says(minimum=0, description="distinct answers")]
    is_unstable: Annotated[bool, says(description="read from answers that are neither `cached` nor `fallback`")]
    flip_chance: FlipChance
    url: PageAddress
    prompt: str = page_only  # the last message, cut to what a list has room for
    shown: int = page_only  # the repeat that `url` shows
    n_traces: int = page_only  # different ones
    is_likely_to_flip: bool = page_only
    answer: str | None = page_only  # the start of the response that `url` shows; None where missing, or not read
    served_by: tuple[str, ...] = page_only  # a bucket's letter by repeat, where several served the run

    @property
    def marked(self) -> dict[str, int]:
        """Count the responses that carry each mark."""
        return dict(Counter(name for names in self.marks for name in names))

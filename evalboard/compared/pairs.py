"""The pairs of a comparison that differ, as lists of them show each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalboard.compared.report import draw_token, to_points
from evalboard.contract.compare import ComparedCase
from evalboard.core.compare import Cause
from evalboard.core.trace import Vocabulary
from evalboard.wording.cause import explain_cause

ORDER = ("consequence", "case_index", "repeat_baseline", "repeat_candidate")
WIDTHS = (10**2, 10**8, 10**4, 10**4)  # of the parts of a place
OWN = {"buckets"}  # in a pair's evidence, for lists alone


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedCase:
    """A pair's context in a list. replay: the command that decodes it again, "" without one."""

    case: str
    tags: tuple[str, ...]
    url: str
    replay: str = ""


def write_pair(
    pair: Any,
    listed: ListedCase,
    by_letter: Mapping[int, str],
    words: Sequence[Vocabulary | None],
) -> ComparedCase:
    """Return a row of the list. pair: a `Flip`, or a record with its fields. words: of both sides' tokens."""
    evidence = {name: value for name, value in pair.evidence.items() if name not in OWN}
    served = [by_letter.get(bucket, "") for bucket in pair.evidence["buckets"]]
    cause = Cause(pair.cause, pair.numeric or None, pair.evidence)
    return ComparedCase.from_record(
        pair,
        case=listed.case,
        numeric=pair.numeric or None,
        text=explain_cause(cause, replay=listed.replay, backends=served),
        evidence=evidence,
        score_baseline=to_points(pair.score_baseline),
        score_candidate=to_points(pair.score_candidate),
        backend_baseline=served[0] or None,
        backend_candidate=served[1] or None,
        url=listed.url,
        place=place_of(pair),
        tags=listed.tags,
        text_position=pair.evidence["text_position"],
        n_tokens_baseline=pair.evidence["n_tokens_baseline"],
        n_tokens_candidate=pair.evidence["n_tokens_candidate"],
        token_baseline=draw_token(pair.token_baseline, words[0]),
        token_candidate=draw_token(pair.token_candidate, words[1]),
    )


def place_of(pair: Any) -> int:
    """Return the pair's place in the list as one number, as cursors have it: at most 18 digits."""
    place: int = 0
    for name, width in zip(ORDER, WIDTHS, strict=True):
        place = place * width + min(int(getattr(pair, name)), width - 1)
    return place

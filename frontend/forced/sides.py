"""Forced scorings on other pages: of a comparison's sides, their pairs, and single responses."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evalboard.contract.forced import ForcedCost, ForcedScoring
from evalboard.contract.pair import TracePair
from evalboard.wording.forced import describe_distance
from runs.forced import (
    AnswerElsewhere,
    ForcedMark,
    ForcedStrip,
    answers_elsewhere,
    forced_sides,
    forced_strip,
    has_forced,
)
from runs.models import ComparisonRecord

STRIP_WIDTH = 600  # of a strip's drawing; a page stretches it


@dataclass(frozen=True, slots=True)
class Scored:
    """One side's scoring. side: whose tokens; stack: "its own" or the other side's.

    sentence: the distance, "" until known.
    """

    side: str
    stack: str
    scoring: ForcedScoring
    sentence: str


@dataclass(frozen=True, slots=True)
class Offer:
    """A comparison's forced scorings, and whether more can be requested."""

    scored: tuple[Scored, ...]
    is_askable: bool
    cost: ForcedCost | None


@dataclass(frozen=True, slots=True)
class TokenTick:
    """A token that is not the other stack's first choice, on the strip and as a link to its position."""

    position: int
    x: float
    first_choice: str
    url: str


@dataclass(frozen=True, slots=True)
class TokenStrip:
    side: str
    scoring: str
    other_run: str
    n_tokens: int
    n_agreed: int
    ticks: tuple[TokenTick, ...]

    @property
    def positions(self) -> frozenset[int]:
        return frozenset(tick.position for tick in self.ticks)


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """One response scored by another stack, or by its trainer (ticks: ratios beyond the clip range)."""

    name: str
    is_trainer: bool
    scoring: str
    n_tokens: int
    n_agreed: int
    ticks: tuple[TokenTick, ...]
    of: AnswerElsewhere


@dataclass(frozen=True, slots=True)
class TokenElsewhere:
    """One token there, in nats, None if unknown. first_choice: "" if equal or unknown."""

    name: str
    logprob: float | None
    log_ratio: float | None
    first_choice: str


def elsewhere(run_id: int, repeat: int, case_id: str) -> tuple[Elsewhere, ...]:
    """Return a response of a run on each stack that scored it."""
    if not has_forced(run_id):
        return ()
    return tuple(_elsewhere(each) for each in answers_elsewhere(run_id, repeat, case_id))


def token_elsewhere(strips: Sequence[Elsewhere], at: int) -> tuple[TokenElsewhere, ...]:
    """Return one token of the response there, in the order of the strips."""
    return tuple(
        TokenElsewhere(
            strip.name,
            strip.of.logprob(at),
            strip.of.log_ratio(at),
            next((tick.first_choice for tick in strip.ticks if tick.position == at), ""),
        )
        for strip in strips
        if at < strip.n_tokens
    )


def _elsewhere(answer: AnswerElsewhere) -> Elsewhere:
    ticks = tuple(_tick(mark, answer.n_tokens, "?at={}".format) for mark in answer.marks)
    name = "the trainer" if answer.endpoint is None else answer.endpoint
    return Elsewhere(
        name,
        answer.endpoint is None,
        answer.scoring,
        answer.n_tokens,
        answer.n_tokens - len(ticks),
        ticks,
        answer,
    )


def _tick(mark: ForcedMark, n_tokens: int, url_at: Callable[[int], str]) -> TokenTick:
    x = round(STRIP_WIDTH * mark.position / n_tokens, 1)
    return TokenTick(mark.position, x, mark.first_choice, url_at(mark.position))


def offer(comparison: ComparisonRecord) -> Offer | None:
    """Return the forced scorings of a comparison's record; None for a run with itself."""
    if comparison.baseline_id == comparison.candidate_id:
        return None
    sides = forced_sides(comparison.baseline, comparison.candidate)
    named = (
        ("baseline", "the candidate’s", sides.scored.baseline),
        ("baseline", "its own", sides.scored.baseline_own),
        ("candidate", "the baseline’s", sides.scored.candidate),
        ("candidate", "its own", sides.scored.candidate_own),
    )
    scored = tuple(
        Scored(side, stack, scoring, describe_distance(scoring))
        for side, stack, scoring in named
        if scoring is not None
    )
    return Offer(scored, sides.is_askable, sides.cost) if scored or sides.is_askable else None


def strips(pair: TracePair, url_at: Callable[[int], str]) -> tuple[TokenStrip, ...]:
    """Return each side's response on the other side's stack, as far as scored and aligned by tokens.

    url_at: the pair's page at a position.
    """
    if pair.is_same_run or pair.is_approximate or not pair.has_forced:
        return ()
    named = (("baseline", pair.baseline, pair.candidate), ("candidate", pair.candidate, pair.baseline))
    read = (
        (side, forced_strip(int(of.run), of.repeat, pair.case, other_id=int(other.run))) for side, of, other in named
    )
    return tuple(_strip(side, strip, url_at) for side, strip in read if strip is not None)


def _strip(side: str, strip: ForcedStrip, url_at: Callable[[int], str]) -> TokenStrip:
    ticks = tuple(_tick(mark, strip.n_tokens, url_at) for mark in strip.marks)
    return TokenStrip(side, strip.scoring, strip.other_run, strip.n_tokens, strip.n_tokens - len(ticks), ticks)

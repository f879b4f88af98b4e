"""Forced scorings on other pages: of a comparison's sides, their pairs, responses and runs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evalboard.contract.forced import ForcedScoring
from evalboard.contract.pair import TracePair
from evalboard.contract.run import Run
from evalboard.wording.forced import describe_distance, describe_furthest, judge_trainer
from evalboard.wording.on_policy import KINDS
from frontend.shell.findings import Item, Part
from runs import acts
from runs.forced import (
    AnswerElsewhere,
    ForcedMark,
    ForcedStrip,
    answers_elsewhere,
    forced_sides,
    forced_strip,
    reported_scoring,
)
from runs.models import ComparisonRecord
from runs.pairs.scored_answers import has_forced

HEAD = "forced/_head.html"
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

    def token(self, at: int) -> "TokenElsewhere":
        """Return one token of the response there."""
        first_choice = next((tick.first_choice for tick in self.ticks if tick.position == at), "")
        return TokenElsewhere(self.name, self.of.logprob(at), self.of.log_ratio(at), first_choice)


@dataclass(frozen=True, slots=True)
class TokenElsewhere:
    """One token there, in nats, None if unknown. first_choice: "" if equal or unknown."""

    name: str
    logprob: float | None
    log_ratio: float | None
    first_choice: str


def elsewhere(run_id: int, repeat: int, case_id: str) -> Part | None:
    """Return a response of a run on each stack that scored it."""
    strips = tuple(map(_elsewhere, answers_elsewhere(run_id, repeat, case_id))) if has_forced(run_id) else ()
    templates = {"head": HEAD, "tokens": "forced/_elsewhere.html", "token": "forced/_token.html"}
    marks = frozenset(tick.position for strip in strips for tick in strip.ticks)
    return Part(templates, {"elsewhere": strips}, marks={"": marks}) if strips else None


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


def offer(comparison: ComparisonRecord, viewer: Any) -> Part | None:
    """Return the forced scorings of a comparison, and whether a person may request more."""
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
    runs = comparison.baseline_id, comparison.candidate_id
    may_force = sides.is_askable and acts.can_on_runs("force", runs, viewer)
    shown = {"scored": scored, "may_force": may_force, "cost": sides.cost}
    templates = {"head": HEAD, "actions": "forced/_ask.html", "sides": "forced/_compare.html"}
    return Part(templates, {"forced": shown}) if scored or sides.is_askable else None


def strips(pair: TracePair, url_at: Callable[[int], str]) -> Part | None:
    """Return each side's response on the other side's stack, as far as scored and aligned by tokens.

    url_at: the pair's page at a position.
    """
    if pair.is_same_run or pair.is_approximate or not pair.has_forced:
        return None
    named = (("baseline", pair.baseline, pair.candidate), ("candidate", pair.candidate, pair.baseline))
    read = (
        (side, forced_strip(int(of.run), of.repeat, pair.case, other_id=int(other.run))) for side, of, other in named
    )
    drawn = tuple(_strip(side, strip, url_at) for side, strip in read if strip is not None)
    marks = {strip.side: frozenset(tick.position for tick in strip.ticks) for strip in drawn}
    return Part({"head": HEAD, "tokens": "forced/_strips.html"}, {"strips": drawn}, marks=marks) if drawn else None


def trainer(run: Run) -> Part | None:
    """Return whether training is on-policy, and where it is least so, of a run of rollouts."""
    scoring = reported_scoring(int(run.id)) if run.is_reported else None
    if scoring is None or scoring.figures is None:
        return None
    kind = KINDS.get(judge_trainer(scoring) or "", "info")
    worst = scoring.figures.worst
    if worst is None or not worst.log_ratio:
        return Part(items=(Item(kind, scoring.reading[0], link=("The numbers", f"{scoring.url}#numbers")),))
    link = ("The answers furthest off", f"{scoring.url}#worst")
    return Part(items=(Item(kind, scoring.reading[0], describe_furthest(worst.log_ratio), link=link),))


def _strip(side: str, strip: ForcedStrip, url_at: Callable[[int], str]) -> TokenStrip:
    ticks = tuple(_tick(mark, strip.n_tokens, url_at) for mark in strip.marks)
    return TokenStrip(side, strip.scoring, strip.other_run, strip.n_tokens, strip.n_tokens - len(ticks), ticks)


PARTS = (("comparison", offer), ("pair", strips), ("response", elsewhere), ("imported_run", trainer))

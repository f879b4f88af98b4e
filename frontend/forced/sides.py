"""Both sides of a comparison on both stacks, for its page and the pages of its pairs."""

from collections.abc import Callable
from dataclasses import dataclass

from evalboard.contract.forced import ForcedCost, ForcedScoring
from evalboard.contract.pair import TracePair
from evalboard.wording.forced import describe_distance
from runs.forced import ForcedStrip, forced_sides, forced_strip, has_forced

STRIP_WIDTH = 600  # of a strip's drawing; a page stretches it


@dataclass(frozen=True, slots=True)
class Scored:
    """One side's scoring. side: whose tokens; stack: "its own" or the other side's. sentence: how far that one is, ""
    until it is known.
    """

    side: str
    stack: str
    scoring: ForcedScoring
    sentence: str


@dataclass(frozen=True, slots=True)
class Offer:
    """What a comparison's page says of forced scorings; nothing where none is there and none can be asked for."""

    scored: tuple[Scored, ...]
    is_askable: bool
    cost: ForcedCost | None


@dataclass(frozen=True, slots=True)
class Tick:
    """A token that is not the other stack's first choice, on the strip and as a link to its position."""

    position: int
    x: float
    first_choice: str
    url: str


@dataclass(frozen=True, slots=True)
class Strip:
    side: str
    scoring: str
    other_run: str
    n_tokens: int
    n_agreed: int
    ticks: tuple[Tick, ...]


def offer(baseline: int, candidate: int) -> Offer | None:
    """Return what two runs' comparison says and offers; None for a run against itself."""
    if baseline == candidate:
        return None
    sides = forced_sides(baseline, candidate)
    named = (
        ("baseline", "the candidate’s", sides.baseline),
        ("baseline", "its own", sides.baseline_own),
        ("candidate", "the baseline’s", sides.candidate),
        ("candidate", "its own", sides.candidate_own),
    )
    scored = tuple(
        Scored(side, stack, scoring, describe_distance(scoring))
        for side, stack, scoring in named
        if scoring is not None
    )
    return Offer(scored, sides.is_askable, sides.cost) if scored or sides.is_askable else None


def strips(pair: TracePair, url_at: Callable[[int], str]) -> tuple[Strip, ...]:
    """Return each side's response on the other side's stack, as far as it was scored there and steps are tokens.

    url_at: the pair's page at a position.
    """
    if pair.is_same_run or pair.is_approximate or not has_forced(*pair.run_ids):
        return ()
    named = (("baseline", pair.baseline, pair.candidate), ("candidate", pair.candidate, pair.baseline))
    read = (
        (side, forced_strip(int(of.run), of.repeat, pair.case, other_id=int(other.run))) for side, of, other in named
    )
    return tuple(_strip(side, strip, url_at) for side, strip in read if strip is not None)


def _strip(side: str, strip: ForcedStrip, url_at: Callable[[int], str]) -> Strip:
    ticks = tuple(
        Tick(
            mark.position,
            round(STRIP_WIDTH * mark.position / strip.n_tokens, 1),
            mark.first_choice,
            url_at(mark.position),
        )
        for mark in strip.marks
    )
    return Strip(side, strip.scoring, strip.other_run, strip.n_tokens, strip.n_tokens - len(ticks), ticks)

"""Where the prompts of two responses differ, token by token."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Side = Literal["both", "baseline", "candidate"]

MAX_COMPARED = 1500  # tokens of each side, between the ends that they share: beyond, matching takes seconds
CONTEXT = 12  # tokens shown on either side of a difference


@dataclass(frozen=True, slots=True)
class PromptPart:
    """A piece of the prompts: token ids that `side` has. n_left_out: how many of a shared piece are not shown here."""

    side: Side
    ids: tuple[int, ...]
    n_left_out: int = 0


def find_prompt_parts(baseline: Sequence[int], candidate: Sequence[int]) -> tuple[PromptPart, ...]:
    """Return the pieces in order, shared ones cut to what stands next to a difference; none where nothing differs."""
    if list(baseline) == list(candidate):
        return ()
    start = _common(baseline, candidate)
    end = _common(baseline[start:][::-1], candidate[start:][::-1])
    ours, theirs = list(baseline[start : len(baseline) - end]), list(candidate[start : len(candidate) - end])
    parts = [*_both(baseline[:start], is_first=True), *_differing(ours, theirs)]
    return (*parts, *_both(baseline[len(baseline) - end :], is_last=True))


def _differing(ours: list[int], theirs: list[int]) -> list[PromptPart]:
    if max(len(ours), len(theirs)) > MAX_COMPARED:
        return [*_only("baseline", ours), *_only("candidate", theirs)]
    parts: list[PromptPart] = []
    matcher = difflib.SequenceMatcher(None, ours, theirs, autojunk=False)
    for what, start, end, start_too, end_too in matcher.get_opcodes():
        if what == "equal":
            parts += _both(ours[start:end])
        else:
            parts += [*_only("baseline", ours[start:end]), *_only("candidate", theirs[start_too:end_too])]
    return parts


def _both(ids: Sequence[int], *, is_first: bool = False, is_last: bool = False) -> list[PromptPart]:
    """A shared piece: the end of the first one, the beginning of the last one, both ends of one between."""
    before, after = (0 if is_first else CONTEXT), (0 if is_last else CONTEXT)
    if len(ids) <= before + after:
        return [PromptPart("both", tuple(ids))] if len(ids) else []
    head, tail = tuple(ids[:before]), tuple(ids[len(ids) - after :])
    parts = [PromptPart("both", head)] if head else []
    return [*parts, PromptPart("both", tail, len(ids) - before - after)]


def _only(side: Side, ids: Sequence[int]) -> list[PromptPart]:
    return [PromptPart(side, tuple(ids[:MAX_COMPARED]), max(len(ids) - MAX_COMPARED, 0))] if len(ids) else []


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two prompts share from their beginning."""
    n = min(len(one), len(other))
    return next((place for place in range(n) if one[place] != other[place]), n)

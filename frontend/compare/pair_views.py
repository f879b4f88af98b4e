"""The trace diff: two responses to a case token by token, with the divergence and its evidence."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from evalboard.contract.pair import PairSide, TracePair
from evalboard.core.compare import compare_words, shorten_alike
from evalboard.path_converters import reverse_case
from evalboard.wording.replay import replay_command
from frontend.compare import outcomes, pair_address, pair_chart, pair_words, replay_views, words
from frontend.compare.causes import MARKS
from frontend.compare.pair_lines import pair_lines
from frontend.shell import addresses
from frontend.shell.charts.axes import MIN_DRAWN
from frontend.shell.copies import Copy, list_copies, write_prompt, write_tokens
from frontend.shell.findings import join_marks, parts_of
from frontend.templatetags.drawing import drawn
from runs.access import READ, requires
from runs.compare import CaseLink, DivergenceFilter, choose_terms, neighbours, trace_pair

REPLAY_PART, ANSWERS_PART = "replay", "answers"
PARTS = {
    "at": "compare/_pair_at.html",
    REPLAY_PART: "compare/_pair_replay_said.html",
    ANSWERS_PART: "compare/_pair_answers.html",  # what a row of a list of cases opens to
}
Marks = Mapping[str, frozenset[int]]  # positions by side
FIRST = (1, 1)
EARLY = 3  # positions; a flip before it leaves nothing to draw
MAX_WHOLE = 8_000  # characters of both answers; of longer ones only the parts next to a change are shown


@dataclass(frozen=True, slots=True)
class Around:
    """The pages of the diverging cases before and after this one, "" where there is none."""

    previous: str
    next: str


@requires(READ)
@require_safe
def trace_diff(request: HttpRequest, baseline: int, candidate: int, case: str) -> HttpResponse:
    repeats = pair_address.parse_repeats(request) or FIRST
    at = _position(request.GET.get("at"))
    terms = choose_terms(baseline=baseline, candidate=candidate, **pair_address.parse_terms(request))
    pair = trace_pair(baseline, candidate, case_id=case, repeats=repeats, at=at, terms=terms)
    active = pair_address.parse_filters(request)
    part = request.GET.get("part")
    if part == ANSWERS_PART:
        return render(request, PARTS[part], {"sides": _name_sides(pair), "is_same_answer": _is_same_answer(pair)})
    address = _Address(pair, repeats, active)
    added = parts_of("pair", pair, address.at)
    marks = {side: join_marks(added, side) for side in ("baseline", "candidate")}
    if part is not None:
        if part not in PARTS:
            raise Http404
        shown = _replayed(pair, address) if part == REPLAY_PART else _selected(pair, address, marks)
        answer = render(request, PARTS[part], shown)
        if part == REPLAY_PART:
            answer["Cache-Control"] = "no-store"
        return answer
    figure = pair_chart.figure(pair)
    decoded = _find_decoded(pair)
    page = _selected(pair, address, marks) | {
        "added": added,
        "is_marked": any(marks.values()),
        "lines": pair_lines(pair, odd=marks),
        "cause": MARKS[pair.cause],
        "around": _around(pair, repeats, active),
        "compare_url": pair_address.comparison_url(
            baseline, candidate, repeats=_shown_repeats(pair), filters=active, terms=terms
        ),
        "before_url": address.at(pair.positions[0].at - 1) if pair.positions and pair.positions[0].at > 0 else "",
        "after_url": address.at(pair.positions[-1].at + 1) if _goes_on(pair) else "",
        "figure": figure,
        **_replayed(pair, address),
        "is_short": pair.last_at + 1 < MIN_DRAWN,
        "has_charts": pair.last_at + 1 >= MIN_DRAWN and (pair.parts_at is None or pair.parts_at >= EARLY),
        "word_diff": _compare_answers(pair),
        "copies": _list_copies(pair),
        "caption": pair_words.describe_chart(pair),
        "settings_moved": words.moved_lines(pair.moved),
        "facts_differ": tuple(fact for fact in pair.provenance if not fact.is_same and not fact.is_unknown),
        "facts_same": tuple(fact for fact in pair.provenance if fact.is_same),
        "facts_unknown": tuple(fact for fact in pair.provenance if fact.is_unknown),
        "decoded": decoded,
        "command": decoded and replay_command(int(decoded.run), case, repeat=decoded.repeat),
        "traces": tuple(_trace_url(side.run, side.repeat, case) for side in (pair.baseline, pair.candidate)),
        "responses": tuple(
            addresses.response_url(int(side.run), side.repeat, case) for side in (pair.baseline, pair.candidate)
        ),
        "repeat_choices": (range(1, pair.baseline.n_repeats + 1), range(1, pair.candidate.n_repeats + 1)),
        "active_filters": active,
        "sides": _name_sides(pair),
        "answers": (drawn(pair.baseline.text), drawn(pair.candidate.text)),
        "flip_tokens": _flip_tokens(pair),
        "evidence": pair_words.list_evidence(pair.evidence),
        "fingerprints_url": _fingerprints_url(pair),
    }
    return render(request, "compare/trace_diff.html", page)


def _name_sides(pair: TracePair) -> tuple[dict[str, Any], ...]:
    return tuple({"name": name, "of": getattr(pair, name)} for name in ("baseline", "candidate"))


def _is_same_answer(pair: TracePair) -> bool:
    one, other = pair.baseline, pair.candidate
    return not one.error and not other.error and one.text == other.text


def _compare_answers(pair: TracePair) -> list[list[str]]:
    """Return both answers as (kind, text) word by word; nothing if they are equal or one is missing."""
    one, other = pair.baseline, pair.candidate
    if one.error or other.error or one.text == other.text:
        return []
    pieces = compare_words(one.text, other.text)
    return shorten_alike(pieces) if len(one.text) + len(other.text) > MAX_WHOLE else pieces


def _list_copies(pair: TracePair) -> tuple[Copy, ...]:
    return list_copies(
        ("id", pair.case),
        ("prompt", write_prompt(pair.messages)),
        ("baseline’s answer", pair.baseline.text),
        ("candidate’s answer", pair.candidate.text),
        ("baseline’s tokens", write_tokens(token for place in pair.positions for token in place.baseline)),
        ("candidate’s tokens", write_tokens(token for place in pair.positions for token in place.candidate)),
    )


def _find_decoded(pair: TracePair) -> PairSide | None:
    """Return the side that can be decoded again here, preferably the candidate; None if external."""
    return next((side for side in (pair.candidate, pair.baseline) if side.can_replay), None)


def _replayed(pair: TracePair, address: "_Address") -> dict[str, Any]:
    """Return what the line on the last replay needs, and where it asks again while that is under way."""
    decoded = _find_decoded(pair)
    last = replay_views.describe_last(pair, decoded.run if decoded else None)
    return last | {"replay_url": address.part(REPLAY_PART)}


class _Address:
    """This page at other positions."""

    def __init__(self, pair: TracePair, repeats: tuple[int, int], active: dict[str, str]) -> None:
        self._base = pair_address.pair_url(*pair.run_ids, pair.case, repeats=repeats, filters=active, terms=pair.terms)

    def at(self, key: int) -> str:
        return f"{self._base}&at={key}"

    def part(self, name: str) -> str:
        return f"{self._base}&part={name}"


def _selected(pair: TracePair, address: _Address, odd: Marks) -> dict[str, Any]:
    """Return the context of the fragment for one position, also used by the page."""
    marks = frozenset().union(*odd.values())
    at = -1 if pair.at is None else pair.at
    earlier = max({mark for mark in (*marks, pair.earlier) if mark is not None and mark < at}, default=None)
    later = min({mark for mark in (*marks, pair.later) if mark is not None and mark > at}, default=None)
    return {
        "pair": pair,
        "selected": pair.selected,
        "token_url": address.at,
        "earlier": earlier,
        "later": later,
        "earlier_url": "" if earlier is None else address.at(earlier),
        "later_url": "" if later is None else address.at(later),
    }


def _around(pair: TracePair, repeats: tuple[int, int], active: dict[str, str]) -> Around:
    if pair.comparison is None:
        return Around("", "")
    if "outcome" in active:
        neighbour = outcomes.find_neighbours(pair, active)
    else:
        wanted: DivergenceFilter = pair_address.divergence_filter(active)
        neighbour = neighbours(pair.comparison, case_id=pair.case, repeats=repeats, wanted=wanted)
    return Around(_link(pair, neighbour.previous, active), _link(pair, neighbour.next, active))


def _link(pair: TracePair, to: CaseLink | None, active: dict[str, str]) -> str:
    if to is None:
        return ""
    repeats = to.repeat_baseline, to.repeat_candidate
    return pair_address.pair_url(*pair.run_ids, to.case_id, repeats=repeats, at=to.at, filters=active, terms=pair.terms)


def _shown_repeats(pair: TracePair) -> tuple[int, int] | None:
    """A run is never compared with all of itself, only one repeat of it with another."""
    return pair.repeats if pair.is_same_run else None


def _flip_tokens(pair: TracePair) -> tuple[str, str]:
    """Return what each side chose where they part; "" where it had ended."""
    at_flip = next((point for point in reversed(pair.points) if point.at == pair.parts_at), None)
    return ("", "") if at_flip is None else at_flip.tokens


def _fingerprints_url(pair: TracePair) -> str:
    one, other = pair.baseline.stack, pair.candidate.stack
    if one is None or other is None or one.id == other.id:
        return ""
    return reverse("fingerprint_diff", args=[one.id, other.id])


def _goes_on(pair: TracePair) -> bool:
    return bool(pair.positions) and pair.positions[-1].at < pair.last_at


def _trace_url(run: str, repeat: int, case_id: str) -> str:
    return reverse_case("api:trace", run, repeat, case_id)


def _position(text: str | None) -> int | None:
    return int(text[:9]) if text is not None and text.isascii() and text.isdigit() else None

"""Two responses to one case side by side, token by token: the position where they parted, and the evidence."""

from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from frontend import addresses, commands, pair_address, pair_chart, pair_words, plotly
from frontend.causes import MARKS
from frontend.pair_lines import pair_lines
from runs import selectors
from runs.access import READ, requires
from runs.selectors.divergence_list import CaseLink, DivergenceFilter
from runs.selectors.trace_pair import PairReport, Point

PARTS = {"at": "frontend/_pair_at.html"}
FIRST = (1, 1)


@dataclass(frozen=True, slots=True)
class Around:
    """The pages of the diverging cases before and after this one, "" where there is none."""

    previous: str
    next: str


@requires(READ)
@require_safe
def trace_diff(request: HttpRequest, baseline: int, candidate: int, case: str) -> HttpResponse:
    repeats = pair_address.asked_repeats(request) or FIRST
    at = _position(request.GET.get("at"))
    report = selectors.trace_pair(baseline, candidate, case_id=case, repeats=repeats, at=at)
    kept = pair_address.asked_filter(request)
    address = _Address(report, repeats, kept)
    part = request.GET.get("part")
    if part is not None:
        if part not in PARTS:
            raise Http404
        return render(request, PARTS[part], _selected(report, address))
    figure = pair_chart.figure(report)
    # Of a side that was read from a log nothing can be decoded again here.
    decoded = next((side for side in (report.candidate, report.baseline) if not side.is_logged), None)
    page = _selected(report, address) | {
        "lines": pair_lines(report),
        "cause": MARKS[report.cause.code],
        "numeric": MARKS[report.cause.numeric] if report.cause.numeric else None,
        "around": _around(report, repeats, kept),
        "compare_url": pair_address.of_comparison(baseline, candidate, repeats=_shown_repeats(report), kept=kept),
        "before_url": address.at(report.steps[0].key - 1) if report.steps and report.steps[0].key > 0 else "",
        "after_url": address.at(report.steps[-1].key + 1) if _goes_on(report) else "",
        "figure": figure,
        "caption": pair_words.of_chart(report),
        "style_ids": plotly.style_ids() if figure else (),
        "settings_moved": pair_words.settings_moved(report),
        "facts_differ": tuple(fact for fact in report.facts if not fact.is_same),
        "facts_same": tuple(fact for fact in report.facts if fact.is_same),
        "decoded": decoded,
        "command": decoded and commands.replay(decoded.run_id, case, repeat=decoded.repeat),
        "traces": tuple(_trace_url(side.run_id, side.repeat, case) for side in (report.baseline, report.candidate)),
        "responses": tuple(
            addresses.of_response(side.run_id, side.repeat, case) for side in (report.baseline, report.candidate)
        ),
        "repeat_choices": (range(1, report.baseline.n_repeats + 1), range(1, report.candidate.n_repeats + 1)),
        "kept": kept,
        "sides": tuple({"name": name, "of": getattr(report, name)} for name in ("baseline", "candidate")),
        "flip_tokens": _flip_tokens(report),
        "shown_points": _shown_points(report),
        "evidence": pair_words.evidence(report.cause),
        "fingerprints_url": _fingerprints_url(report),
    }
    return render(request, "frontend/trace_diff.html", page)


class _Address:
    """This page at other positions."""

    def __init__(self, report: PairReport, repeats: tuple[int, int], kept: dict[str, str]) -> None:
        self._base = pair_address.of_pair(
            report.baseline.run_id, report.candidate.run_id, report.case_id, repeats=repeats, kept=kept
        )

    def at(self, key: int) -> str:
        return f"{self._base}&at={key}"


def _selected(report: PairReport, address: _Address) -> dict[str, Any]:
    """What the fragment for one position needs; the page holds it too."""
    return {
        "pair": report,
        "selected": report.selected,
        "token_url": address.at,
        "earlier_url": "" if report.earlier is None else address.at(report.earlier),
        "later_url": "" if report.later is None else address.at(report.later),
    }


def _around(report: PairReport, repeats: tuple[int, int], kept: dict[str, str]) -> Around:
    if report.comparison is None:
        return Around("", "")
    wanted: DivergenceFilter = pair_address.divergence_filter(kept)
    found = selectors.neighbours(report.comparison, case_id=report.case_id, repeats=repeats, wanted=wanted)
    return Around(_link(report, found.previous, kept), _link(report, found.next, kept))


def _link(report: PairReport, to: CaseLink | None, kept: dict[str, str]) -> str:
    if to is None:
        return ""
    repeats = to.repeat_baseline, to.repeat_candidate
    runs = report.baseline.run_id, report.candidate.run_id
    return pair_address.of_pair(*runs, to.case_id, repeats=repeats, at=to.at, kept=kept)


def _shown_repeats(report: PairReport) -> tuple[int, int] | None:
    """A run is never compared with all of itself, only one repeat of it with another."""
    return (report.baseline.repeat, report.candidate.repeat) if report.is_same_run else None


def _flip_tokens(report: PairReport) -> tuple[str, str]:
    """What each side chose where they part; "" where it had ended."""
    at_flip = next((point for point in reversed(report.points) if point.key == report.parts_at), None)
    return ("", "") if at_flip is None else (at_flip.token_baseline, at_flip.token_candidate)


def _shown_points(report: PairReport) -> tuple[Point, ...]:
    """Those of the steps on the page: the table of a long trace would be longer than anybody reads."""
    if not report.steps:
        return ()
    first, last = report.steps[0].key, report.steps[-1].key
    return tuple(point for point in report.points if first <= point.key <= last)


def _fingerprints_url(report: PairReport) -> str:
    one, other = report.baseline.fingerprint_id, report.candidate.fingerprint_id
    return "" if None in (one, other) or one == other else reverse("fingerprint_diff", args=[one, other])


def _goes_on(report: PairReport) -> bool:
    return bool(report.steps) and report.steps[-1].key < report.last_key


def _trace_url(run_id: int, repeat: int, case_id: str) -> str:
    return addresses.BEFORE_DOTS.sub("%2F", reverse("api:trace", args=[run_id, repeat, case_id]))


def _position(asked: str | None) -> int | None:
    return int(asked[:9]) if asked is not None and asked.isascii() and asked.isdigit() else None

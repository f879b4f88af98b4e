"""Two runs, or two repeats, held against each other: why the number moved."""

from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from frontend import compare_charts, compare_filters, compare_outcomes, compare_words, exports, pair_address, plotly
from frontend.causes import MARKS
from runs import selectors, services
from runs.access import READ, requires
from runs.selectors.comparison import ComparisonReport, SideBucket
from runs.selectors.divergence_list import DivergenceRow

CASES_PART, PROGRESS_PART = "cases", "progress"
PARTS = {CASES_PART: "frontend/_compare_cases.html", PROGRESS_PART: "frontend/_compare_progress.html"}
FIRST_TWO = (1, 2)
MOST_DIGITS = 9


@dataclass(frozen=True, slots=True)
class CaseLine:
    """A pair of the case list; `n_alike` repeats of the case in a row say exactly the same."""

    row: DivergenceRow
    n_alike: int
    url: str
    length: int
    flip_x: float | None


@requires(READ)
@require_safe
def compare(request: HttpRequest, baseline: int, candidate: int) -> HttpResponse:
    repeats = pair_address.asked_repeats(request)
    if baseline == candidate and repeats is None:
        return redirect(pair_address.of_comparison(baseline, candidate, repeats=FIRST_TWO))
    found = services.compare(baseline=baseline, candidate=candidate, repeats=repeats)
    report = selectors.comparison_report(found.pk)
    part = request.GET.get("part")
    if part is not None and part not in PARTS:
        raise Http404
    if part == PROGRESS_PART:
        response = render(request, PARTS[part], {"comparison": report})
        if report.progress.status != "queued":
            response["HX-Refresh"] = "true"  # all of the page is new
        response["Cache-Control"] = "no-store"
        return response
    cases = _cases(request, report)
    if part == CASES_PART:
        return render(request, PARTS[part], cases)
    return render(request, "frontend/compare.html", _page(report) | cases)


def _page(report: ComparisonReport) -> dict[str, Any]:
    flips = compare_charts.known_flips(report)
    figure = compare_charts.scatter(report, flips)
    return {
        "comparison": report,
        "finding": compare_words.of_comparison(report),
        "spread": tuple(compare_words.of_side(report, side) for side in ("baseline", "candidate")),
        "count_parts": compare_charts.count_parts(report.counts),
        "outcome_links": compare_filters.outcome_links(report),
        "counts_caption": compare_words.of_counts(report),
        "waterfall": compare_charts.waterfall(report),
        "charts": tuple(chart for chart in (_chart(report, "flip"), _chart(report, "drift onset")) if chart),
        "figure": figure,
        "flips": flips,
        "scatter_caption": compare_words.of_scatter(report, flips),
        "scatter_marks": tuple(MARKS[cause] for cause in sorted({flip.cause for flip in flips})),
        "style_ids": plotly.style_ids() if figure else (),
        "moved": compare_words.moved_lines(report),
        "fingerprints_url": _fingerprints_url(report),
        "swapped_url": pair_address.of_comparison(
            report.candidate.run_id, report.baseline.run_id, repeats=report.repeats and report.repeats[::-1]
        ),
    }


def _chart(report: ComparisonReport, what: str) -> dict[str, Any] | None:
    found = report.flip_histogram if what == "flip" else report.onset_histogram
    drawn = compare_charts.histogram(found, what)
    if drawn is None or found is None:
        return None
    return {"what": what, "drawn": drawn, "caption": compare_words.of_histogram(found, what)}


def _cases(request: HttpRequest, report: ComparisonReport) -> dict[str, Any]:
    asked = pair_address.asked_filter(request)
    number = request.GET.get("page", "")
    page_number = int(number) if number.isascii() and number.isdigit() and len(number) < MOST_DIGITS else 1
    if "outcome" in asked:
        return compare_outcomes.part(report, asked, page_number)
    wanted = pair_address.divergence_filter(asked)
    page = selectors.divergence_page(report.id, wanted, page=page_number)
    return {
        "comparison": report,
        "asked": asked,
        "page": page,
        "lines": tuple(_lines(report, page.rows, asked)),
        "filters": compare_filters.of_report(report, asked, report.outcomes),
        "previous_url": compare_filters.at(report, asked, page=page.page - 1) if page.page > 1 else "",
        "next_url": compare_filters.at(report, asked, page=page.page + 1) if page.page < page.n_pages else "",
        "all_url": compare_filters.at(report, {}),
        "exports": exports.of_comparison(report, asked) if page.rows else (),
        "buckets": tuple(_by_letter(report).values()),
        "kept_by_form": tuple((name, asked[name]) for name in ("cause", "changed", "cluster") if name in asked),
        "backends": tuple("-".join(pair) for pair in report.backends),
    }


def _by_letter(report: ComparisonReport) -> dict[str, SideBucket]:
    return {bucket.letter: bucket for bucket in (*report.baseline.buckets, *report.candidate.buckets)}


def _lines(report: ComparisonReport, rows: tuple[DivergenceRow, ...], asked: dict[str, str]) -> list[CaseLine]:
    runs = report.baseline.run_id, report.candidate.run_id
    found = []
    for _, alike in groupby(rows, key=_said):
        first, *rest = alike
        length = max(first.n_tokens_baseline or 0, first.n_tokens_candidate or 0)
        repeats = first.repeat_baseline, first.repeat_candidate
        url = pair_address.of_pair(*runs, first.case_id, repeats=repeats, at=first.at, kept=asked)
        flip_x = None if first.flip_position is None else round(100 * first.flip_position / max(length, 1), 2)
        found.append(CaseLine(first, 1 + len(rest), url, length, flip_x))
    return found


def _said(row: DivergenceRow) -> tuple[Any, ...]:
    """All that a line shows of a pair, its repeats apart."""
    places = row.case_id, row.cause, row.numeric, row.flip_position, row.drift_onset, row.text_position
    numbers = row.margin_baseline, row.margin_candidate, row.gap_at_onset, row.score_baseline, row.score_candidate
    others = row.token_baseline, row.token_candidate, row.backend_baseline, row.backend_candidate
    return (*places, *numbers, *others)


def _fingerprints_url(report: ComparisonReport) -> str:
    """The field-by-field difference of what served most of each side; "" where that is one and the same."""
    if not report.baseline.buckets or not report.candidate.buckets:
        return ""
    one, other = report.baseline.buckets[0].fingerprint_id, report.candidate.buckets[0].fingerprint_id
    return "" if one == other else reverse("fingerprint_diff", args=[one, other])

"""The comparison of two runs, or of two repeats: why the number changed."""

from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from evalboard.contract.compare import BucketOfSide, ComparedCase, Comparison, SpeedAndTokens
from evalboard.contract.parts import Cost
from evalboard.wording.outcomes import compare_with_chance, count_targeted
from frontend.compare import charts, filters, flip_chart, last_viewed, outcomes, pair_address, words
from frontend.compare.causes import MARKS
from frontend.compare.mixed import describe_odd_ones, mixed_lines
from frontend.shell.findings import parts_of
from frontend.shell.lists import parse_number
from frontend.shell.live import answer_progress
from runs import acts
from runs import compare as compare_slice
from runs.access import READ, requires
from runs.compare import ALL_CASES, divergence_page, report_of

CASES_PART, PROGRESS_PART, FLIPS_PART = "cases", "progress", "flips"
PARTS = {
    CASES_PART: "compare/_cases.html",
    PROGRESS_PART: "compare/_progress.html",
    FLIPS_PART: "compare/flips.html",  # a page of its own; the chart's script takes it when the chart is seen
}
FIRST_TWO = (1, 2)


@dataclass(frozen=True, slots=True)
class ComparedCaseLine:
    """A pair of the case list; `n_alike` repeats of the case in a row say exactly the same."""

    row: ComparedCase
    n_alike: int
    url: str
    length: int
    flip_x: float | None


@requires(READ)
@require_safe
def compare(request: HttpRequest, baseline: int, candidate: int) -> HttpResponse:
    repeats = pair_address.parse_repeats(request)
    if baseline == candidate and repeats is None:
        return redirect(pair_address.comparison_url(baseline, candidate, repeats=FIRST_TWO))
    terms = pair_address.parse_terms(request)
    comparison = compare_slice.compare(baseline=baseline, candidate=candidate, repeats=repeats, **terms)
    report = report_of(comparison)
    part = request.GET.get("part")
    if part is not None and part not in PARTS:
        raise Http404
    if part == PROGRESS_PART:
        shown = {"comparison": report, "part_read": _part_read(report)}
        return answer_progress(request, PARTS[part], shown, is_over=report.progress.status != "queued")
    if part == FLIPS_PART:
        return render(request, PARTS[part], _flips(report))
    cases = _cases(request, report)
    if part == CASES_PART:
        return render(request, PARTS[part], cases)
    offers: dict[str, Any] = {"added": parts_of("comparison", comparison, request.user)}
    if len(report.moved) > 1:
        offers["bisect"] = acts.can_on_runs("bisect", (baseline, candidate), request.user)
    answer = render(request, "compare/page.html", _page(report) | offers | cases)
    last_viewed.remember(answer, baseline, candidate)
    return answer


def _speeds(report: Comparison) -> tuple[tuple[str, SpeedAndTokens, Cost | None], ...]:
    """Return both sides' time, tokens and cost; () unless the time of both is known."""
    sides = (("baseline", report.sides.baseline), ("candidate", report.sides.candidate))
    speeds = tuple((name, side.speed, side.cost) for name, side in sides if side.speed is not None)
    return speeds if len(speeds) == len(sides) else ()


def _page(report: Comparison) -> dict[str, Any]:
    flips = flip_chart.known_flips(report)
    return {
        "comparison": report,
        "part_read": _part_read(report),
        "finding": words.describe_comparison(report),
        "spread": tuple(words.describe_side(report, side) for side in ("baseline", "candidate")),
        "outcome_links": filters.outcome_links(report),
        "by_chance": compare_with_chance(report.outcomes) if report.outcomes else "",
        "targeted": count_targeted(report),
        "speeds": _speeds(report),
        "counts_caption": words.describe_counts(report),
        "waterfall": charts.waterfall(report, pair_address.lists_of(report)),
        "charts": tuple(chart for chart in (_chart(report, "flip"), _chart(report, "drift onset")) if chart),
        "flips_url": filters.list_url(report, {"part": FLIPS_PART}) if flips else "",
        "scatter_caption": words.describe_scatter(report, flips),
        "scatter_marks": tuple(MARKS[cause] for cause in sorted({flip.cause for flip in flips})),
        "moved": words.moved_lines(report.moved),
        "fingerprints_url": _fingerprints_url(report),
        "clusters": tuple(each for each in report.clusters if each.n_cases > 1),
        "single_clusters": tuple(each for each in report.clusters if each.n_cases == 1),
        **outcomes.clusters_of_broken(report),
        "mixed_lines": (mixed := mixed_lines(report)),
        "odd_ones": describe_odd_ones(mixed),
        "swapped_url": pair_address.comparison_url(
            *report.run_ids[::-1], repeats=report.repeats and report.repeats[::-1], terms=report.terms
        ),
    }


def _part_read(report: Comparison) -> float:
    """Return which part of the pairs of traces has been read."""
    return report.progress.n_done / max(report.progress.n_total, 1)


def _flips(report: Comparison) -> dict[str, Any]:
    flips = flip_chart.name_flips(report)
    return {
        "comparison": report,
        "flips": flips,
        "figure": flip_chart.figure(report, flips),
        "caption": words.describe_scatter(report, flip_chart.known_flips(report)),
        "compare_url": filters.list_url(report, {}),
    }


def _chart(report: Comparison, what: str) -> dict[str, Any] | None:
    positions = report.flip_histogram if what == "flip" else report.onset_histogram
    drawn = charts.histogram(positions, what)
    if drawn is None or positions is None:
        return None
    return {"what": what, "drawn": drawn, "caption": words.describe_histogram(positions, what)}


def _cases(request: HttpRequest, report: Comparison) -> dict[str, Any]:
    active = _active(request, report)
    page_number = parse_number(request.GET.get("page", ""), digits=8) or 1
    if "outcome" in active:
        return outcomes.part(report, active, page_number)
    wanted = pair_address.divergence_filter(active)
    page = divergence_page(report.id, wanted, page=page_number)
    return {
        "comparison": report,
        "active": active,
        "page": page,
        "lines": tuple(_lines(report, page.rows, active)),
        "filters": filters.list_filters(report, active, report.outcomes),
        "bar": charts.count_parts(report, pair_address.lists_of(report)),
        "previous_url": filters.list_url(report, active, page=page.page - 1) if page.page > 1 else "",
        "next_url": filters.list_url(report, active, page=page.page + 1) if page.page < page.n_pages else "",
        "all_url": filters.list_url(report, {"show": "pairs"}),
        "exports": filters.exports(report, active) if page.rows else (),
        "buckets": tuple(_by_letter(report).values()),
        "kept_by_form": tuple(
            (name, active[name]) for name in ("show", "cause", "changed", "cluster") if name in active
        ),
        "backends": tuple(("-".join(pair), pair) for pair in report.backends),
    }


def _active(request: HttpRequest, report: Comparison) -> dict[str, str]:
    """Return the filters of the address; by default the first nonempty part, or all cases if searched."""
    active = pair_address.parse_filters(request)
    narrowed = set(active) - {*pair_address.VIEW}
    if not report.progress.is_finished or narrowed - {"q"}:
        return active
    parts = [part for part in charts.label_parts(report) if getattr(report.parts, part) and not narrowed]
    return {"outcome": next(iter(parts), ALL_CASES), **active}


def _by_letter(report: Comparison) -> dict[str, BucketOfSide]:
    return {bucket.backend: bucket for bucket in (*report.sides.baseline.buckets, *report.sides.candidate.buckets)}


def _lines(report: Comparison, rows: tuple[ComparedCase, ...], active: dict[str, str]) -> list[ComparedCaseLine]:
    lines = []
    for _, alike in groupby(rows, key=_shown_parts):
        first, *rest = alike
        length = max(first.n_tokens_baseline or 0, first.n_tokens_candidate or 0)
        url = pair_address.pair_url(
            *report.run_ids, first.case, repeats=first.repeats, at=first.at, filters=active, terms=report.terms
        )
        flip_x = None if first.flip_position is None else round(100 * first.flip_position / max(length, 1), 2)
        lines.append(ComparedCaseLine(first, 1 + len(rest), url, length, flip_x))
    return lines


def _shown_parts(row: ComparedCase) -> tuple[Any, ...]:
    """Return what a line shows of a pair, except its repeats."""
    places = row.case, row.cause, row.numeric, row.flip_position, row.drift_onset, row.text_position
    numbers = *row.margins, row.gap_at_onset, row.score_baseline, row.score_candidate
    others = row.token_baseline, row.token_candidate, row.backend_baseline, row.backend_candidate
    return (*places, *numbers, *others)


def _fingerprints_url(report: Comparison) -> str:
    """Return the field-by-field difference of both main stacks; "" if they are equal."""
    ours, theirs = report.sides.baseline.buckets, report.sides.candidate.buckets
    if not ours or not theirs:
        return ""
    one, other = ours[0].fingerprint.id, theirs[0].fingerprint.id
    return "" if one == other else reverse("fingerprint_diff", args=[one, other])

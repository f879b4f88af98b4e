"""Fingerprints: what served each endpoint by date, one of them in full, and what moved between two."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from evalboard.contract.manifest import ManifestDifference
from evalboard.contract.stack import FingerprintRow
from evalboard.core.profile import list_fields
from evalboard.wording.manifest import render_field_name, render_sides, render_value
from frontend.endpoints.timeline import Lanes, lanes, stretch_of
from frontend.endpoints.words import describe_difference, describe_timelines
from frontend.shell.charts.axes import Stretch
from frontend.shell.lists import parse_number, read_view
from runs.access import READ, requires
from runs.fingerprints import (
    EndpointTimeline,
    ServedBucket,
    fingerprint_difference,
    fingerprint_report,
    fingerprint_rows,
    fingerprint_use,
    served_buckets,
    timelines,
)

ENDPOINTS_PER_PAGE = 10
FINGERPRINTS_SHOWN, TURNS_SHOWN = 6, 5  # of each endpoint, where all are shown
FINGERPRINTS_PER_PAGE, TURNS_OF_ONE = 50, 100  # of the one endpoint that was asked for
OFFERED = 200
RUNS_SHOWN, WORKERS_SHOWN = 15, 50
TITLES = {"versions": "Versions", "hardware": "Hardware", "env": "Environment variables", "engine": "Engine"}
LONG_PART = TITLES["engine"]


@dataclass(frozen=True, slots=True)
class FieldRow:
    """A field of a manifest in words; the values of both sides, or one where they are the same."""

    field: str
    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ManifestPart:
    """One part of a manifest, under the title of docs/node.md."""

    title: str
    rows: tuple[FieldRow, ...]


@dataclass(frozen=True, slots=True)
class EndpointSection:
    """An endpoint's newest fingerprints as a chart; `n_more` are left out."""

    line: EndpointTimeline
    lanes: Lanes
    n_more: int


@dataclass(frozen=True, slots=True)
class SideOfDifference:
    """One of two fingerprints, and what it served."""

    row: FingerprintRow
    served: tuple[ServedBucket, ...]


@requires(READ)
@require_safe
def fingerprints(request: HttpRequest) -> HttpResponse:
    baseline, candidate = (parse_number(request.GET.get(name, "")) for name in ("baseline", "candidate"))
    if baseline is not None and candidate is not None:
        return redirect("fingerprint_diff", baseline, candidate)
    endpoint = request.GET.get("endpoint", "").strip()
    lines = timelines(endpoint=endpoint, turns=TURNS_OF_ONE if endpoint else TURNS_SHOWN)
    size = FINGERPRINTS_PER_PAGE if endpoint else ENDPOINTS_PER_PAGE
    view = read_view(request.GET, size=size, active={"endpoint": endpoint})
    shown = view.slice((lines[0].fingerprints if lines else ()) if endpoint else lines)
    if endpoint:
        sections = tuple(_section(line, None, offset=view.offset, limit=view.size) for line in lines if shown.rows)
    else:
        own = [line for line in shown.rows if not line.is_imported]
        # A log may be of years ago, which would leave no room for what serves now.
        stretch = stretch_of(own or shown.rows) if shown.rows else None
        sections = tuple(
            _section(line, None if line.is_imported else stretch, offset=0, limit=FINGERPRINTS_SHOWN)
            for line in shown.rows
        )
    page = {
        "sections": tuple(section for section in sections if endpoint or not section.line.is_imported),
        "imported": tuple(section for section in sections if section.line.is_imported and not endpoint),
        "page": shown,
        "endpoint": endpoint,
        "finding": describe_timelines(lines) if lines else None,
        "offered": (offered := fingerprint_rows(limit=OFFERED)),
        "chosen": _chosen(lines, offered),
    }
    return render(request, "endpoints/fingerprints.html", page)


@requires(READ)
@require_safe
def fingerprint(request: HttpRequest, fingerprint_id: int) -> HttpResponse:
    report = fingerprint_report(fingerprint_id)
    use = fingerprint_use(fingerprint_id, runs=RUNS_SHOWN, workers=WORKERS_SHOWN, turns=TURNS_SHOWN)
    parts = _parts(report.manifest)
    page = {
        "report": report,
        "row": report,
        "use": use,
        "first_at": min((bucket.first_at for bucket in use.served), default=None),
        "last_at": max((bucket.last_at for bucket in use.served), default=None),
        "models": sorted({(bucket.model.name, bucket.model.digest) for bucket in report.buckets}),
        "long_parts": tuple(part for part in parts if part.title == LONG_PART),
        "short_parts": tuple(part for part in parts if part.title != LONG_PART),
        "chosen": use.turns[0].before.id if use.turns else None,
        "n_more_runs": max(use.n_runs - len(use.runs), 0),
        "offered": tuple(row for row in fingerprint_rows(limit=OFFERED) if row.id != report.id),
    }
    return render(request, "endpoints/fingerprint.html", page)


@requires(READ)
@require_safe
def difference(request: HttpRequest, fingerprint_id: int, other: int) -> HttpResponse:
    pair = fingerprint_difference(fingerprint_id, other)
    served = served_buckets(fingerprints=(fingerprint_id, other))
    page = {
        "difference": pair,
        "sides": tuple(_side(row, served) for row in (pair.a, pair.b)),
        "finding": describe_difference(pair.fields, is_same=fingerprint_id == other),
        "moved": _moved(pair.fields),
        "equal": tuple(
            FieldRow(name, render_field_name(name), (render_value(name, value),)) for name, value in pair.fields.equal
        ),
        "unknown": pair.fields.unknown,
    }
    return render(request, "endpoints/fingerprint_diff.html", page)


def _side(row: FingerprintRow, served: Sequence[ServedBucket]) -> SideOfDifference:
    return SideOfDifference(row, tuple(bucket for bucket in served if str(bucket.fingerprint_id) == row.id))


def _chosen(lines: Sequence[EndpointTimeline], offered: Sequence[FingerprintRow]) -> tuple[str, str] | None:
    """Return the default pair to compare: that of the newest rotation, else the two newest."""
    turns = [turn for line in lines for turn in line.turns]
    if turns:
        last = max(turns, key=lambda turn: (turn.at, turn.id))
        return last.before.id, last.after.id
    return (offered[1].id, offered[0].id) if len(offered) > 1 else None


def _section(line: EndpointTimeline, stretch: Stretch | None, *, offset: int, limit: int) -> EndpointSection:
    shown = line.fingerprints[offset : offset + limit]
    n_more = len(line.fingerprints) - offset - len(shown)
    return EndpointSection(line, lanes(EndpointTimeline(line.endpoint, shown, line.turns), stretch), n_more)


def _parts(manifest: dict[str, object]) -> tuple[ManifestPart, ...]:
    """Return the manifest's fields by part, what matters most first within each."""
    order = list(TITLES)
    known = list_fields(manifest)
    rows = sorted(known, key=lambda row: order.index(part) if (part := _part_of(row[0])) in order else len(order))
    return tuple(
        ManifestPart(
            TITLES.get(part, part.replace("_", " ").capitalize()),
            tuple(FieldRow(name, render_field_name(name), (render_value(name, value),)) for name, value in fields),
        )
        for part, fields in groupby(rows, key=lambda row: _part_of(row[0]))
    )


def _part_of(field: str) -> str:
    return field.partition(".")[0]


def _moved(fields: ManifestDifference) -> tuple[FieldRow, ...]:
    return tuple(FieldRow(each.field, render_field_name(each.field), render_sides(each)) for each in fields.moved)

"""The release page put together from what the selectors read. Nothing is decided here."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalboard.core import fingerprint_words
from evalboard.core.fingerprint import Moved
from frontend import release_ruler, release_words
from frontend.release_ruler import Bar
from frontend.verdicts import VERDICTS
from runs.selectors.comparison import ComparisonReport
from runs.selectors.fingerprint import FingerprintDifference
from runs.selectors.release import GateReport, GateSide, ReleaseReport
from runs.selectors.run import BucketReport, RunReport

GAP = 0.6  # percent between the parts of the bar of who served what
MOVED_SHOWN = 4
MOVED_SHOWN_MIXED = 5
SIDES = ("baseline", "candidate")


@dataclass(frozen=True, slots=True)
class GateLine:
    """A row of the gates' table."""

    gate: GateReport
    strip: release_ruler.Strip | None
    ruler: release_ruler.RowRuler | None

    @property
    def tone(self) -> str:
        """The class of its ink; what only advises has none."""
        return f"verdict-{VERDICTS[self.gate.verdict].glyph}" if self.gate.tier == "critical" else ""

    @property
    def sides(self) -> tuple[tuple[str, GateSide], ...]:
        return (("baseline", self.gate.baseline), ("candidate", self.gate.candidate))


@dataclass(frozen=True, slots=True)
class BucketLine:
    """One bucket of one side. `score` is the mean over its own repeats, never another bucket's."""

    suite: str
    side: str
    run_id: int
    bucket: BucketReport
    score: float | None


@dataclass(frozen=True, slots=True)
class ServedPart:
    """A bucket's part of the bar; `place` 0 is the largest."""

    bucket: BucketReport
    place: int
    share: float
    bar: Bar
    score: float | None


@dataclass(frozen=True, slots=True)
class ServedSide:
    side: str
    run_id: int
    n_responses: int
    parts: tuple[ServedPart, ...]


@dataclass(frozen=True, slots=True)
class Served:
    """Who served what, in place of the ruler: nothing was measured. `columns` head the two sides of `moved`."""

    title: str
    caption: str
    sides: tuple[ServedSide, ...]
    columns: tuple[str, str]
    moved: tuple[tuple[str, str, str], ...]
    n_more: int
    n_equal: int
    url: tuple[int, int] | None


def context(
    report: ReleaseReport,
    *,
    runs: Mapping[int, RunReport],
    comparison: ComparisonReport | None,
    between: FingerprintDifference | None,
) -> dict[str, Any]:
    """`runs`: all that the gates name. `between`: the two fingerprints that `stacks_of` names, where there are two."""
    buckets = {run_id: run.buckets for run_id, run in runs.items()}
    gate = report.gates[report.headline_gate]
    scale = release_ruler.rows_scale((each.difference, each.interval, each.tolerance_points) for each in report.gates)
    lines = tuple(
        GateLine(
            each,
            release_ruler.strip(each),
            release_ruler.row_ruler(each.difference, each.interval, each.tolerance_points, scale),
        )
        for each in report.gates
    )
    return {
        "release": report,
        "row": report.row,
        "headline": gate,
        "mark": VERDICTS[report.row.verdict],
        "plate": release_ruler.plate(gate),
        "plate_claim": release_words.of_plate(gate),
        "served": served(gate, buckets, comparison, between) if gate.verdict == "not_comparable" else None,
        "support": tuple(line.text for line in report.next_steps if line.gate in (None, report.headline_gate)),
        "other_reasons": tuple(_other_reasons(report)),
        "lines": lines,
        "gates_note": release_words.of_gates(report),
        "outcome_links": release_words.outcome_links(gate),
        "notes": release_words.notes(report),
        "bucket_lines": tuple(bucket_lines(report, buckets)),
        "treatment": release_words.of_treatment(report.row.treatment),
        "story": release_words.story(report, runs),
        "sign_offs": tuple(
            (line, release_words.of_void(line, report, runs) if line.void else "") for line in report.sign_offs
        ),
        "standing": tuple(line for line in report.sign_offs if not line.void),
        "scorer_digest": comparison.candidate.scorer_digest if comparison else "",
    }


def _other_reasons(report: ReleaseReport) -> list[str]:
    """Why the gates beside the headline did not ship; the headline's reason is the sentence itself."""
    lines = [line for line in report.reasons if line.gate is not None and line.gate != report.headline_gate]
    return [line.text for line in lines if report.gates[line.gate or 0].verdict != "ship"]


def stacks_of(gate: GateReport, runs: Mapping[int, RunReport]) -> tuple[int, int] | None:
    """The fingerprints to hold against each other: of one mixed side, else of both sides; None where they are one."""
    buckets = {run_id: run.buckets for run_id, run in runs.items()}
    mixed = _mixed(gate, buckets)
    found = mixed or [rows[0] for side in SIDES if (rows := list(buckets.get(_side(gate, side).run_id, ())))]
    if len(found) < 2 or found[0].fingerprint_id == found[1].fingerprint_id:
        return None
    return found[0].fingerprint_id, found[1].fingerprint_id


def served(
    gate: GateReport,
    buckets: Mapping[int, Sequence[BucketReport]],
    comparison: ComparisonReport | None,
    between: FingerprintDifference | None,
) -> Served:
    mixed = _mixed(gate, buckets)
    sides = tuple(_served_side(name, _side(gate, name).run_id, buckets) for name in SIDES)
    if mixed:
        name = next(side.side for side in sides if len(side.parts) > 1)
        shown = tuple(side for side in sides if len(side.parts) > 1)
        moved = between.fields.moved if between else ()
        one, other = (f"fp {bucket.fingerprint_digest[:4]}" for bucket in mixed[:2])
        title, columns = f"Who served the {name}’s responses", (one, other)
    else:
        shown = tuple(side for side in sides if side.parts)
        moved = comparison.moved if comparison else between.fields.moved if between else ()
        title, columns = "Who served which side", SIDES
    total = sum(side.n_responses for side in shown)
    whose = f"share of {total:,} responses" if mixed else f"{total:,} responses"
    most = MOVED_SHOWN_MIXED if len(shown) == 1 else MOVED_SHOWN
    return Served(
        title=title,
        caption=f"{whose} by fingerprint, each scored by itself",
        sides=shown,
        columns=(columns[0], columns[1]),
        moved=_moved_lines(moved[:most]),
        n_more=max(len(moved) - most, 0),
        n_equal=len(between.fields.equal) if between else 0,
        url=(between.baseline.row.id, between.candidate.row.id) if between else None,
    )


def _moved_lines(moved: Sequence[Moved]) -> tuple[tuple[str, str, str], ...]:
    return tuple((fingerprint_words.name(each.field), *fingerprint_words.sides(each)) for each in moved)


def _mixed(gate: GateReport, buckets: Mapping[int, Sequence[BucketReport]]) -> list[BucketReport]:
    """The buckets of a side that has more than one, the candidate's first."""
    rows = (list(buckets.get(_side(gate, side).run_id, ())) for side in reversed(SIDES))
    return next((_by_share(found) for found in rows if len(found) > 1), [])


def _side(gate: GateReport, name: str) -> GateSide:
    return gate.baseline if name == "baseline" else gate.candidate


def _by_share(rows: Sequence[BucketReport]) -> list[BucketReport]:
    return sorted(rows, key=lambda row: -row.n_responses)


def _served_side(name: str, run_id: int, buckets: Mapping[int, Sequence[BucketReport]]) -> ServedSide:
    rows = _by_share(buckets.get(run_id, ()))
    total = max(sum(row.n_responses for row in rows), 1)
    parts, x = [], 0.0
    for place, row in enumerate(rows):
        width = 100 * row.n_responses / total
        bar = Bar(round(x, 3), round(max(width - (GAP if x + width < 99.9 else 0), 0.6), 3))
        parts.append(ServedPart(row, place, width / 100, bar, _mean(row)))
        x += width
    return ServedSide(name, run_id, sum(row.n_responses for row in rows), tuple(parts))


def bucket_lines(report: ReleaseReport, buckets: Mapping[int, Sequence[BucketReport]]) -> list[BucketLine]:
    """One line for each bucket of each side, the baseline above; a run that several gates share is there once."""
    found, seen = [], set()
    for gate in report.gates:
        for name in SIDES:
            side = _side(gate, name)
            if (name, side.run_id) in seen:
                continue
            seen.add((name, side.run_id))
            rows = _by_share(buckets.get(side.run_id, ()))
            found += [BucketLine(gate.suite, name, side.run_id, row, _mean(row)) for row in rows]
    return found


def _mean(bucket: BucketReport) -> float | None:
    """The bucket's own score; None while a repeat of it is not whole."""
    known = [line.points for line in bucket.repeats if line.points is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(bucket.repeats) else None

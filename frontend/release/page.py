"""The release page put together from what the selectors read. Nothing is decided here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalboard.contract.bucket import Bucket, Metric
from evalboard.contract.compare import Comparison
from evalboard.contract.probe import ProbeHop, ProbeRow
from evalboard.contract.release import Gate, GateSide, Release
from evalboard.contract.stack import FingerprintDifference
from evalboard.core.compare import LOADED_BATCHES
from evalboard.wording import probe_states
from evalboard.wording.manifest import render_field_name, render_sides
from evalboard.wording.numbers import counted
from evalboard.wording.outcomes import compare_with_chance, define_changes
from evalboard.wording.run import without_odd_ones
from frontend.compare.pair_address import comparison_url
from frontend.release import words
from frontend.release.notes import Buckets, cause_ticks, decision_notes, reservations
from frontend.release.steps import is_sample, possible_next
from frontend.release.verdicts import VERDICTS
from frontend.release.worst import worst
from frontend.shell.charts import changes as score_changes
from frontend.shell.charts.axes import Bar
from frontend.shell.charts.marks import split
from frontend.templatetags.numbers import share

GAP = 0.6  # percent between the parts of the bar of who served what
MOVED_SHOWN = 4
MOVED_SHOWN_MIXED = 5
SIDES = ("baseline", "candidate")


@dataclass(frozen=True, slots=True)
class GateLine:
    """A row of the gates' table. is_apart: load may affect scores, and the sides were not interleaved."""

    gate: Gate
    strip: score_changes.ReleaseStrip | None
    ruler: score_changes.RowRuler | None
    is_apart: bool

    @property
    def compare_url(self) -> str:
        return comparison_url(*self.gate.run_ids, terms=self.gate.terms)

    @property
    def tone(self) -> str:
        """Return the class of its ink; what only advises has none."""
        return f"verdict-{VERDICTS[self.gate.verdict or ''].glyph}" if self.gate.tier == "critical" else ""


@dataclass(frozen=True, slots=True)
class BucketLine:
    """One bucket of one side. `score` is the mean of its own repeats."""

    suite: str
    side: str
    run_id: int
    bucket: Bucket
    score: float | None


@dataclass(frozen=True, slots=True)
class ProbeLine:
    """A probe's state for an endpoint. hop: for a gateway, a sentence on what it breaks."""

    probe: ProbeRow
    word: str
    is_well: bool
    hop: str = ""


@dataclass(frozen=True, slots=True)
class MetricLine:
    """A metric over samples on both sides of a gate; None if a side lacks it."""

    suite: str
    name: str
    baseline: Metric | None
    candidate: Metric | None


@dataclass(frozen=True, slots=True)
class ServedPart:
    """A bucket's part of the bar; `place` 0 is the largest."""

    bucket: Bucket
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
class ServingTable:
    """Who answered, shown instead of the ruler if nothing was measured.

    without: what a side that several served scores without the odd ones, else "". `columns` head the two sides of
    `moved`.
    """

    title: str
    caption: str
    without: str
    sides: tuple[ServedSide, ...]
    columns: tuple[str, str]
    moved: tuple[tuple[str, str, str], ...]
    n_more: int
    n_equal: int
    url: tuple[int, int] | None


def context(
    report: Release,
    *,
    buckets: Buckets,
    changes: words.Changes,
    comparison: Comparison | None,
    between: FingerprintDifference | None,
) -> dict[str, Any]:
    """Return what the page's templates read.

    `buckets`, `changes`: of all runs that the gates name. `between`: the two fingerprints of `stacks_of`, if any.
    """
    gate = report.headline
    support = tuple(_support(report))
    scale = score_changes.rows_scale((each.difference, each.interval, each.tolerance_points) for each in report.gates)
    lines = tuple(
        GateLine(
            each,
            score_changes.strip(each),
            score_changes.row_ruler(each.difference, each.interval, each.tolerance_points, scale),
            _is_apart(each, buckets),
        )
        for each in report.gates
    )
    return {
        "release": report,
        "headline": gate,
        "mark": VERDICTS[report.verdict or ""],
        "plate": score_changes.plate(gate),
        "plate_claim": words.describe_plate(gate),
        "served": served(gate, buckets, comparison, between) if gate.verdict == "not_comparable" else None,
        "support": support,
        "other_reasons": tuple(_other_reasons(report)),
        "lines": lines,
        "gates_note": words.describe_gates(report),
        "outcome_links": words.outcome_links(gate),
        "by_chance": compare_with_chance(gate.changed),
        "definitions": define_changes(gate.changed, gate.metric),
        "ticks": cause_ticks(report, buckets, comparison),
        "notes": decision_notes(report),
        "reservations": reservations(report),
        "ledger_title": words.name_ledger(gate),
        "ledger_result": words.describe_ledger(gate, comparison),
        "bucket_lines": tuple(bucket_lines(report, buckets)),
        "servers": counted(len({line.bucket.fingerprint.id for line in bucket_lines(report, buckets)}), "server"),
        "metric_lines": tuple(line for each in report.gates for line in metric_lines(each, buckets)),
        "compare_url": comparison_url(*gate.run_ids, terms=gate.terms),
        "treatment": words.describe_treatment(report.terms),
        "treatment_short": words.describe_treatment(report.terms).partition(";")[0],
        "story": words.story(report, changes),
        "sign_offs": tuple(
            (line, words.describe_void(line, report, changes) if line.void else "") for line in report.signoffs
        ),
        "standing": tuple(line for line in report.signoffs if not line.void),
        "worst": worst(gate, comparison),
        "scorer_digest": comparison.sides.candidate.scorer.digest if comparison else "",
    }


def _is_apart(gate: Gate, buckets: Buckets) -> bool:
    served = (bucket for side in (gate.baseline, gate.candidate) for bucket in buckets.get(side.run_id, ()))
    return gate.is_in_turn is False and any(bucket.batch_class in LOADED_BATCHES for bucket in served)


def _support(report: Release) -> list[str]:
    """Return the next steps in words, except opening the broken cases, which is the first button."""
    lines = [line for line in possible_next(report) if line.gate in (None, report.headline_gate)]
    is_shown = report.verdict == "no_ship" and report.headline.changed.n_broken
    sample = [words.SAID.write("sample_ends")] if len(lines) < len(report.next) and is_sample(report) else []
    return [*sample, *(line.text for line in lines if not (is_shown and line.code == "sign"))]


def _other_reasons(report: Release) -> list[str]:
    """Return why gates other than the headline's did not ship."""
    lines = [line for line in report.reasons if line.gate is not None and line.gate != report.headline_gate]
    return [line.text for line in lines if report.gates[line.gate or 0].verdict != "ship"]


def stacks_of(gate: Gate, buckets: Buckets) -> tuple[int, int] | None:
    """Return the two fingerprints to compare: of one mixed side, else of both sides; None if equal."""
    mixed = _mixed(gate, buckets)
    stacks = mixed or [rows[0] for side in SIDES if (rows := list(buckets.get(_side(gate, side).run_id, ())))]
    if len(stacks) < 2 or stacks[0].fingerprint.id == stacks[1].fingerprint.id:
        return None
    return int(stacks[0].fingerprint.id), int(stacks[1].fingerprint.id)


def served(
    gate: Gate,
    buckets: Buckets,
    comparison: Comparison | None,
    between: FingerprintDifference | None,
) -> ServingTable:
    mixed = _mixed(gate, buckets)
    sides = tuple(_served_side(name, _side(gate, name).run_id, buckets) for name in SIDES)
    if mixed:
        name = next(side.side for side in sides if len(side.parts) > 1)
        shown = tuple(side for side in sides if len(side.parts) > 1)
        moved = between.fields.moved if between else ()
        one, other = (bucket.backend for bucket in mixed[:2])
        title, columns = f"Who served the {name}’s responses", (one, other)
    else:
        shown = tuple(side for side in sides if side.parts)
        moved = comparison.moved_fields if comparison else between.fields.moved if between else ()
        title, columns = "Who served which side", SIDES
    total = sum(side.n_responses for side in shown)
    whose = f"share of {total:,} responses" if mixed else f"{total:,} responses"
    most = MOVED_SHOWN_MIXED if len(shown) == 1 else MOVED_SHOWN
    return ServingTable(
        title=title,
        caption=f"{whose} by serving stack, one score for each",
        without=_without_odd_ones(shown[0]) if mixed else "",
        sides=shown,
        columns=(columns[0], columns[1]),
        moved=tuple((render_field_name(each.field), *render_sides(each)) for each in moved[:most]),
        n_more=max(len(moved) - most, 0),
        n_equal=between.n_equal if between else 0,
        url=(int(between.a.id), int(between.b.id)) if between else None,
    )


def _mixed(gate: Gate, buckets: Buckets) -> list[Bucket]:
    """Return the buckets of a side that has more than one, the candidate's first."""
    rows = (list(buckets.get(_side(gate, side).run_id, ())) for side in reversed(SIDES))
    return next((_by_share(group) for group in rows if len(group) > 1), [])


def _side(gate: Gate, name: str) -> GateSide:
    return gate.baseline if name == "baseline" else gate.candidate


def _by_share(rows: Sequence[Bucket]) -> list[Bucket]:
    return sorted(rows, key=lambda row: -row.n_responses)


def _served_side(name: str, run_id: int, buckets: Buckets) -> ServedSide:
    rows = _by_share(buckets.get(run_id, ()))
    total = max(sum(row.n_responses for row in rows), 1)
    bars = split([row.n_responses for row in rows], least=0.6, gap=GAP)
    parts = tuple(
        ServedPart(row, place, row.n_responses / total, bar, _mean(row))
        for place, (row, bar) in enumerate(zip(rows, bars, strict=True))
    )
    return ServedSide(name, run_id, sum(row.n_responses for row in rows), parts)


def _without_odd_ones(side: ServedSide) -> str:
    first, *others = side.parts
    odd = [(share(part.share), f"backend {part.bucket.backend}") for part in others]
    return without_odd_ones(first.score, odd)


def bucket_lines(report: Release, buckets: Buckets) -> list[BucketLine]:
    """Return one line for each bucket of each side, the baseline above.

    A run that several gates share is there once.
    """
    lines, seen = [], set()
    for gate in report.gates:
        for name in SIDES:
            side = _side(gate, name)
            if (name, side.run_id) in seen:
                continue
            seen.add((name, side.run_id))
            rows = _by_share(buckets.get(side.run_id, ()))
            lines += [BucketLine(gate.suite, name, side.run_id, row, _mean(row)) for row in rows]
    return lines


def metric_lines(gate: Gate, buckets: Buckets) -> list[MetricLine]:
    """Return a line for each metric of either side; empty if several buckets answered one."""
    served = [buckets.get(_side(gate, name).run_id, ()) for name in SIDES]
    if any(len(rows) != 1 for rows in served):
        return []
    ours, theirs = ({metric.name: metric for metric in rows[0].metrics or ()} for rows in served)
    return [MetricLine(gate.suite, name, ours.get(name), theirs.get(name)) for name in {**ours, **theirs}]


def _mean(bucket: Bucket) -> float | None:
    """Return the bucket's own score; None while a repeat of it is not whole."""
    return None if any(line.score is None for line in bucket.repeats) else bucket.score


def probe_lines(rows: Sequence[ProbeRow], hops: Mapping[str, ProbeHop]) -> tuple[ProbeLine, ...]:
    """Return a line per probe, failed ones included. hops: probe id → its gateway pair."""
    return tuple(_probe_line(row, hops.get(row.id)) for row in rows)


def _probe_line(row: ProbeRow, hop: ProbeHop | None) -> ProbeLine:
    if row.finding is None:
        return ProbeLine(row, "Failed", is_well=False)
    words_of_state = probe_states.describe_state(row.kind, row.finding.state)
    is_gateway = hop is not None and hop.gateway_probe == row.id
    sentence = (hop.sentence or "") if hop is not None and is_gateway else ""
    return ProbeLine(row, words_of_state.word, is_well=words_of_state.standing in ("good", "early"), hop=sentence)

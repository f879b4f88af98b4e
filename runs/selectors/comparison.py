"""A comparison as its page and `GET /compare/` show it, the list of its cases apart."""

from dataclasses import dataclass, fields
from datetime import datetime
from string import ascii_uppercase
from typing import Any

from evalboard.core.comparability import Block
from evalboard.core.errors import NotFound
from evalboard.core.fingerprint import Moved
from evalboard.core.larger_shifts import LargerShifts
from evalboard.core.ledger import shown_tenths
from runs.models import Bucket, Case, Comparison, Repeat, RepeatScore, Run
from runs.pair_parting import stored_words
from runs.selectors.response import draw
from runs.selectors.run_scores import Range, drawn_points, span

CLUSTERS_SHOWN, FACETS_SHOWN = 23, 40
SIDES = ("baseline", "candidate")
NO_SIDES: dict[str, Any] = {name: {"repeats": [], "buckets": [], "vocabulary": None} for name in SIDES}


@dataclass(frozen=True, slots=True)
class SideBucket:
    """A bucket that served one side. `letter` names it on the page ("A"), the same on both sides.

    n_responses, share: of the side's responses that are compared, share being 1 where it served all.
    """

    letter: str
    id: int
    model_name: str
    model_digest: str
    fingerprint_id: int
    fingerprint_digest: str
    fingerprint_label: str
    batch_class: str
    n_responses: int
    share: float


@dataclass(frozen=True, slots=True)
class SideReport:
    """The baseline or the candidate.

    repeats: the indexes (from 1) that are compared; points: one for each under the scorer it is compared with, None
    unless every case of the repeat is scored and one bucket served them all. range: over them, None where not all are
    known or several buckets served them (scores are never pooled across buckets). n_repeats: the run's, so that "3 of
    5" can be said.
    """

    run_id: int
    suite: str
    suite_version: int
    endpoint: str
    profile: str
    model_name: str
    status: str
    labels: dict[str, str]
    created_at: datetime
    n_repeats: int
    repeats: tuple[int, ...]
    points: tuple[float | None, ...]
    range: Range | None
    buckets: tuple[SideBucket, ...]
    scorer_digest: str
    profile_slug: str = ""
    profile_version: int = 0


@dataclass(frozen=True, slots=True)
class ComparedCounts:
    """Numbers of pairs. identical, drift_only, flipped, text_only and missing are all there are, n_pairs without the
    missing. score_changed cuts across them; `flipped_score_changed` is its part within flipped.

    While `is_partial`, the responses that have not been read yet are counted in `unread`, and only identical,
    missing, unread and score_changed are final.
    """

    n_pairs: int
    identical: int
    drift_only: int
    flipped: int
    text_only: int
    missing: int
    unread: int
    score_changed: int
    flipped_score_changed: int
    n_cases: int
    n_cases_paired: int
    n_cases_missing: int
    n_cases_score_changed: int

    @property
    def is_partial(self) -> bool:
        return self.unread > 0


@dataclass(frozen=True, slots=True)
class OutcomeCounts:
    """Numbers of cases, as a verdict over these repeats counts them (core.paired)."""

    broken: int
    fixed: int
    unstable: int


NOTHING_COUNTED = {field.name: 0 for field in fields(ComparedCounts)}


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One cause's part of the difference, in points. `shown` is to one decimal so that the lines add up to the shown
    difference. n_cases: cases whose score it changed; n_pairs: pairs of this cause, whether a score moved or not.
    """

    cause: str
    n_cases: int
    points: float
    shown: float
    gained: float
    lost: float
    n_pairs: int


@dataclass(frozen=True, slots=True)
class CauseCount:
    """How many differing pairs have a cause, and how many of them changed the score: the list's filters."""

    cause: str
    n_pairs: int
    n_score_changed: int


@dataclass(frozen=True, slots=True)
class CauseBins:
    """One cause's counts, one for each bin."""

    cause: str
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PositionHistogram:
    """Positions by cause, stacked: bin i covers starts[i] up to, not including, starts[i] + width.

    n_at_start: how many stand at position 0 itself. Flips and onsets of one comparison have the same bins.
    """

    width: int
    starts: tuple[int, ...]
    series: tuple[CauseBins, ...]
    n: int
    n_at_start: int


@dataclass(frozen=True, slots=True)
class FlipPoint:
    """One flip of the scatter, in nats: the baseline's margin there, how far the logits moved, the gap at the onset.

    What is not known is None.
    """

    case_id: str
    repeat_baseline: int
    repeat_candidate: int
    cause: str
    flip: int
    margin: float | None
    movement: float | None
    gap: float | None


@dataclass(frozen=True, slots=True)
class NoiseLine:
    """The numeric noise that near ties and shifts were judged by, in nats. `near` is the largest movement at a flip
    that it explains. `sentence` says it for people, "assumed" or "measured" included.
    """

    sd: float
    near: float
    ulp: float
    is_assumed: bool
    dtype: str
    sentence: str


@dataclass(frozen=True, slots=True)
class ClusterLine:
    """Pairs of one cause that parted on the same two tokens, drawn; "" where a side had ended.

    key: what `?cluster=` takes. case_ids: the first few of its n_cases. n_of_cause: cases that parted for this cause
    at all, as in "37 of 41".
    """

    key: str
    cause: str
    baseline_token: str
    candidate_token: str
    n_cases: int
    n_of_cause: int
    case_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ComparisonProgress:
    """n_done of n_total distinct pairs of traces have been read; `error` says why it failed, else empty."""

    status: str
    n_done: int
    n_total: int
    error: str

    @property
    def is_finished(self) -> bool:
        return self.status == "finished"


@dataclass(frozen=True, slots=True)
class ComparisonReport:
    """Everything but the case list.

    Points are None where no case is scored on both sides, or several buckets served one of them. While `progress` is
    not finished, ledger, histograms, flips and clusters are empty, larger_shifts is None, and counts are partial.
    n_flips: of all pairs, where `flips` is a sample of at most FLIPS_SHOWN. n_clusters: of all, where `clusters` are
    the largest. backends: the letter pairs that differing pairs have ("A", "B"), for the filter; tags likewise, both
    at most FACETS_SHOWN. is_same_run: one repeat against another of the same run. outcomes: None where several buckets
    served a side.
    """

    id: int
    baseline: SideReport
    candidate: SideReport
    is_same_run: bool
    repeats: tuple[int, int] | None
    points_baseline: float | None
    points_candidate: float | None
    difference: float | None
    comparable: bool
    moved: tuple[Moved, ...]
    blocks: tuple[Block, ...]
    counts: ComparedCounts
    outcomes: OutcomeCounts | None
    ledger: tuple[LedgerLine, ...]
    causes: tuple[CauseCount, ...]
    larger_shifts: LargerShifts | None
    noise: NoiseLine | None
    onset_histogram: PositionHistogram | None
    flip_histogram: PositionHistogram | None
    flips: tuple[FlipPoint, ...]
    n_flips: int
    clusters: tuple[ClusterLine, ...]
    n_clusters: int
    backends: tuple[tuple[str, str], ...]
    tags: tuple[str, ...]
    progress: ComparisonProgress
    created_at: datetime
    finished_at: datetime | None

    @property
    def mixed_sides(self) -> tuple[str, ...]:
        """Those that several buckets served; where there is one, neither side's points nor a difference is given."""
        return tuple(name for name in SIDES if len(getattr(self, name).buckets) > 1)


def comparison_report(comparison_id: int) -> ComparisonReport:
    """What `services.compare(baseline=, candidate=, repeats=)` made, by the id of what it returned. Raises NotFound.

    A view calls the service first: it finds or makes the comparison, and raises NotFound, InvalidInput or Conflict
    where two runs cannot be compared.
    """
    row = Comparison.objects.filter(pk=comparison_id).first()
    if row is None or ("sides" not in row.summary and row.status != Comparison.Status.FAILED):
        raise NotFound(f"There is no comparison {comparison_id} any more; compare the two runs again.")
    kept = _Kept(row)
    points = kept.summary.get("score") or {"baseline": None, "candidate": None, "difference": None}
    blocks = tuple(Block(**block) for block in kept.summary.get("blocks", ()))
    return ComparisonReport(
        id=row.pk,
        baseline=_side(row.baseline_id, kept, "baseline"),
        candidate=_side(row.candidate_id, kept, "candidate"),
        is_same_run=row.baseline_id == row.candidate_id,
        repeats=None if row.baseline_repeat is None else (row.baseline_repeat, row.candidate_repeat or 0),
        points_baseline=points["baseline"],
        points_candidate=points["candidate"],
        difference=points["difference"],
        comparable=bool(kept.summary.get("comparable", False)),
        moved=tuple(Moved(**moved) for moved in kept.summary.get("moved", ())),
        blocks=blocks,
        counts=ComparedCounts(**kept.summary.get("counts", NOTHING_COUNTED)),
        outcomes=OutcomeCounts(**known) if (known := kept.summary.get("outcomes")) else None,
        ledger=_ledger(kept.summary),
        causes=tuple(CauseCount(**count) for count in kept.summary.get("causes", ())),
        larger_shifts=LargerShifts(**shifts) if (shifts := kept.summary.get("larger_shifts")) else None,
        noise=NoiseLine(**noise) if (noise := kept.summary.get("noise")) else None,
        onset_histogram=_histogram(kept.summary.get("onsets")),
        flip_histogram=_histogram(kept.summary.get("flips")),
        flips=tuple(_flip(flip, kept) for flip in kept.summary.get("sample", ())),
        n_flips=kept.summary["flips"]["n"] if "flips" in kept.summary else 0,
        clusters=tuple(_cluster(cluster, kept) for cluster in kept.summary.get("clusters", ())[:CLUSTERS_SHOWN]),
        n_clusters=kept.summary.get("n_clusters", 0),
        backends=tuple(
            (kept.letters.get(ours, ""), kept.letters.get(theirs, ""))
            for ours, theirs in kept.summary.get("backends", ())[:FACETS_SHOWN]
        ),
        tags=tuple(kept.summary.get("tags", ())[:FACETS_SHOWN]),
        progress=ComparisonProgress(row.status, row.n_done, row.n_pairs, row.error),
        created_at=row.created_at,
        finished_at=row.finished_at,
    )


class _Kept:
    """A stored summary, with what its numbers stand for: buckets as letters, case indexes as ids, tokens as text."""

    def __init__(self, row: Comparison) -> None:
        self.summary: dict[str, Any] = row.summary
        self.sides: dict[str, Any] = row.summary.get("sides", NO_SIDES)
        self.letters = letters(row.summary)
        indexes = {flip["case_index"] for flip in self.summary.get("sample", ())}
        shown = self.summary.get("clusters", ())[:CLUSTERS_SHOWN]
        indexes |= {index for cluster in shown for index in cluster["cases"]}
        cases = Case.objects.filter(suite_version__runs=row.baseline_id, index__in=indexes)
        self.case_ids = dict(cases.values_list("index", "case_id"))
        found = Bucket.objects.filter(pk__in=self.letters).select_related("model", "fingerprint")
        self.buckets = {bucket.pk: bucket for bucket in found}


def letters(summary: dict[str, Any]) -> dict[int, str]:
    """Bucket id → its letter: the baseline's first, each side's by their share."""
    sides = summary.get("sides", NO_SIDES)
    ids = dict.fromkeys(bucket for name in SIDES for bucket, _, _ in sides[name]["buckets"])
    return {bucket: _letter(place) for place, bucket in enumerate(ids)}


def _letter(place: int) -> str:
    """A to Z, then A2 and so on."""
    again, at = divmod(place, len(ascii_uppercase))
    return ascii_uppercase[at] + (str(again + 1) if again else "")


def _side(run_id: int, kept: _Kept, name: str) -> SideReport:
    run = Run.objects.select_related("suite_version__suite", "suite_version__scorer", "endpoint", "profile").get(
        pk=run_id
    )
    side = kept.sides[name]
    scored = RepeatScore.objects.filter(repeat__run=run, scorer=run.suite_version.scorer_id)
    points = dict(scored.values_list("repeat__index", "points"))
    left_out = dict(Repeat.objects.filter(run=run).order_by("index").values_list("index", "columns__n_left_out"))
    repeats = tuple(side["repeats"])
    found = tuple(points.get(index) for index in repeats)
    buckets = tuple(_bucket(bucket, n, share, kept) for bucket, n, share in side["buckets"])
    is_whole = len(buckets) <= 1 and None not in found
    return SideReport(
        run_id=run.pk,
        suite=run.suite_version.suite.slug,
        suite_version=run.suite_version.number,
        endpoint=run.endpoint.slug,
        profile=str(run.profile),
        profile_slug=run.profile.slug,
        profile_version=run.profile.version,
        model_name=buckets[0].model_name if buckets else run.endpoint.model_name,
        status=run.status,
        labels=run.labels,
        created_at=run.created_at,
        n_repeats=len(left_out),
        repeats=repeats,
        points=found,
        range=span(drawn_points(found, [left_out[index] or 0 for index in repeats])) if is_whole else None,
        buckets=buckets,
        scorer_digest=run.suite_version.scorer.digest,
    )


def _bucket(bucket_id: int, n: int, share: float, kept: _Kept) -> SideBucket:
    bucket = kept.buckets[bucket_id]
    return SideBucket(
        letter=kept.letters[bucket_id],
        id=bucket_id,
        model_name=bucket.model.name,
        model_digest=bucket.model.digest,
        fingerprint_id=bucket.fingerprint_id,
        fingerprint_digest=bucket.fingerprint.digest,
        fingerprint_label=bucket.fingerprint.label,
        batch_class=bucket.batch_class,
        n_responses=n,
        share=share,
    )


def _ledger(summary: dict[str, Any]) -> tuple[LedgerLine, ...]:
    rows = summary.get("ledger", ())
    shown = shown_tenths([row["points"] for row in rows], summary["score"]["difference"]) if rows else []
    n_pairs = {count["cause"]: count["n_pairs"] for count in summary.get("causes", ())}
    return tuple(
        LedgerLine(**row, shown=tenths, n_pairs=n_pairs.get(row["cause"], 0))
        for row, tenths in zip(rows, shown, strict=True)
    )


def _histogram(kept: dict[str, Any] | None) -> PositionHistogram | None:
    if kept is None:
        return None
    return PositionHistogram(
        width=kept["width"],
        starts=tuple(kept["starts"]),
        series=tuple(CauseBins(line["cause"], tuple(line["counts"])) for line in kept["series"]),
        n=kept["n"],
        n_at_start=kept["n_at_start"],
    )


def _flip(flip: dict[str, Any], kept: _Kept) -> FlipPoint:
    return FlipPoint(
        case_id=kept.case_ids[flip["case_index"]],
        repeat_baseline=flip["repeat_baseline"],
        repeat_candidate=flip["repeat_candidate"],
        cause=flip["cause"],
        flip=flip["flip_position"],
        margin=flip["margin_baseline"],
        movement=flip["evidence__movement"],
        gap=flip["gap_at_onset"],
    )


def _cluster(cluster: dict[str, Any], kept: _Kept) -> ClusterLine:
    ours, theirs = cluster["tokens"][0]
    return ClusterLine(
        key=cluster["key"],
        cause=cluster["cause"],
        baseline_token=drawn(ours, kept.sides["baseline"]["vocabulary"]),
        candidate_token=drawn(theirs, kept.sides["candidate"]["vocabulary"]),
        n_cases=cluster["n_cases"],
        n_of_cause=cluster["n_of_cause"],
        case_ids=tuple(kept.case_ids[index] for index in cluster["cases"]),
    )


def drawn(token: int | None, vocabulary_id: int | None) -> str:
    """A token as people see it, "" for none."""
    if token is None:
        return ""
    return draw([token], None if vocabulary_id is None else stored_words(vocabulary_id))[0]

"""A comparison as its page and `GET /compare/` show it, the list of its cases apart."""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache, reduce
from operator import or_
from typing import Any
from urllib.parse import urlencode

from django.db.models import F
from django.urls import reverse

from evalboard.contract import compare as contract
from evalboard.contract.base import Note
from evalboard.contract.compare import SIDES, ComparedCounts
from evalboard.contract.parts import FingerprintNamed, ModelServed, RepeatScored
from evalboard.contract.run import SuiteNamed
from evalboard.core.compare import round_to_tenths
from evalboard.core.errors import NotFound
from evalboard.core.stats import NOISE_LEVEL, find_beyond
from evalboard.wording.cause import count_larger_shifts, explain_noise
from evalboard.wording.computation import write_computation
from evalboard.wording.noise_share import write_noise_share
from evalboard.wording.numbers import letter
from runs.compare.inputs import RELATED
from runs.models import BucketRecord, Case, ComparisonRecord, RepeatRecord, RepeatScore, RunRecord
from runs.pairs import stored_words
from runs.run import draw, drawn_points, span

CLUSTERS_SHOWN, FACETS_SHOWN = 23, 40
NO_SIDES: dict[str, Any] = {name: {"repeats": [], "buckets": [], "vocabulary": None} for name in SIDES}


NOTHING_COUNTED = dict.fromkeys(ComparedCounts.model_fields, 0)


def comparison_report(comparison_id: int) -> contract.Comparison:
    """Read what `compare(baseline=, candidate=, repeats=)` made, by the id of the record that it returned.

    Raises NotFound where a further repeat has replaced it since.
    """
    row = ComparisonRecord.objects.defer("outcomes").filter(pk=comparison_id).first()
    if row is None or ("sides" not in row.summary and row.status != ComparisonRecord.Status.FAILED):
        raise NotFound(f"There is no comparison {comparison_id} any more; compare the two runs again.")
    runs = RunRecord.objects.select_related(*RELATED).in_bulk({row.baseline_id, row.candidate_id})
    row.baseline, row.candidate = runs[row.baseline_id], runs[row.candidate_id]
    return report_of(row)


def report_of(row: ComparisonRecord) -> contract.Comparison:
    """Read of the record that `compare` has just returned what `comparison_report` reads by its id."""
    stored = _Summarised(row)
    points = stored.summary.get("score") or {"baseline": None, "candidate": None, "difference": None}
    repeats = None if row.baseline_repeat is None else f"{row.baseline_repeat},{row.candidate_repeat or 0}"
    return contract.Comparison(
        baseline=str(row.baseline_id),
        candidate=str(row.candidate_id),
        repeat=repeats,
        progress=contract.ComparisonProgress(
            status=row.status, n_done=row.n_done, n_total=row.n_pairs, error=row.error or None
        ),
        comparable=bool(stored.summary.get("comparable", False)),
        moved=tuple(contract.Moved(**moved) for moved in stored.summary.get("moved", ())),
        blocks=tuple(Note(code=block["code"], text=block["text"]) for block in stored.summary.get("blocks", ())),
        score=contract.ScoreCompared(**points),
        counts=ComparedCounts(**stored.summary.get("counts", NOTHING_COUNTED)),
        outcomes=contract.OutcomeCounts(**known) if (known := stored.summary.get("outcomes")) else None,
        ledger=_ledger(stored.summary),
        noise_share=_noise_share(stored.summary),
        computation=_computation(stored.summary.get("computation")),
        larger_shifts=_larger_shifts(stored.summary.get("larger_shifts")),
        noise=_noise(stored.summary.get("noise")),
        onset_histogram=_histogram(stored.summary.get("onsets")),
        flip_histogram=_histogram(stored.summary.get("flips")),
        clusters=tuple(_cluster(cluster, stored) for cluster in stored.summary.get("clusters", ())[:CLUSTERS_SHOWN]),
        n_clusters=stored.summary.get("n_clusters", 0),
        sides=contract.ComparedSides(
            baseline=_side(row.baseline_id, stored, "baseline"), candidate=_side(row.candidate_id, stored, "candidate")
        ),
        finished_at=row.finished_at,
        url=_address(row, repeats),
        id=row.pk,
        **_for_pages(stored),
    )


def read_computations(pairs: Collection[tuple[int, int]]) -> dict[tuple[int, int], contract.Computation]:
    """Return by (baseline, candidate) what the newest comparison of two runs says of their computation, in one query.

    pairs: run ids. Of two that nobody has compared, or whose comparison is at work, nothing is there.
    """
    baselines, candidates = {ours for ours, _ in pairs}, {theirs for _, theirs in pairs}
    rows = ComparisonRecord.objects.filter(baseline__in=baselines, candidate__in=candidates, baseline_repeat=None)
    newest = rows.order_by("pk").values_list("baseline", "candidate", "summary__computation")
    stored = {(ours, theirs): judged for ours, theirs, judged in newest}
    return {pair: known for pair in pairs if (known := _computation(stored.get(pair))) is not None}


def _computation(judged: dict[str, Any] | None) -> contract.Computation | None:
    return contract.Computation(**judged, text=write_computation(judged)) if judged else None


def _address(row: ComparisonRecord, repeats: str | None) -> str:
    path = reverse("compare", args=[row.baseline_id, row.candidate_id])
    return path if repeats is None else f"{path}?{urlencode({'repeat': repeats})}"


def pair_path(runs: tuple[int, int], case: str, repeats: tuple[int, int], at: int | None) -> str:
    """Return the page of one pair of responses, at a position."""
    place = f"{_pair_page(runs, case)}?repeat={repeats[0]}%2C{repeats[1]}"
    return place if at is None else f"{place}&at={at}"


@lru_cache(maxsize=1024)  # a list asks for each case's once for every pair of repeats
def _pair_page(runs: tuple[int, int], case: str) -> str:
    return reverse("trace_diff", args=[*runs, case])


def to_points(score: float | None) -> float | None:
    """Return a score from 0 to 1 in points."""
    return None if score is None else 100 * score


def _for_pages(stored: "_Summarised") -> dict[str, Any]:
    """Return what the page alone draws: the scatter of flips, and the filters of the case list."""
    backends = stored.summary.get("backends", ())[:FACETS_SHOWN]
    return {
        "causes": tuple(contract.CauseCount(**count) for count in stored.summary.get("causes", ())),
        "flips": tuple(contract.FlipPoint(**flip) for flip in stored.summary.get("sample", ())),
        "n_flips": stored.summary["flips"]["n"] if "flips" in stored.summary else 0,
        "backends": tuple((stored.letters.get(ours, ""), stored.letters.get(theirs, "")) for ours, theirs in backends),
        "tags": tuple(stored.summary.get("tags", ())[:FACETS_SHOWN]),
    }


class _Summarised:
    """A stored summary, with what its numbers stand for: buckets as letters, case indexes as ids, tokens as text."""

    def __init__(self, row: ComparisonRecord) -> None:
        self.summary: dict[str, Any] = row.summary
        self.sides: dict[str, Any] = row.summary.get("sides", NO_SIDES)
        self.letters = letters(self.sides)
        shown = self.summary.get("clusters", ())[:CLUSTERS_SHOWN]
        self.case_ids = case_ids(row.baseline_id, {index for cluster in shown for index in cluster["cases"]})
        buckets = BucketRecord.objects.filter(pk__in=self.letters).select_related("model", "fingerprint")
        self.buckets = {bucket.pk: bucket for bucket in buckets}
        self.runs = {run.pk: run for run in (row.baseline, row.candidate)}
        ids = set(self.runs)
        self.points: dict[int, dict[int, float | None]] = {run_id: {} for run_id in ids}
        scored = RepeatScore.objects.filter(
            repeat__run__in=ids, repeat__cases=None, scorer=F("repeat__run__suite_version__scorer")
        )
        for run_id, index, points in scored.values_list("repeat__run", "repeat__index", "points"):
            self.points[run_id][index] = points
        self.left_out: dict[int, dict[int, int | None]] = {run_id: {} for run_id in ids}
        self.targeted: dict[int, list[int]] = {run_id: [] for run_id in ids}  # a bit a case of each such repeat
        repeats = RepeatRecord.objects.filter(run__in=ids).order_by("run", "index")
        columns = "run", "index", "columns__n_left_out", "cases", "status", "finished_at"
        for run_id, index, n_left_out, cases, status, finished_at in repeats.values_list(*columns):
            if cases is None:
                self.left_out[run_id][index] = n_left_out
            elif finished_at is not None and status not in RepeatRecord.WITHOUT_SCORE:
                self.targeted[run_id].append(int.from_bytes(bytes(cases)))


def case_ids(run_id: int, indexes: Iterable[int]) -> dict[int, str]:
    """Return case index → id for these cases of a run's suite version.

    Raises NotFound where the run has been deleted since its cases were named.
    """
    wanted = set(indexes)
    cases = Case.objects.filter(suite_version__runs=run_id, index__in=wanted).order_by()
    ids = dict(cases.values_list("index", "case_id"))
    if ids.keys() != wanted:
        raise NotFound(f"There is no run {run_id} any more.")
    return ids


def letters(sides: dict[str, Any]) -> dict[int, str]:
    """Return bucket id → its letter: the baseline's first, each side's by their share. sides: a summary's."""
    ids = dict.fromkeys(bucket for name in SIDES for bucket, _, _ in sides[name]["buckets"])
    return {bucket: letter(place) for place, bucket in enumerate(ids)}


def _side(run_id: int, stored: _Summarised, name: str) -> contract.ComparedSide:
    run, side = stored.runs[run_id], stored.sides[name]
    points, left_out = stored.points[run_id], stored.left_out[run_id]
    repeats = tuple(side["repeats"])
    scores = tuple(points.get(index) for index in repeats)
    buckets = tuple(_bucket(bucket, n, share, stored) for bucket, n, share in side["buckets"])
    is_whole = len(buckets) <= 1 and None not in scores
    return contract.ComparedSide(
        run=str(run.pk),
        suite=SuiteNamed(slug=run.suite_version.suite.slug, version=run.suite_version.number),
        endpoint=run.endpoint.slug,
        profile=run.profile.slug,
        profile_version=run.profile.version,
        model=buckets[0].model.name if buckets else run.endpoint.model_name,
        repeats=tuple(RepeatScored(index=index, score=score) for index, score in zip(repeats, scores, strict=True)),
        range=span(drawn_points(scores, [left_out[index] or 0 for index in repeats])) if is_whole else None,
        scorer=contract.ScorerOfSide(digest=run.suite_version.scorer.digest),
        buckets=buckets,
        targeted=_targeted(stored.targeted[run_id]),
        n_repeats=len(left_out),
    )


def _targeted(selections: list[int]) -> contract.TargetedBeside | None:
    if not selections:
        return None
    return contract.TargetedBeside(n_repeats=len(selections), n_cases=reduce(or_, selections).bit_count())


def _bucket(bucket_id: int, n: int, share: float, stored: _Summarised) -> contract.BucketOfSide:
    bucket = stored.buckets[bucket_id]
    fingerprint = bucket.fingerprint
    return contract.BucketOfSide(
        id=str(bucket_id),
        model=ModelServed(name=bucket.model.name, digest=bucket.model.digest),
        fingerprint=FingerprintNamed(id=str(fingerprint.pk), digest=fingerprint.digest, label=fingerprint.label),
        batch_class=bucket.batch_class,
        n_responses=n,
        share=share,
        backend=stored.letters[bucket_id],
    )


def _noise(noise: dict[str, Any] | None) -> contract.NumericNoise | None:
    if not noise:
        return None
    known = {**noise, "ulp": noise["ulp"] or None, "dtype": noise["dtype"] or None}
    return contract.NumericNoise.from_stored(known, text=explain_noise(noise))


def _larger_shifts(counts: dict[str, int] | None) -> contract.LargerShifts | None:
    return contract.LargerShifts(**counts, text=count_larger_shifts(**counts) or None) if counts else None


def _ledger(summary: dict[str, Any]) -> tuple[contract.LedgerLine, ...]:
    n_pairs = {count["cause"]: count["n_pairs"] for count in summary.get("causes", ())}
    rows = summary.get("ledger", ())
    return tuple(
        contract.LedgerLine(
            **line,
            parts=tuple(contract.LedgerPart(**part) for part, _ in _lines(parts, line["shown"])),
            n_pairs=n_pairs.get(line["cause"], 0),
        )
        for line, parts in _lines(rows, summary["score"]["difference"] if rows else 0.0)
    )


def _noise_share(summary: dict[str, Any]) -> contract.NoiseShare | None:
    share, rows = summary.get("noise_share"), summary.get("ledger")
    if not share or not rows:
        return None
    difference, up_to = summary["score"]["difference"], share["up_to"]
    each = [row for line in rows for row in (line, *line["parts"]) if row["cause"] == "near_tie"]
    facts = {
        **share,
        "level": NOISE_LEVEL,
        "difference": difference,
        "near_ties": math.fsum(row["points"] for row in each) if each else None,
    }
    return contract.NoiseShare(
        **share,
        level=NOISE_LEVEL,
        beyond=None if up_to is None else find_beyond(difference, up_to),
        text=write_noise_share(facts),
    )


def _lines(rows: Sequence[dict[str, Any]], whole: float) -> Iterator[tuple[dict[str, Any], Sequence[dict[str, Any]]]]:
    """Return the fields of each row with its shown tenth, and its parts; the shown tenths add up to the shown whole."""
    shown = round_to_tenths([row["points"] for row in rows], whole)
    for row, tenths in zip(rows, shown, strict=True):
        yield {name: value for name, value in row.items() if name != "parts"} | {"shown": tenths}, row.get("parts", ())


def _histogram(stored: dict[str, Any] | None) -> contract.PositionHistogram | None:
    return None if stored is None else contract.PositionHistogram.from_stored(stored)


def _cluster(cluster: dict[str, Any], stored: _Summarised) -> contract.Cluster:
    ours, theirs = cluster["tokens"][0]
    return contract.Cluster(
        key=cluster["key"],
        cause=cluster["cause"],
        baseline_token=drawn(ours, stored.sides["baseline"]["vocabulary"]),
        candidate_token=drawn(theirs, stored.sides["candidate"]["vocabulary"]),
        n_cases=cluster["n_cases"],
        n_of_cause=cluster["n_of_cause"],
        cases=tuple(stored.case_ids[index] for index in cluster["cases"]),
    )


def drawn(token: int | None, vocabulary_id: int | None) -> str:
    """Return a token as people see it, "" for none."""
    if token is None:
        return ""
    return draw([token], None if vocabulary_id is None else stored_words(vocabulary_id))[0]

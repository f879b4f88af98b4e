"""A suite's texts: the newest run against its baseline, and what its repeats can detect."""

from collections import Counter
from collections.abc import Sequence

from evalboard.contract.suite import BucketHistory, HistoryRow, SuiteVersion
from evalboard.core.suite import SuiteDocument, SuiteText
from evalboard.wording.messages import write
from evalboard.wording.numbers import counted, listed
from frontend.shell.findings import Headline
from frontend.suites.baselines import BaselinePeriod, bands, find_band, is_served_alike, rotations
from frontend.templatetags.numbers import points, span
from runs.suites import REPEATS, SuiteReport, SuiteStanding

RUNS_NAMED = 3

Scored = tuple[HistoryRow, BucketHistory]
NOUNS = {"prompt": "prompts", "target": "targets", "id": "ids", "tags": "tags", "group": "groups"}


def describe_text(read: SuiteText, suite: SuiteDocument) -> tuple[str, ...]:
    """Say what was understood of a suite's text: its format, its columns, and which of them are not read."""
    n_scorers = sum(case.scorer is not None for case in suite.cases)
    lines = [f"{counted(len(suite.cases), 'case')}, read as {read.format.upper()}."]
    if n_scorers:
        lines.append(write("{n:case} {n:has its|have their} own scorer.", n=n_scorers))
    if not read.header:
        return tuple(lines)
    chosen = [f"{NOUNS[name]} from {column}" for name, column in read.columns.items()]
    lines.append(f"It takes {listed(chosen)}.")
    if unread := [column for column in read.header if column and column not in read.columns.values()]:
        lines.append(f"It does not read {listed(unread)}.")
    if "id" not in read.columns:
        lines.append("No column has ids, so the cases are row-1, row-2 and so on. Add one if rows may move.")
    return tuple(lines)


def describe_suite(report: SuiteReport, standing: SuiteStanding | None = None) -> Headline:
    """Compare the newest score with the baseline of its line and profile, within a bucket."""
    standing = standing or SuiteStanding()
    scored = [(point, bucket) for bucket in report.buckets for point in bucket.runs if point.mean is not None]
    resolved = _resolved(report, standing)
    if not scored:
        return Headline("No run of this suite has a score yet.", resolved)
    newest = max(scored, key=lambda pair: (pair[0].date, pair[0].run_id))
    point, _ = newest
    key = (point.line, point.profile)
    current = next((row for row in standing.baselines if row.is_current and (row.line, row.profile) == key), None)
    if current is not None and current.expired is not None:
        claim = f"The baseline of {current.profile} expired with the rotation of {current.expired.at:%m-%d}."
        return Headline(claim, f"Nothing can ship against it until it has been run again. {resolved}")
    band = next((band for band in bands(report.buckets, standing) if band.baseline is current), None)
    if band is None:
        return _without_baseline(newest, scored, resolved)
    return Headline(f"{_steady(band, scored, standing)}; {_stands(newest, band)}.", resolved)


def _without_baseline(newest: Scored, scored: Sequence[Scored], resolved: str) -> Headline:
    point, bucket = newest
    claim = f"The newest score is {span(point.range)}, of run {point.run_id} on {point.endpoint}, {point.profile_name}."
    before = [other.range for other, where in scored if where is bucket and other is not point and other.range]
    if not before:
        return Headline(claim, f"First run of this model on this server. {resolved}")
    earlier = (min(low for low, _ in before), max(high for _, high in before))
    runs = "the earlier run" if len(before) == 1 else f"the {len(before)} earlier runs"
    return Headline(claim, f"Of the same bucket, {runs} scored {span(earlier)}. {resolved}")


def _steady(band: BaselinePeriod, scored: Sequence[Scored], standing: SuiteStanding) -> str:
    """Say whether runs of the baseline's bucket varied more than their repeats explain."""
    own = [point for point, bucket in scored if bucket.bucket_id == band.bucket.bucket_id]
    first = min(point.date for point in own)
    since = f"the rotation of {band.begin.at:%m-%d}" if band.begin else f"{first:%m-%d}"
    measured = standing.noise.get(band.bucket.bucket_id)
    if len(own) == 1:
        return f"Measured once since {since}"
    if measured is None:
        return f"{len(own)} runs since {since}, of unmeasured noise"
    moved = sum(abs((point.mean or 0.0) - band.mean) > measured.resolution_points for point in own)
    if not moved:
        return f"Steady since {since}"
    return f"{moved} of {len(own)} runs of the baseline’s bucket left it since {since}"


def _stands(newest: Scored, band: BaselinePeriod) -> str:
    point, bucket = newest
    if point.run_id == band.baseline.run_id:
        return "nothing has run since the baseline"
    if not is_served_alike(band.bucket, bucket):
        return f"run {point.run_id} has another stack, so it is not compared with the baseline"
    who = "newest run" if bucket.bucket_id == band.bucket.bucket_id else "newest candidate"
    ours, theirs = points(band.mean), points(point.mean or 0.0)
    if ours == theirs:
        return f"the {who} scored {theirs}, as its baseline run did"
    return f"the {who} scored {theirs}, its baseline run {ours}"


def _resolved(report: SuiteReport, standing: SuiteStanding) -> str:
    """Return what repeats per side can detect, for each measured batch class, newest first."""
    resolutions = {}
    for bucket in sorted(report.buckets, key=lambda bucket: bucket.runs[-1].run_id, reverse=True):
        measured = standing.noise.get(bucket.bucket_id)
        if measured is not None and bucket.batch_class not in resolutions:
            resolutions[bucket.batch_class] = measured
    worth = f"One of {report.suite.n_cases:,} cases is {points(report.suite.points_per_case)} points."
    if not resolutions and any(point.draws.is_one for bucket in report.buckets for point in bucket.runs):
        return f"The repeats of its sampled runs share one seed, so its noise is unknown. {worth}"
    if not resolutions:
        has_repeats = any(len(point.points) > 1 for bucket in report.buckets for point in bucket.runs)
        when = "unknown: no run has two independent repeats" if has_repeats else "known once a run has two repeats"
        return f"Its noise is {when}. {worth}"
    (batch_class, first), *others = resolutions.items()
    also = "".join(f", {_one(name)} bucket {points(each.resolution_points)}" for name, each in others[:2])
    resolved = (
        f"{_one(batch_class)} bucket detects changes of {points(first.resolution_points)} points on these cases{also}"
    )
    elsewhere = max(each.resolution_elsewhere_points for each in resolutions.values())
    return f"With {REPEATS} repeats a side, {resolved}. On new cases like these, {points(elsewhere)}. {worth}"


def _one(batch_class: str) -> str:
    """Return a batch class with its article: "a mixed", "an invariant"."""
    return f"{'an' if batch_class[:1] in 'aeiou' else 'a'} {batch_class}"


def describe_scorer(suite: SuiteVersion) -> Headline:
    """Say which kinds of scorer judge how many cases."""
    own = Counter(spec["kind"] for spec in suite.scorer["cases"].values())
    if suite.scorer["default"] is not None:
        own[suite.scorer["default"]["kind"]] += suite.n_cases - own.total()
    kinds = [f"{kind} {n:,}" for kind, n in own.most_common() if n]
    return Headline(" · ".join(kinds), "cases each" if len(kinds) > 1 else "cases")


def describe_history(report: SuiteReport, standing: SuiteStanding | None = None) -> Headline:
    """Caption the suite's chart: how many runs left their baseline, or whether they are one measurement."""
    turns = rotations(report.buckets, standing)
    zones = bands(report.buckets, standing) if standing else ()
    n_buckets = len(report.buckets)
    rest = "Buckets are never pooled or joined."
    if turns:
        rest = "Nothing is joined across a rotation: before and after are different measurements."
    outside, n_judged = _outside(report, zones)
    if n_judged:
        runs = sorted({band.baseline.run_id for band in zones if not band.is_expired})
        whose = f"baseline, run {runs[0]}" if len(runs) == 1 else "baseline that each is compared with"
        return Headline(f"{_which(outside, n_judged)} the noise floor of the {whose}.", rest)
    if turns:
        return Headline(f"A fingerprint rotated {_times(len(turns))}.", rest)
    if n_buckets == 1:
        return Headline("All runs are of one bucket, so they may be compared.", "A bar is a run's range.")
    return Headline(f"Score range of each run, in {n_buckets} buckets.", rest)


def _which(outside: Sequence[int], n_judged: int) -> str:
    """Name the runs that lie outside, the newest few of many."""
    if not outside:
        return "The newer run is inside" if n_judged == 1 else f"All {n_judged} newer runs are inside"
    shown = sorted(outside, reverse=True)[:RUNS_NAMED]
    more = f" and {len(outside) - len(shown)} more" if len(outside) > len(shown) else ""
    named = [str(run) for run in shown]
    names = f"{', '.join(named)}{more}" if more else listed(named)
    one = len(outside) == 1
    share = f", of {n_judged} runs," if n_judged > len(outside) else ""
    return f"Run{'' if one else 's'} {names}{share} {'is' if one else 'are'} outside"


def _outside(report: SuiteReport, zones: Sequence[BaselinePeriod]) -> tuple[list[int], int]:
    """Return the runs with a mean outside their baseline's noise floor, and how many were compared."""
    outside: list[tuple[int, bool]] = []
    for bucket in report.buckets:
        for point in bucket.runs:
            band = find_band(zones, point, bucket)
            if band is None or band.is_expired or band.noise is None or point.mean is None:
                continue
            if point.run_id != band.baseline.run_id:
                outside.append((point.run_id, not band.low <= point.mean <= band.high))
    return [run for run, is_outside in outside if is_outside], len(outside)


def _times(n: int) -> str:
    return {1: "once", 2: "twice"}.get(n, f"{n} times")

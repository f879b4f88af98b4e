"""A suite's texts: the newest run against its baseline, and what its repeats can detect."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalboard.contract.suite import BucketHistory, HistoryRow, OwnScorer, SuiteVersion
from evalboard.core.digest import canonical_json
from evalboard.core.scoring import KINDS, external_specs
from evalboard.core.suite import SuiteDocument, SuiteText
from evalboard.wording.messages import Messages, speak
from evalboard.wording.numbers import listed
from evalboard.wording.scorers import DIGEST_CHARS, name_scorer
from frontend.shell.findings import Headline
from frontend.suites.baselines import BaselinePeriod, bands, find_band, is_served_alike, rotations
from frontend.templatetags.numbers import points, span
from runs.suites import REPEATS, SuiteReport, SuiteStanding

RUNS_NAMED = 3

Scored = tuple[HistoryRow, BucketHistory]
SAID = Messages(
    "suite_page",
    {
        ("text", "asserts"): {
            "read": "{n:case}, read as {format}.",
            "scorers": "{n:case} {n:has|have} a scorer of {n:its|their} own.",
            "takes": "It takes {columns:list}.",
            "unread": "It does not read {columns:list}.",
            "no_ids": "No column has ids, so the cases are row-1, row-2 and so on. Add one if rows may move.",
        },
        ("scorers", "asserts"): {
            "default": "{scorer} scores {n:case}.",
            "cases": "{n:case} {n:has|have} a scorer of {n:its|their} own.",
            "options": "Options: {options}.",
            "defaults": "default options",
        },
        ("scorers", "unknown"): {
            "absent": "No worker has the scorer {name} ({digest}), so runs of this suite wait for their scores. "
            "Install it on a worker; it looks again every 15 seconds.",
            "other": "Workers have {others:list} under this name. Try it on a run, and adopt it.",
        },
        ("score", "unknown"): {"no_score": "No run of this suite has a score yet."},
        ("score", "asserts"): {
            "newest": "The newest score is {score}, of run {run} on {endpoint}, {profile}.",
            "first_run": "First run of this model on this server.",
            "earlier": "Of the same bucket, the earlier run scored {score}.",
            "several_earlier": "Of the same bucket, the {n} earlier runs scored {score}.",
            "course": "{steady}; {stands}.",
        },
        ("baseline", "denies"): {
            "expired": "The baseline of {profile} expired with the rotation of {at:%m-%d}.",
            "ships_nothing": "Nothing can ship against it until it has been run again.",
        },
        ("case", "asserts"): {"worth": "One of {n:,} cases is {points:points} points."},
        ("noise", "unknown"): {
            "one_seed": "The repeats of its sampled runs share one seed, so its noise is unknown.",
            "no_two_repeats": "Its noise is unknown: no run has two independent repeats.",
            "later": "Its noise is known once a run has two repeats.",
        },
        ("resolution", "asserts"): {
            "detects": "With {repeats} repeats a side, {what}.",
            "elsewhere": "On new cases like these, {points:points}.",
        },
        ("chart", "asserts"): {
            "apart": "Buckets are never pooled or joined.",
            "not_joined": "Nothing is joined across a rotation: before and after are different measurements.",
            "floor": "{runs} the noise floor of the {whose}.",
            "rotated": "A fingerprint rotated {times}.",
            "one_bucket": "All runs are of one bucket, so they may be compared.",
            "bar": "A bar is a run's range.",
            "ranges": "Score range of each run, in {n} buckets.",
        },
    },
)
NOUNS = {
    "prompt": "prompts",
    "completion": "completions",
    "target": "targets",
    "id": "ids",
    "tags": "tags",
    "group": "groups",
}


def describe_text(read: SuiteText, suite: SuiteDocument) -> tuple[str, ...]:
    """Say what was understood of a suite's text: its format, its columns, and which of them are not read."""
    n_scorers = sum(case.scorer is not None for case in suite.cases)
    lines = [SAID.write("read", n=len(suite.cases), format=read.format.upper())]
    if n_scorers:
        lines.append(SAID.write("scorers", n=n_scorers))
    if not read.header:
        return tuple(lines)
    chosen = [f"{NOUNS[name]} from {column}" for name, column in read.columns.items()]
    lines.append(SAID.write("takes", columns=chosen))
    if unread := [column for column in read.header if column and column not in read.columns.values()]:
        lines.append(SAID.write("unread", columns=unread))
    if "id" not in read.columns:
        lines.append(SAID.write("no_ids"))
    return tuple(lines)


def describe_suite(report: SuiteReport, standing: SuiteStanding | None = None) -> Headline:
    """Compare the newest score with the baseline of its line and profile, within a bucket."""
    standing = standing or SuiteStanding()
    scored = [(point, bucket) for bucket in report.buckets for point in bucket.runs if point.mean is not None]
    resolved = _resolved(report, standing)
    if not scored:
        return Headline(SAID.write("no_score"), resolved)
    newest = max(scored, key=lambda pair: (pair[0].date, pair[0].run_id))
    point, _ = newest
    key = (point.line, point.profile)
    current = next((row for row in standing.baselines if row.is_current and (row.line, row.profile) == key), None)
    if current is not None and current.expired is not None:
        claim = SAID.write("expired", profile=current.profile, at=current.expired.at)
        return Headline(claim, f"{SAID.write('ships_nothing')} {resolved}")
    band = next((band for band in bands(report.buckets, standing) if band.baseline is current), None)
    if band is None:
        return _without_baseline(newest, scored, resolved)
    steady, stands = _steady(band, scored, standing), _stands(newest, band)
    return Headline(SAID.write("course", steady=steady, stands=stands), resolved)


def _without_baseline(newest: Scored, scored: Sequence[Scored], resolved: str) -> Headline:
    point, bucket = newest
    where = {"run": point.run_id, "endpoint": point.endpoint, "profile": point.profile_name}
    claim = SAID.write("newest", where, score=span(point.range))
    before = [other.range for other, where in scored if where is bucket and other is not point and other.range]
    if not before:
        return Headline(claim, f"{SAID.write('first_run')} {resolved}")
    earlier = (min(low for low, _ in before), max(high for _, high in before))
    code = "earlier" if len(before) == 1 else "several_earlier"
    return Headline(claim, f"{SAID.write(code, n=len(before), score=span(earlier))} {resolved}")


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
    worth = SAID.claim("worth", n=report.suite.n_cases, points=report.suite.points_per_case)
    if not resolutions and any(point.draws.is_one for bucket in report.buckets for point in bucket.runs):
        return speak([SAID.claim("one_seed"), worth])
    if not resolutions:
        has_repeats = any(len(point.points) > 1 for bucket in report.buckets for point in bucket.runs)
        return speak([SAID.claim("no_two_repeats" if has_repeats else "later"), worth])
    (batch_class, first), *others = resolutions.items()
    also = "".join(f", {_bucket(name)} {points(each.resolution_points)}" for name, each in others[:2])
    resolved = (
        f"{_bucket(batch_class)} detects changes of {points(first.resolution_points)} points on these cases{also}"
    )
    elsewhere = max(each.resolution_elsewhere_points for each in resolutions.values())
    detects = SAID.claim("detects", repeats=REPEATS, what=resolved)
    return speak([detects, SAID.claim("elsewhere", points=elsewhere), worth])


def _bucket(batch_class: str) -> str:
    """Return a bucket of a batch class with its article: "a mixed bucket", "an invariant bucket"."""
    known = {"alone": "a bucket at batch size 1", "observed": "a bucket of unknown batching"}
    return known.get(batch_class, f"{'an' if batch_class[:1] in 'aeiou' else 'a'} {batch_class} bucket")


def describe_scorer(suite: SuiteVersion) -> Headline:
    """Say which kinds of scorer judge how many cases."""
    own = Counter(spec["kind"] for spec in suite.scorer["cases"].values())
    if suite.scorer["default"] is not None:
        own[suite.scorer["default"]["kind"]] += suite.n_cases - own.total()
    kinds = [f"{kind} {n:,}" for kind, n in own.most_common() if n]
    return Headline(" · ".join(kinds), "cases each" if len(kinds) > 1 else "cases")


@dataclass(frozen=True, slots=True)
class ScorerStanding:
    """What scores a suite. absent: of its scorers that no worker has, what that means."""

    claim: str
    rest: str
    absent: tuple[str, ...]


def describe_standing(suite: SuiteVersion, there: Sequence[OwnScorer]) -> ScorerStanding:
    """Say what scores a suite's newest version. there: the teams' own scorers that workers have."""
    plan, known = suite.scorer_plan, {each.digest for each in there}
    n_own = len(plan["cases"])
    options = describe_options(plan["default"]).rstrip(".")  # a judge's template ends with a stop of its own
    lines = [SAID.write("options", options=options)] if plan["default"] else []
    if n_own:
        lines.append(SAID.write("cases", n=n_own))
    lacking = {spec["digest"]: spec["name"] for spec in external_specs(plan) if spec["digest"] not in known}
    absent = (_absent(name, digest, there) for digest, name in sorted(lacking.items()))
    claim = SAID.write("default", scorer=name_scorer(plan), n=suite.n_cases - n_own) if plan["default"] else ""
    return ScorerStanding(claim, " ".join(lines), tuple(absent))


def _absent(name: str, digest: str, there: Sequence[OwnScorer]) -> str:
    text = SAID.write("absent", name=name, digest=digest[:DIGEST_CHARS])
    others = [each.digest[:DIGEST_CHARS] for each in there if each.name == name and each.digest]
    return f"{text} {SAID.write('other', others=others)}" if others else text


def describe_options(spec: Mapping[str, Any] | None) -> str:
    """List the options of a scorer that are not the default ones: "pass_at 0.6, seconds 30"."""
    if spec is None:
        return ""
    defaults = {name: option.default for name, option in KINDS[spec["kind"]].options.items()}
    chosen = _list_changed({name: spec[name] for name in spec if name not in ("kind", "name", "digest")}, defaults)
    return ", ".join(chosen) or SAID.write("defaults")


def _list_changed(options: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[str]:
    lines = []
    for name, value in options.items():
        default = defaults.get(name, "answer")  # of `reads`, which all kinds of ours have
        if isinstance(value, Mapping) and isinstance(default, Mapping) and value != default:
            lines.append(f"{name} {', '.join(_list_changed(value, default))}")
        elif value != default:
            lines.append(f"{name} {value if isinstance(value, str) else canonical_json(value).decode()}")
    return lines


def describe_history(report: SuiteReport, standing: SuiteStanding | None = None) -> Headline:
    """Caption the suite's chart: how many runs left their baseline, or whether they are one measurement."""
    turns = rotations(report.buckets, standing)
    zones = bands(report.buckets, standing) if standing else ()
    n_buckets = len(report.buckets)
    rest = SAID.write("not_joined" if turns else "apart")
    outside, n_judged = _outside(report, zones)
    if n_judged:
        runs = sorted({band.baseline.run_id for band in zones if not band.is_expired})
        whose = f"baseline, run {runs[0]}" if len(runs) == 1 else "baseline that each is compared with"
        return Headline(SAID.write("floor", runs=_which(outside, n_judged), whose=whose), rest)
    if turns:
        return Headline(SAID.write("rotated", times=_times(len(turns))), rest)
    if n_buckets == 1:
        return Headline(SAID.write("one_bucket"), SAID.write("bar"))
    return Headline(SAID.write("ranges", n=n_buckets), rest)


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

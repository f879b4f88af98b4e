"""What a page found, in words: a claim for the first line and the rest of the sentence after it."""

from collections import Counter
from dataclasses import dataclass

from frontend.history import rotations
from frontend.templatetags.numbers import points, span
from runs.selectors.response import TokenCell
from runs.selectors.run import RunReport
from runs.selectors.suite import SuiteReport


@dataclass(frozen=True, slots=True)
class Finding:
    claim: str
    rest: str = ""


def of_run(report: RunReport) -> Finding:
    row = report.row
    worth = f"One of {report.n_cases} cases is worth {points(report.points_per_case)} points."
    if row.status == "queued":
        waiting = report.workers_waiting or "The first free worker of its pool takes it."
        return Finding("Waiting for a worker.", f"{waiting} {worth}")
    if row.status == "running":
        return Finding("So far; not a verdict.", worth)
    missing = sum(line.n_missing for line in report.repeats)
    if row.status in ("incomplete", "failed", "cancelled"):
        kept = f"{row.n_done - report.n_errors:,} of {row.n_total:,} responses were kept."
        why = {
            "incomplete": f"{missing:,} response{' is' if missing == 1 else 's are'} missing, so no score is given.",
            "failed": "The run failed, so no score is given.",
            "cancelled": "The run was cancelled, so no score is given.",
        }
        return Finding(why[row.status], f"{kept} {worth}")
    if row.range is None:
        n = len(report.buckets)
        return Finding(
            f"Served by {n} buckets, so no score is given for the whole.", "Each bucket is scored by itself."
        )
    n_repeats = len(report.repeats)
    n_unstable = report.noise.n_unstable
    if n_repeats == 1:
        return Finding(f"{points(row.range[0])} points in one repeat.", f"One repeat has no spread yet. {worth}")
    if row.range[0] == row.range[1]:
        claim = f"Every one of {n_repeats} repeats scored {points(row.range[0])} points."
    else:
        claim = f"{span(row.range)} points over {n_repeats} repeats."
    if not n_unstable:
        return Finding(claim, f"No case changed its score between repeats. {worth}")
    cases = "1 case changed its" if n_unstable == 1 else f"{n_unstable} cases changed their"
    return Finding(claim, f"{cases} score between repeats. {worth}")


def of_processes(report: RunReport) -> tuple[str, ...]:
    """Which repeats shared an engine process, a sentence for each process that decoded any."""
    return tuple(
        f"{_listed(line.repeats)} {'shared' if len(line.repeats) > 1 else 'came from'} engine process {line.id}."
        for line in report.processes
        if line.repeats
    )


def _listed(repeats: tuple[int, ...]) -> str:
    if len(repeats) == 1:
        return f"Repeat {repeats[0]}"
    return f"Repeats {', '.join(map(str, repeats[:-1]))} and {repeats[-1]}"


def of_suite(report: SuiteReport) -> Finding:
    """The newest run with a score, and what its own bucket scored before; never another bucket's."""
    worth = f"One of {report.n_cases} cases is worth {points(report.points_per_case)} points."
    scored = [
        (point, point.range, bucket) for bucket in report.buckets for point in bucket.points if point.range is not None
    ]
    if not scored:
        return Finding("No run of this suite has a score yet.", worth)
    newest, reach, bucket = max(scored, key=lambda found: (found[0].at, found[0].run_id))
    claim = f"The newest score is {span(reach)}, of run {newest.run_id} on {newest.endpoint}, {newest.profile}."
    before = [other for point, other, where in scored if where is bucket and point is not newest]
    if not before:
        return Finding(claim, f"It is the first of its bucket, so no earlier score may be compared with it. {worth}")
    earlier = (min(low for low, _ in before), max(high for _, high in before))
    runs = "the earlier run" if len(before) == 1 else f"the {len(before)} earlier runs"
    return Finding(claim, f"Of the same bucket, {runs} scored {span(earlier)}. {worth}")


def of_scorer(report: SuiteReport) -> Finding:
    """Which kinds of scorer judge how many cases."""
    own = Counter(spec["kind"] for spec in report.scorer["cases"].values())
    if report.scorer["default"] is not None:
        own[report.scorer["default"]["kind"]] += report.n_cases - own.total()
    kinds = [f"{kind} {n:,}" for kind, n in own.most_common() if n]
    return Finding(" · ".join(kinds), "cases each" if len(kinds) > 1 else "cases")


def of_history(report: SuiteReport) -> Finding:
    """The caption of the suite's chart."""
    n_buckets, turns = len(report.buckets), rotations(report.buckets)
    if turns:
        last = turns[-1]
        times = "once" if len(turns) == 1 else f"{len(turns)} times, last"
        claim = f"A fingerprint rotated {times} on {last.endpoint}, {last.profile}, before run {last.run_id}."
        return Finding(claim, "Before and after are different measurements, so nothing is joined across.")
    if n_buckets == 1:
        return Finding("All runs are of one bucket, so they may be compared.", "Bars are ranges, marks are repeats.")
    return Finding(f"Score range of each run, in {n_buckets} buckets.", "Buckets are never pooled or joined.")


def of_margins(narrowest: TokenCell) -> Finding:
    margin = narrowest.margin
    if margin == 0:
        return Finding(
            f"At {narrowest.position} the two best tokens were exactly tied.", "Margin by position, log scale."
        )
    claim = f"The closest choice was at {narrowest.position}, by {margin:.3f} nats."
    return Finding(claim, "Margin between the two best tokens by position, log scale.")

"""The rows of the board: releases with ruler and action, and what needs attention with a link."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.urls import reverse

from evalboard.contract.baseline import Baseline
from evalboard.contract.release import ReleaseRow
from evalboard.contract.run import RunRow, experiment_of
from evalboard.wording.numbers import points
from evalboard.wording.run import describe_pause
from frontend.board.words import NEEDS, WAITS, describe_release
from frontend.compare.pair_address import comparison_url
from frontend.endpoints.words import describe_desertion
from frontend.release.steps import RERUN, Step, rerun_step, settling_step
from frontend.shell.charts import changes
from frontend.shell.findings import Headline
from runs import acts
from runs.access import SIGN, may
from runs.board import Board, PausedEndpoint
from runs.models import ReleaseRecord, RunRecord
from runs.release import SETTLING_STEPS, SettlePlans, WaitingRelease, refuse_settling
from runs.tour import LABELS as SAMPLE
from runs.work import PoolRow

SILENT_NAMED = 3  # workers of a pool; more are one line
REASONS_OF_RUN = ("incomplete", "two_computations", "unsteady", "broken_pin")


@dataclass(frozen=True, slots=True)
class ReleaseLine:
    """A waiting release. ruler: None if it is not comparable."""

    of: WaitingRelease
    ruler: changes.RowRuler | None
    clause: Headline
    act: Step


@dataclass(frozen=True, slots=True)
class Need:
    """An item that needs attention. kind: in a word or two; since: None without a single date."""

    glyph: str
    kind: str
    what: str
    link: str
    url: str
    since: datetime | None = None
    command: str = ""


@dataclass(frozen=True, slots=True)
class WorkLine:
    """A running run. waits_for: why it has no response yet, "" if it has."""

    run: RunRow
    waits_for: str

    @property
    def experiment(self) -> str | None:
        return experiment_of(self.run.labels)

    @property
    def share(self) -> float:
        return self.run.progress.n_done / max(self.run.progress.n_total, 1)

    @property
    def n_left(self) -> int:
        return self.run.progress.n_total - self.run.progress.n_done


def split_sample(waiting: Sequence[WaitingRelease]) -> tuple[Sequence[WaitingRelease], Sequence[WaitingRelease]]:
    """Return what is listed and what is folded: the tour's releases once there are others."""
    own = [each for each in waiting if not each.row.labels.items() >= SAMPLE.items()]
    return (own, [each for each in waiting if each not in own]) if own else (waiting, ())


def release_lines(waiting: Sequence[WaitingRelease], viewer: Any) -> tuple[ReleaseLine, ...]:
    """Return the releases that wait, each on a ruler in units of what it accepts."""
    sides = {run.pk: run for run in acts.with_surroundings(run for each in waiting for run in each.runs.values())}
    return tuple(
        ReleaseLine(each, _ruler(each.row), describe_release(each), _act(each, sides, viewer)) for each in waiting
    )


def _ruler(row: ReleaseRow) -> changes.RowRuler | None:
    if row.verdict in ("not_comparable", None):
        return None
    return changes.accepted_ruler(row.difference, row.interval, row.tolerance_points)


def _act(each: WaitingRelease, sides: Mapping[int, RunRecord], viewer: Any) -> Step:
    """Return the one useful action that this person may take; by default to open the release.

    sides: the runs of its gates by id, for the rules of their acts.
    """
    row, line = each.row, each.step
    if row.verdict == "no_ship" and each.n_broken:
        runs = int(row.baseline.run), int(row.candidate.run)
        filters = {"outcome": "broken"} | ({} if each.look is None else {"look": str(each.look)})
        return Step(f"See the {each.n_broken:,}", f"{comparison_url(*runs, filters=filters, terms=row.terms)}#cases")
    step = None
    if line is not None and line.code in SETTLING_STEPS and each.plan is not None:
        refused = refuse_settling(SettlePlans(each.plan))
        may_settle = acts.offer("settle", ReleaseRecord, lambda: refused["settle"], viewer)
        step = settling_step(row.id, each.plan) if may_settle else None
    elif line is not None and line.code in RERUN and each.runs:
        step = rerun_step(row.id, line, {side: (run.pk, run.profile.slug) for side, run in each.runs.items()})
    if step is not None and all(acts.can(step.act, sides[run], viewer) for run in step.runs):
        return step
    if row.verdict == "ship" and may(viewer, SIGN):
        return Step("Sign off…", f"{row.url}#sign")
    return Step("Open", row.url)


def needs(board: Board) -> tuple[Need, ...]:
    """Return what needs attention, what blocks releases most first."""
    return tuple(_needs(board))


def _needs(board: Board) -> Iterator[Need]:
    yield from map(_paused, board.paused)
    yield from map(_expired, board.expired_baselines)
    for pool in board.deserted_pools:
        yield _deserted(pool)
    for run in board.attention:
        yield _run(run, board.failures.get(int(run.id), ""))
    for probe in board.probes:
        finding = probe.finding.sentence if probe.finding else NEEDS.write("probe_failed")
        facts = {"kind": probe.kind, "endpoint": probe.endpoint, "profile": probe.profile_name}
        what = NEEDS.write("probe", facts, finding=finding)
        yield Need("warning", "Probe", what, "Open", reverse("probe", args=[probe.id]), probe.finished_at)
    for schedule in board.failing_schedules:
        problem = schedule.starts[0].problem if schedule.starts else ""
        what = f"{NEEDS.write('schedule', schedule=schedule.slug, n=schedule.n_failures)} {problem or ''}".strip()
        yield Need("warning", "Schedule stalled", what, "Open", schedule.url)
    workers = reverse("workers")
    for name in dict.fromkeys(worker.pool for worker in board.silent_workers):
        silent = [worker for worker in board.silent_workers if worker.pool == name]
        if len(silent) > SILENT_NAMED:
            what = NEEDS.write("several_silent", n=len(silent), pool=name)
            last = max(worker.seen_at for worker in silent)
            yield Need("silent", "Workers silent", what, "Workers", workers, last)
            continue
        for worker in silent:
            what = NEEDS.write("silent", worker=worker.name, pool=name)
            yield Need("silent", "Worker silent", what, "Worker", f"{workers}#worker-{worker.id}", worker.seen_at)
    for worker in board.resting_workers:
        what = NEEDS.write("rests", worker=worker.name, pool=worker.pool, until=worker.rests_until, note=worker.note)
        yield Need("resting", "Worker paused", what, "Worker", f"{workers}#worker-{worker.id}")


def _paused(paused: PausedEndpoint) -> Need:
    pause = paused.pause
    why = describe_pause(n_failures=pause.n_failures, reason=pause.reason, until=pause.until)
    code = "paused_waits" if paused.n_runs else "paused"
    what = NEEDS.write(code, endpoint=paused.endpoint, n=paused.n_runs, why=why)
    return Need("resting", "Endpoint paused", what, "See why", reverse("endpoint", args=[paused.endpoint]))


def _expired(row: Baseline) -> Need:
    expired = row.expired
    turned = f", as {expired.before.title} became {expired.after.title}" if expired else ""
    facts = {"suite": row.suite, "line": row.line, "profile": row.profile, "run": row.run.id}
    what = NEEDS.write("expired", facts, score=_score(row.run), turned=turned)
    at = expired.at if expired else None
    return Need("rotation", "Baseline expired", what, "Open", f"{reverse('suite', args=[row.suite])}#baselines", at)


def _score(run: RunRow) -> str:
    known = [value for value in run.drawn_points if value is not None]
    return points(sum(known) / len(known)) if known and run.n_buckets == 1 else "without a score"


def _deserted(pool: PoolRow) -> Need:
    words = describe_desertion(pool)
    return Need(
        "warning", "No worker", f"{words.claim} {words.rest}", "Workers", reverse("workers"),
        command=f"evalboard worker --pool {pool.name}",
    )  # fmt: skip


def _run(run: RunRow, failure: str) -> Need:
    where = {"run": run.id, "suite": run.suite.slug, "endpoint": run.endpoint, "profile": run.profile_name}
    if run.status == "failed":
        what = NEEDS.write("run", where, what=failure or NEEDS.write("run_failed"))
        return Need("error", "Run failed", what, "Open", run.url, run.ran_at)
    codes = [run.status, *(warning.code for warning in run.warnings)]
    codes += ["broken_pin"] if run.pins.held is False else []
    n_total = run.progress.n_total
    facts = {"n_missing": n_total - run.progress.n_done, "n_total": n_total}
    reasons = [NEEDS.write(code, facts) for code in dict.fromkeys(codes) if code in REASONS_OF_RUN]
    what = NEEDS.write("run", where, what=NEEDS.write("run_needs", reasons=" and ".join(reasons)))
    return Need("warning", "Run", what, "Open", run.url, run.ran_at)


def work_lines(board: Board) -> tuple[WorkLine, ...]:
    """Return the running runs; those without a response say what they wait for."""
    deserted = {run_id: pool.name for pool in board.deserted_pools for run_id in pool.waiting_run_ids}
    return tuple(WorkLine(run, _waits_for(run, deserted.get(int(run.id)))) for run in board.in_progress)


def _waits_for(run: RunRow, deserted_pool: str | None) -> str:
    if deserted_pool is not None:
        return WAITS.write("no_worker", pool=deserted_pool)
    if run.waiting_for is not None:
        return WAITS.write("waiting_for_endpoint")
    if run.progress.n_done:
        return ""
    if run.status != "running":
        return WAITS.write("queued")
    return "" if run.is_reported else WAITS.write("engine_starts")

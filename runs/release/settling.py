"""Add repeats to both sides of an inconclusive release, within a budget that a person confirms.

They cover all cases, up to the next useful checkpoint, or only the noisiest cases.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any, cast

from django.db import transaction
from django.db.models import Prefetch, prefetch_related_objects

from evalboard.contract.release import ALL_CASES, NOISIEST_CASES, RepeatsToAdd, SettlePlan
from evalboard.core.errors import Conflict
from evalboard.core.trace import pack_selection
from evalboard.wording.numbers import counted
from runs import acts
from runs.access import RUN
from runs.catalogue import CurrentStack, newer_stacks
from runs.models import GateRecord, ReleaseRecord, RepeatRecord, RunRecord, Settling, Verdict
from runs.release import verdict_inputs, verdicts
from runs.release.targeted import choose_cases
from runs.run import MAX_REPEATS, put_to_work, store_in_turn
from runs.store import require_row
from runs.work import queue, refuse_if_nobody_can

USELESS = "Repeats cannot decide this release in its current state; reload its page."


@dataclass(frozen=True, slots=True)
class SettlePlans:
    """The plans that would decide a release: by repeats of all cases or the noisiest; else None, and why."""

    whole: SettlePlan | None = None
    targeted: SettlePlan | None = None
    useless: str = USELESS

    def of(self, cases: str) -> SettlePlan | None:
        return self.targeted if cases == NOISIEST_CASES else self.whole


NO_PLANS = SettlePlans()
SETTLING_STEPS = ("settle", "add_repeats")  # that the plan of all cases carries out
SETTLE_ACTS = {ALL_CASES: "settle", NOISIEST_CASES: "settle_targeted"}  # the act of each choice of cases


def settle_plans(*, release_id: int, gates: Sequence[GateRecord] | None = None) -> SettlePlans:
    """Return the cost of deciding a release, for the gates that leave it open.

    `minutes`: at the speed of these runs, None if unknown. `refused` says why it cannot be done now. There is no plan
    while a run is in progress: its end decides again. `gates`: of the release, if just read. Raises NotFound.
    """
    release = require_row(
        ReleaseRecord.objects.select_related("verdict", "policy").filter(pk=release_id),
        f"There is no release {release_id}.",
    )
    return _plans(release, gates)


def settle_release(*, release_id: int, look: int, n_responses: int, cases: str = ALL_CASES, user: Any) -> Settling:
    """Add the planned repeats, in turn, so that a drift in load meets both sides alike.

    `look` and `n_responses` are the plan's numbers as the person saw them, `cases` says which of the plans. Raises
    NotFound, or Conflict where the plan is another one by now, or cannot be carried out; then nothing is added.
    """
    verdicts.decide_release(release_id=release_id)
    with transaction.atomic():
        locked = ReleaseRecord.objects.select_for_update(no_key=True, of=("self",)).select_related("verdict", "policy")
        release = locked.get(pk=release_id)
        gates = verdict_inputs.read_release_gates(release)
        ids = {run for gate in gates for run in (gate.baseline_run_id, gate.candidate_run_id)}
        list(RunRecord.objects.select_for_update(no_key=True).filter(pk__in=ids).order_by("pk").values_list("pk"))
        plans = _plans(release)
        acts.require(SETTLE_ACTS[cases], release, refuse_settling(plans))
        plan = cast("SettlePlan", plans.of(cases))  # without one `require` has refused
        if (plan.look, plan.n_responses) != (look, n_responses):
            text = f"it is {plan.n_responses:,} responses up to {plan.look} repeats by now"
            raise Conflict(f"The plan has changed: {text}. Confirm those numbers.")
        stored = [
            {"run": each.run_id, "n_before": each.n_before, "n_more": each.n_more, "n_chosen": each.n_chosen}
            for each in plan.runs
        ]
        settling = Settling.objects.create(
            release=release, look=look, plan=stored, estimated_minutes=plan.minutes, asked_by=user
        )
        _add(plan.runs, f"to settle release {release_id}", _choose(gates) if cases == NOISIEST_CASES else {})
    return settling


@acts.rule("settle", ReleaseRecord, RUN)
def _settle(release: ReleaseRecord) -> acts.No | None:
    return _refuse(_plans(release), ALL_CASES)


@acts.rule("settle_targeted", ReleaseRecord, RUN)
def _settle_targeted(release: ReleaseRecord) -> acts.No | None:
    return _refuse(_plans(release), NOISIEST_CASES)


def refuse_settling(plans: SettlePlans) -> dict[str, acts.No | None]:
    """Return by act why each of these plans cannot be carried out now, None if it can."""
    return {act: _refuse(plans, cases) for cases, act in SETTLE_ACTS.items()}


def _refuse(plans: SettlePlans, cases: str) -> acts.No | None:
    plan = plans.of(cases)
    if plan is None:
        return acts.No(plans.useless, is_shown=False)
    return acts.No(plan.refused) if plan.refused else None


@dataclass(frozen=True, slots=True)
class _Lacking:
    """The repeats that a run needs for its checkpoint: n_more, of n_cases if not all."""

    look: int
    n_more: int
    n_cases: int | None = None


def _plans(release: ReleaseRecord, gates: Sequence[GateRecord] | None = None) -> SettlePlans:
    if release.verdict is None or release.verdict.word != Verdict.Word.INCONCLUSIVE:
        return NO_PLANS
    gates = verdict_inputs.read_release_gates(release) if gates is None else gates
    return make_plans([(gates, release.verdict.document["gates"])])[0]


def make_plans(
    releases: Sequence[tuple[Sequence[GateRecord], Sequence[Mapping[str, Any]]]],
) -> tuple[SettlePlans, ...]:
    """Return the plans of inconclusive releases, in four statements for all.

    releases: the gates of each, with what its document says of them. Each run of the gates has its repeats and its
    surroundings then.
    """
    runs = [run for gates, _ in releases for run in _runs_of(gates)]
    prefetch_related_objects(runs, Prefetch("repeats", RepeatRecord.objects.order_by("index")))
    loaded = {run.pk: run for run in acts.with_surroundings(runs)}
    for gate in (gate for gates, _ in releases for gate in gates):
        gate.baseline_run, gate.candidate_run = loaded[gate.baseline_run_id], loaded[gate.candidate_run_id]
    newer = newer_stacks(runs)
    return tuple(_make_plans(gates, known, newer) for gates, known in releases)


def _runs_of(gates: Sequence[GateRecord]) -> list[RunRecord]:
    return list({run.pk: run for gate in gates for run in (gate.baseline_run, gate.candidate_run)}.values())


def _make_plans(
    gates: Sequence[GateRecord], documents: Sequence[Mapping[str, Any]], newer: Mapping[int, CurrentStack]
) -> SettlePlans:
    runs = {run.pk: run for run in _runs_of(gates)}
    at_work = min((pk for pk, run in runs.items() if not run.is_terminal), default=None)
    if at_work is not None:
        return SettlePlans(useless=f"Run {at_work} is {runs[at_work].status}; the verdict is taken when it has ended.")
    repeats = [repeat for run in runs.values() for repeat in run.repeats.all()]
    judged = [
        (gate, known)
        for gate, known in zip(gates, documents, strict=True)
        if gate.tier == GateRecord.Tier.CRITICAL and known["verdict"] == Verdict.Word.INCONCLUSIVE
    ]
    whole = [known for _, known in judged if known["repeats_needed"] is not None]
    targeted = [known.get("targeted_settling") for _, known in judged]
    return SettlePlans(
        whole=_plan(
            _count_lacking(judged, repeats),
            runs,
            repeats,
            chances=[known.get("settling_chance") for known in whole],
            newer=newer,
        ),
        # One suite that such repeats would leave open is left to those of all cases.
        targeted=_plan(
            _count_targeted_lacking(judged, repeats) if all(targeted) else {},
            runs,
            repeats,
            chances=[each["chance"] for each in targeted if each],
            newer=newer,
        ),
    )


def _plan(
    lacking: Mapping[int, _Lacking],
    runs: Mapping[int, RunRecord],
    repeats: Sequence[RepeatRecord],
    *,
    chances: Sequence[float | None],
    newer: Mapping[int, CurrentStack],
) -> SettlePlan | None:
    """Return a plan of the repeats that runs need, by run id. chances: of deciding each gate."""
    planned = tuple(
        RepeatsToAdd(
            run=str(run),
            n_more=each.n_more,
            n_chosen=each.n_cases,
            n_before=sum(repeat.run_id == run for repeat in repeats),
        )
        for run, each in sorted(lacking.items())
        if each.n_more
    )
    if not planned:
        return None
    known = [chance for chance in chances if chance is not None]
    return SettlePlan(
        look=max(each.look for each in lacking.values()),
        chosen=ALL_CASES if all(each.n_chosen is None for each in planned) else NOISIEST_CASES,
        chance=math.prod(known) if len(known) == len(chances) else None,
        n_responses=sum(each.n_more * _n_cases(each, runs[each.run_id]) for each in planned),
        runs=planned,
        minutes=_minutes(planned, runs, repeats),
        refused=_refusal([runs[each.run_id] for each in planned], planned, newer),
    )


def _n_cases(each: RepeatsToAdd, run: RunRecord) -> int:
    return run.suite_version.n_cases if each.n_chosen is None else each.n_chosen


def _count_lacking(
    judged: Sequence[tuple[GateRecord, Mapping[str, Any]]], repeats: Sequence[RepeatRecord]
) -> dict[int, _Lacking]:
    """Return by run the repeats of all cases needed for its gate's checkpoint. judged: open gates."""
    counts = Counter(
        each.run_id for each in repeats if each.cases is None and each.status not in RepeatRecord.WITHOUT_SCORE
    )
    lacking: dict[int, _Lacking] = {}
    for gate, known in judged:
        if known["repeats_needed"] is None:
            continue
        look = min(known["k_baseline"], known["k_candidate"]) + known["repeats_needed"]
        for run in (gate.baseline_run_id, gate.candidate_run_id):
            mine = _Lacking(look, max(look - counts[run], 0))
            lacking[run] = max(lacking.get(run, mine), mine, key=lambda each: (each.look, each.n_more))
    return lacking


def _count_targeted_lacking(
    judged: Sequence[tuple[GateRecord, Mapping[str, Any]]], repeats: Sequence[RepeatRecord]
) -> dict[int, _Lacking]:
    """Return the same for the noisiest cases, whose first checkpoint is the last one taken."""
    chosen = _choose([gate for gate, _ in judged])
    counts = Counter(
        each.run_id
        for each in repeats
        if each.cases is not None
        and each.status not in RepeatRecord.WITHOUT_SCORE
        and bytes(each.cases) == chosen.get(each.run_id)
    )
    lacking: dict[int, _Lacking] = {}
    for gate, known in judged:
        offer = known["targeted_settling"]
        for run in (gate.baseline_run_id, gate.candidate_run_id):
            lacking[run] = _Lacking(known["look"], max(offer["repeats"] - counts[run], 0), offer["n_cases"])
    return lacking


def _choose(gates: Sequence[GateRecord]) -> dict[int, bytes]:
    """Return by run the cases that targeted repeats of its gate are of, packed."""
    chosen: dict[int, bytes] = {}
    for gate in gates:
        cases = choose_cases(gate.baseline_run, gate.candidate_run)
        if cases is not None:
            chosen |= dict.fromkeys((gate.baseline_run_id, gate.candidate_run_id), pack_selection(cases))
    return chosen


def _refusal(
    runs: Sequence[RunRecord], planned: Sequence[RepeatsToAdd], newer: Mapping[int, CurrentStack]
) -> str | None:
    for run, each in zip(runs, planned, strict=True):
        if (no := acts.refusal("add_repeats", run)) is not None:
            return no.reason
        if run.status != RunRecord.Status.FINISHED:
            return f"Run {run.pk} is {run.status}; repeats are added to runs that have finished."
        if run.pk in newer:
            text = (
                f"Another stack serves {run.endpoint} under {run.profile.slug} {newer[run.pk].since()}, so run {run.pk}"
            )
            return f"{text} can have no more repeats. Run both sides again."
        if each.n_before + each.n_more > MAX_REPEATS:
            return f"Run {run.pk} would have more than {MAX_REPEATS} repeats."
    return None


def _minutes(
    planned: Sequence[RepeatsToAdd], runs: Mapping[int, RunRecord], repeats: Sequence[RepeatRecord]
) -> float | None:
    """Return the estimated time, with pools in parallel; None if a speed is unknown."""
    seconds: dict[str, float] = {}
    for each in planned:
        run = runs[each.run_id]
        ended = [repeat.finished_at for repeat in repeats if repeat.run_id == run.pk and repeat.finished_at is not None]
        one = _seconds_a_repeat(run, sorted(ended))
        if one is None:
            return None
        share = _n_cases(each, run) / run.suite_version.n_cases
        seconds[run.endpoint.pool] = seconds.get(run.endpoint.pool, 0.0) + one * each.n_more * share
    return max(seconds.values()) / 60


def _seconds_a_repeat(run: RunRecord, ended: Sequence[datetime]) -> float | None:
    """Return the median time between the ends of two repeats, which ignores single long pauses."""
    if run.started_at is None or not ended:
        return None
    steps = zip([run.started_at, *ended], ended, strict=False)
    seconds = median((later - before).total_seconds() for before, later in steps)
    return seconds if seconds > 0 else None


def _add(planned: Sequence[RepeatsToAdd], why: str, cases: Mapping[int, bytes]) -> None:
    """Store the repeats and put their runs to work. cases: by run, what targeted repeats decode."""
    ids = [each.run_id for each in planned]
    runs = {
        run.pk: run
        for run in RunRecord.objects.filter(pk__in=ids).select_related(
            "suite_version", "profile", "endpoint", "created_by"
        )
    }
    for run in runs.values():
        refuse_if_nobody_can(run.endpoint, run.profile)
    n_more: Counter[Any] = Counter()  # by whose run it is
    for each in planned:
        run = runs[each.run_id]
        n_more[run.created_by] += each.n_more * _n_cases(each, run)
    for person in sorted(filter(None, n_more), key=lambda person: person.pk):
        queue.refuse_beyond_limit(person, n_more[person])
    indexes = [(runs[each.run_id], range(each.n_before + 1, each.n_before + each.n_more + 1)) for each in planned]
    store_in_turn(indexes, cases)
    for each in planned:
        others = " and ".join(f"run {other}" for other in runs if other != each.run_id)
        in_turn = f", in turn with {others}" if others else ""
        noisiest = "" if each.n_chosen is None else f" of the {counted(each.n_chosen, 'case')} most likely to flip"
        put_to_work(runs[each.run_id], f"{counted(each.n_more, 'repeat')}{noisiest} added {why}{in_turn}.")

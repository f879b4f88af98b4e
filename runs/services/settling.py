"""Settling: further repeats on both sides of an inconclusive release, within what a person has confirmed."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from statistics import median
from typing import Any

from django.db import transaction

from evalboard.core.errors import Conflict, NotFound
from runs.models import Gate, Release, Repeat, Run, Settling, Verdict
from runs.services import verdict_inputs, verdicts
from runs.services.rotations import newer_stack
from runs.services.runs import (
    MAX_REPEATS,
    of_repeats,
    one_draw_refusal,
    put_to_work,
    refuse_if_nobody_can,
    store_repeats,
)

Planned = dict[str, int]  # {"run", "n_before", "n_more"}


def settle_plan(*, release_id: int) -> dict[str, Any] | None:
    """What settling would take, of the gates that keep the verdict open; None where repeats would not help.

    {"look", "n_responses", "runs": [{"run", "n_before", "n_more"}], "minutes", "refused"}: `minutes` from the speed
    that these runs had, None where it is not known; `refused` says why it cannot be done as things are, else "". None
    too while a run is at work: its end decides anew. Raises NotFound.
    """
    release = Release.objects.select_related("verdict", "policy").filter(pk=release_id).first()
    if release is None:
        raise NotFound(f"There is no release {release_id}.")
    return _plan(release)


def settle_release(*, release_id: int, look: int, n_responses: int, user: Any) -> Settling:
    """Add the planned repeats, one of each run in turn, so that a drift in load meets both sides alike.

    `look` and `n_responses` are the plan's numbers as the person saw them. Raises NotFound, or Conflict where the
    plan is another one by now, or cannot be carried out; then nothing is added.
    """
    verdicts.decide_release(release_id=release_id)
    with transaction.atomic():
        locked = Release.objects.select_for_update(no_key=True, of=("self",)).select_related("verdict", "policy")
        release = locked.get(pk=release_id)
        sides = Gate.objects.filter(release=release).values_list("baseline_run", "candidate_run")
        ids = {run for pair in sides for run in pair}
        list(Run.objects.select_for_update(no_key=True).filter(pk__in=ids).order_by("pk").values_list("pk"))
        plan = _plan(release)
        if plan is None:
            raise Conflict("Repeats would not settle this release as it stands now; look at its page again.")
        if plan["refused"]:
            raise Conflict(plan["refused"])
        if (plan["look"], plan["n_responses"]) != (look, n_responses):
            text = f"it is {plan['n_responses']:,} responses up to {plan['look']} repeats by now"
            raise Conflict(f"The plan has changed: {text}. Confirm those numbers.")
        settling = Settling.objects.create(
            release=release, look=look, plan=plan["runs"], estimated_minutes=plan["minutes"], asked_by=user
        )
        _add(plan["runs"], f"to settle release {release_id}")
    return settling


def _plan(release: Release) -> dict[str, Any] | None:
    if release.verdict is None or release.verdict.word != Verdict.Word.INCONCLUSIVE:
        return None
    gates = verdict_inputs.gates_of(release)
    runs = {run.pk: run for gate in gates for run in (gate.baseline_run, gate.candidate_run)}
    if not all(run.is_terminal for run in runs.values()):
        return None
    kept = list(Repeat.objects.filter(run__in=runs).order_by("index"))
    wanted = _wanted(gates, release.verdict.document, kept)
    looks = [look for look, _ in wanted.values()]
    planned = [_planned(run_id, n_more, kept) for run_id, (_, n_more) in sorted(wanted.items()) if n_more]
    if not planned:
        return None
    concerned = [runs[each["run"]] for each in planned]
    return {
        "look": max(looks),
        "n_responses": sum(each["n_more"] * runs[each["run"]].suite_version.n_cases for each in planned),
        "runs": planned,
        "minutes": _minutes(planned, runs, kept),
        "refused": _refusal(concerned, planned),
    }


def _wanted(gates: Sequence[Gate], document: Mapping[str, Any], kept: Sequence[Repeat]) -> dict[int, tuple[int, int]]:
    """Run id → the look that its gate needs, and how many repeats it lacks; of open critical gates only."""
    counted = {run.pk: 0 for gate in gates for run in (gate.baseline_run, gate.candidate_run)}
    for repeat in kept:
        counted[repeat.run_id] += repeat.status not in verdict_inputs.LEFT_OUT
    wanted: dict[int, tuple[int, int]] = {}
    for gate, said in zip(gates, document["gates"], strict=True):
        needed = said["repeats_needed"]
        if gate.tier != Gate.Tier.CRITICAL or said["verdict"] != Verdict.Word.INCONCLUSIVE or needed is None:
            continue
        look = min(said["k_baseline"], said["k_candidate"]) + needed
        for run_id in (gate.baseline_run_id, gate.candidate_run_id):
            wanted[run_id] = max(wanted.get(run_id, (0, 0)), (look, max(look - counted[run_id], 0)))
    return wanted


def _planned(run_id: int, n_more: int, kept: Sequence[Repeat]) -> Planned:
    return {"run": run_id, "n_before": sum(repeat.run_id == run_id for repeat in kept), "n_more": n_more}


def _refusal(runs: Sequence[Run], planned: Sequence[Planned]) -> str:
    for run, each in zip(runs, planned, strict=True):
        if run.source_id is not None:
            return f"Run {run.pk} was read from a log, and nothing here decodes it; it can have no more repeats."
        if run.is_one_draw:
            return one_draw_refusal(run)
        if run.status != Run.Status.FINISHED:
            return f"Run {run.pk} is {run.status}; repeats are added to runs that have finished."
        if (newer := newer_stack(run)) is not None:
            text = f"Another stack serves {run.endpoint} under {run.profile.slug} {newer.since()}, so run {run.pk}"
            return f"{text} can have no more repeats. Run both sides again."
        if each["n_before"] + each["n_more"] > MAX_REPEATS:
            return f"Run {run.pk} would have more than {MAX_REPEATS} repeats."
    return ""


def _minutes(planned: Sequence[Planned], runs: Mapping[int, Run], kept: Sequence[Repeat]) -> float | None:
    """Pools work side by side, and the runs of one pool in turn; None where the speed of one is not known."""
    seconds: dict[str, float] = {}
    for each in planned:
        run = runs[each["run"]]
        ended = [repeat.finished_at for repeat in kept if repeat.run_id == run.pk and repeat.finished_at is not None]
        one = _seconds_a_repeat(run, sorted(ended))
        if one is None:
            return None
        seconds[run.endpoint.pool] = seconds.get(run.endpoint.pool, 0.0) + one * each["n_more"]
    return max(seconds.values()) / 60


def _seconds_a_repeat(run: Run, ended: Sequence[datetime]) -> float | None:
    """The median time from the end of one repeat to that of the next; one long pause between two says nothing."""
    if run.started_at is None or not ended:
        return None
    steps = zip([run.started_at, *ended], ended, strict=False)
    found = median((later - before).total_seconds() for before, later in steps)
    return found if found > 0 else None


def _add(planned: Sequence[Planned], why: str) -> None:
    runs = {
        run.pk: run
        for run in Run.objects.filter(pk__in=[each["run"] for each in planned]).select_related(
            "suite_version", "profile", "endpoint"
        )
    }
    for run in runs.values():
        refuse_if_nobody_can(run.endpoint, run.profile)
    for turn in range(max(each["n_more"] for each in planned)):
        for each in planned:
            if turn < each["n_more"]:
                store_repeats(runs[each["run"]], [each["n_before"] + turn + 1])
    for each in planned:
        others = " and ".join(f"run {other}" for other in runs if other != each["run"])
        in_turn = f", in turn with {others}" if others else ""
        put_to_work(runs[each["run"]], f"{of_repeats(each['n_more'])} added {why}{in_turn}.")

"""Releases: asked for, and decided at once; their sides run again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from evalboard.contract.treatments import BY_INPUT, PAIRINGS
from evalboard.core.errors import Conflict, InvalidInput
from evalboard.core.suite import default_policy
from runs import acts
from runs.baselines import current_baseline
from runs.catalogue import OneNames, is_all_that_is_known, newest_policy
from runs.models import BaselineRecord, GateRecord, PolicyRecord, ReleaseRecord, RunRecord
from runs.pairs import draws_of
from runs.release import verdict_inputs, verdicts
from runs.run import create_pair, create_run, label_problems, order_again
from runs.store import require_row
from runs.suites import reference_suite

MAX_GATES = 50
GATE_FIELDS = ("suite", "candidate", "baseline", "tier")
CURRENT = "current"


@dataclass(frozen=True, slots=True)
class NewGate:
    """A validated gate to create: its runs and its baseline."""

    candidate: RunRecord
    baseline: RunRecord
    current: BaselineRecord | None
    tier: str


def create_release(
    *,
    gates: Sequence[Mapping[str, Any]],
    policy: str | None = None,
    treatment: str = ReleaseRecord.Treatment.MODEL,
    pair_by: str = BY_INPUT,
    nothing_caches: bool = False,
    labels: Mapping[str, Any] | None = None,
    user: Any = None,
) -> ReleaseRecord:
    """Judge a candidate on one or more suites; the release comes back decided.

    A gate is {"suite", "candidate": run id, "baseline": run id or "current", "tier"?}. Without a policy it is the
    newest version of the one that the first critical gate's suite carries, else `strict`, or `paired` where the
    candidate's runs are sampled. pair_by: how cases are paired where the prompt is judged. nothing_caches: a
    person's word that equal repeats were each computed. Raises InvalidInput with fields such as `gates[0].candidate`,
    NotFound, or Conflict where a run has not ended or there is no current baseline; then nothing is stored.
    """
    fields = label_problems(labels or {}) | _shape_problems(gates)
    if treatment not in ReleaseRecord.Treatment.values:
        fields["treatment"] = f"Must be one of: {', '.join(ReleaseRecord.Treatment.values)}."
    if pair_by not in PAIRINGS:
        fields["pair_by"] = f"Must be one of: {', '.join(PAIRINGS)}."
    elif pair_by != BY_INPUT and treatment != ReleaseRecord.Treatment.PROMPT:
        fields["pair_by"] = "Cases are paired by id where the prompt is judged: name that treatment, or leave it out."
    if fields:
        raise InvalidInput("The release is not valid.", fields=fields)
    with transaction.atomic():
        # Locked in one order: a deletion of one of them waits, and finds the gate.
        wanted = {gate[side] for gate in gates for side in ("candidate", "baseline") if gate[side] != CURRENT}
        list(RunRecord.objects.select_for_update(no_key=True).filter(pk__in=wanted).order_by("pk").values_list("pk"))
        new = [_find_gate(gate, f"gates[{place}]") for place, gate in enumerate(gates)]
        _refuse_unfit(new)
        release = ReleaseRecord.objects.create(
            policy=_policy(policy, new),
            treatment=treatment,
            pair_by=pair_by,
            nothing_caches=nothing_caches,
            labels=dict(labels or {}),
            created_by=user,
        )
        GateRecord.objects.bulk_create(
            GateRecord(
                release=release,
                position=position,
                suite=gate.candidate.suite_version.suite,
                tier=gate.tier,
                baseline_run=gate.baseline,
                candidate_run=gate.candidate,
                baseline=gate.current,
            )
            for position, gate in enumerate(new)
        )
        release.verdict = verdicts.decide_release(release_id=release.pk)
    return release


def rerun_sides(
    *,
    release_id: int,
    sides: Mapping[str, str | None],
    gate: int | None = None,
    profile: str = "",
    is_reference: bool = False,
    is_shuffled: bool = False,
    user: Any = None,
) -> tuple[RunRecord, ...]:
    """Run one side of a gate again, or both in turn; return the runs, the candidate's last.

    They take today's versions of suite and profile. sides: where each is to run, None: where it did. gate: its
    position, None: that of the headline. profile: another one. is_reference: on the suite's reference set. is_shuffled:
    each repeat has its cases in an order of its own, also where the side's had not. Raises NotFound, what
    `order_again` and `create_run` raise, and InvalidInput where no side is named.
    """
    release = require_row(
        ReleaseRecord.objects.select_related("verdict").filter(pk=release_id), f"There is no release {release_id}."
    )
    place = (release.verdict.document["headline_gate"] if release.verdict else 0) if gate is None else gate
    of = require_row(release.gates.select_related("suite").filter(position=place), f"{release} has no gate {place}.")
    runs = {"baseline": of.baseline_run, "candidate": of.candidate_run}
    if not sides:
        raise InvalidInput("Nothing runs again.", fields={"baseline": "Name a side: baseline, candidate or both."})
    suite = reference_suite(slug=of.suite.slug).suite.slug if is_reference else None
    named: dict[str, Any] = {"suite": suite, "profile": profile, "is_today": True}
    orders = {side: order_again(run.pk, endpoint=sides[side], **named) for side, run in runs.items() if side in sides}
    for order in orders.values() if is_shuffled else ():
        order["is_shuffled"] = True
    if len(orders) == 2:
        seeds = [order["seed"] for order in orders.values() if order["seed"] is not None]
        shared = {"seed": seeds[0]} if len(seeds) == 2 else {}  # two sides of one seed draw alike
        return create_pair(**{side: {**order, **shared} for side, order in orders.items()}, user=user)
    [(side, order)] = orders.items()
    other = draws_of(runs["candidate" if side == "baseline" else "baseline"])
    if order["seed"] is not None and other.has_call_seeds:
        order["seed"] = other.seed
    return (create_run(**order, user=user),)


def _shape_problems(gates: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    if not 1 <= len(gates) <= MAX_GATES:
        return {"gates": f"Name 1 to {MAX_GATES} gates."}
    fields: dict[str, str] = {}
    for place, gate in enumerate(gates):
        at = f"gates[{place}]"
        fields |= {f"{at}.{name}": "Unknown field." for name in sorted(set(gate) - set(GATE_FIELDS))}
        if not isinstance(gate.get("suite"), str):
            fields[f"{at}.suite"] = "Name the suite."
        if not _is_id(gate.get("candidate")):
            fields[f"{at}.candidate"] = "Must be the id of a run."
        if not _is_id(gate.get("baseline")) and gate.get("baseline") != CURRENT:
            fields[f"{at}.baseline"] = f'Must be the id of a run, or "{CURRENT}".'
        if gate.get("tier", GateRecord.Tier.CRITICAL) not in GateRecord.Tier.values:
            fields[f"{at}.tier"] = f"Must be one of: {', '.join(GateRecord.Tier.values)}."
    if not fields and all(gate.get("tier") == GateRecord.Tier.ADVISORY for gate in gates):
        fields["gates"] = "Advisory gates decide nothing; at least one must be critical."
    return fields


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**63


def _find_gate(gate: Mapping[str, Any], at: str) -> NewGate:
    candidate = _run(gate["candidate"])
    suite = candidate.suite_version.suite
    if suite.slug != gate["suite"]:
        fields = {f"{at}.candidate": f"Must be a run of suite {gate['suite']}; run {candidate.pk} is of {suite.slug}."}
        raise InvalidInput("The release is not valid.", fields=fields)
    current = None
    if gate["baseline"] == CURRENT:
        line, profile = candidate.endpoint.line, candidate.profile.slug
        current = current_baseline(suite=suite, line=line, profile_slug=profile)
        if current is None:
            text = f"Suite {suite.slug} has no baseline for model line {line} under profile {profile}; set one on"
            raise Conflict(f"{text} the suite's page, or name a run.")
    baseline = _run(gate["baseline"] if current is None else current.run_id)
    fields = {}
    if baseline.pk == candidate.pk:
        fields[f"{at}.baseline"] = f"Run {baseline.pk} is the candidate; a run is not judged against itself."
    elif baseline.suite_version.suite_id != candidate.suite_version.suite_id:
        fields[f"{at}.baseline"] = f"Must be a run of suite {suite.slug}."
    if fields:
        raise InvalidInput("The release is not valid.", fields=fields)
    return NewGate(candidate, baseline, current, gate.get("tier", GateRecord.Tier.CRITICAL))


def _run(run_id: int) -> RunRecord:
    return require_row(
        RunRecord.objects.select_related(*verdict_inputs.RUN).filter(pk=run_id), f"There is no run {run_id}."
    )


def _refuse_unfit(gates: Sequence[NewGate]) -> None:
    """Raise Conflict or InvalidInput for what no release can judge.

    It judges one candidate, whose runs and baselines have ended and hold something that can be judged.
    """
    runs = {run.pk: run for gate in gates for run in (gate.candidate, gate.baseline)}
    for run in runs.values():
        acts.require("judge", run)
    fields: dict[str, str] = {}
    seen: set[tuple[int, int]] = set()
    served = [gate.candidate.bucket.model for gate in gates if gate.candidate.bucket is not None]
    names = OneNames()
    models = {
        (names.of(model.name), model.revision) if is_all_that_is_known(model) else (model.digest,) for model in served
    }
    if len(models) > 1:
        fields["gates"] = "The candidates are of several models; a release judges one."
    for place, gate in enumerate(gates):
        pair = (gate.baseline.pk, gate.candidate.pk)
        if pair in seen:
            fields[f"gates[{place}]"] = "Another gate has the same two runs."
        seen.add(pair)
    if fields:
        raise InvalidInput("The release is not valid.", fields=fields)


def _policy(slug: str | None, gates: Sequence[NewGate]) -> PolicyRecord:
    if slug:
        return newest_policy(slug)
    first = next(gate for gate in gates if gate.tier == GateRecord.Tier.CRITICAL)
    own = first.candidate.suite_version.suite.policy
    if own is not None:
        return newest_policy(own.slug)
    return newest_policy(default_policy(is_sampled=draws_of(first.candidate).may_sample))

"""Collect the facts for a gate's sentences, which `evalboard.wording.release_verdict` writes."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from evalboard.core.release.evidence import Change, Evidence
from evalboard.core.release.gate import MeasuredSide

Facts = Mapping[str, Any]


def gate_facts(evidence: Evidence, **more: Any) -> Facts:
    """Return the facts of a gate, points not rounded, None if unknown. more: facts of one line.

    tolerance, guard: of the policy. looks: its looks at the repeats, later_looks those that
    are left. copies: of each side that has some. sides: of each side the range of five repeats
    and the repeats that entered. draws: the temperature and seed of each side. targeted: the repeats of the noisiest
    cases that entered beside them. uncertified: the sides that decoded under `invariant` without a certificate.
    """
    policy = evidence.policy
    return {
        "n_cases": evidence.n_cases,
        "n_judged": evidence.n_cases_judged,
        "n_unjudged": evidence.n_cases_missing,
        "tolerance": policy.tolerance_points,
        "guard": policy.guard_points,
        "look": evidence.look,
        "looks": list(policy.looks),
        "later_looks": list(policy.later_looks(evidence.look or 0, is_targeted=evidence.is_targeted_look)),
        "k_baseline": evidence.k_baseline,
        "k_candidate": evidence.k_candidate,
        "change": None if evidence.change is None else _change_facts(evidence.change),
        "missing": asdict(evidence.missing),
        "left_out": asdict(evidence.left_out),
        "copies": [asdict(each) for each in evidence.copies],
        "noisy": list(evidence.noisy),
        "one_draw": list(evidence.one_draw),
        "sides": {"baseline": _side_facts(evidence.baseline), "candidate": _side_facts(evidence.candidate)},
        "draws": {
            name: {"temperature": draws.temperature, "seed": draws.seed}
            for name, draws in (("baseline", evidence.draws_baseline), ("candidate", evidence.draws_candidate))
        },
        "share_seeds": evidence.share_seeds,
        "metric": evidence.policy.metric.name,
        "targeted": evidence.targeted_repeats and evidence.targeted_repeats.to_stored(),
        "uncertified": [dict(each) for each in evidence.uncertified],
        **more,
    }


def _change_facts(change: Change) -> Facts:
    by_chance, reach = change.cases.broken_by_chance, change.reach
    return {
        "difference": change.estimate.difference,
        "low": change.low,
        "high": change.high,
        "level": change.level,
        "method": change.estimate.method,
        "n_broken": change.cases.n_broken,
        "n_fixed": change.cases.n_fixed,
        "n_broken_by_chance": by_chance and by_chance.n_expected,
        "is_in_every_repeat": change.cases.is_in_every_repeat,
        "resolution": change.resolution_points,
        "reach": None if reach is None or reach.is_concentrated else {"low": reach.low, "high": reach.high},
    }


def _side_facts(side: MeasuredSide) -> Facts:
    return {"range5": side.noise.range5_points or 0.0, "n_repeats": len(side.points)}

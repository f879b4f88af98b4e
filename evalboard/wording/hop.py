"""Compare a probe through a gateway with one around it, in one sentence (docs/probes.md)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from evalboard.wording.capability import LABELS
from evalboard.wording.messages import Messages
from evalboard.wording.numbers import capital, listed
from evalboard.wording.probe_states import describe_state

# Of each kind: the states in which nothing is lost, those in which it is, how to say either, and what the gateway does
# where it is lost through the gateway alone.
_STATES = {
    "seed": ({"honoured"}, {"ignored", "partly_honoured", "greedy", "deterministic"}),
    "batch": ({"invariant", "nearly"}, {"variant"}),
    "routing": ({"one"}, {"several", "rotated"}),
    "canary": ({"stable"}, {"changed", "partly_changed"}),
}
_WORDS = {
    "honoured": "Honoured",
    "ignored": "ignored",
    "partly_honoured": "dropped at times",
    "greedy": "without any effect",
    "deterministic": "without any effect",
    "invariant": "The same text every time",
    "nearly": "The same text nearly every time",
    "variant": "other texts",
    "one": "One backend",
    "several": "several backends",
    "rotated": "a new backend",
    "stable": "Unchanged",
    "changed": "changed",
    "partly_changed": "partly changed",
}
_BLAME = {
    ("seed", "ignored"): "the gateway drops it",
    ("seed", "partly_honoured"): "the gateway drops it at times, or sends some calls elsewhere",
    ("seed", "greedy"): "the gateway drops the temperature",
    (
        "seed",
        "deterministic",
    ): "the gateway answers from a cache, drops the temperature or replaces every seed",
    ("batch", "variant"): "the gateway spreads the calls, or changes them",
    ("routing", "several"): "the gateway spreads the calls over them",
    ("routing", "rotated"): "the gateway now sends the calls elsewhere",
    ("canary", "changed"): "the change is the gateway's",
    ("canary", "partly_changed"): "the change is the gateway's",
}


# What the gateway does then, and to what.
Loss = tuple[str, str]
_LOSSES: dict[tuple[str, str], Loss] = {
    ("seed", "ignored"): ("drops", "seed"),
    ("seed", "partly_honoured"): ("at times drops", "seed"),
    ("seed", "greedy"): ("drops", "temperature"),
    ("seed", "deterministic"): ("takes the effect from", "seed"),
    ("batch", "variant"): ("changes answers", ""),
    ("routing", "several"): ("spreads the calls over several backends", ""),
    ("routing", "rotated"): ("sends the calls elsewhere than before", ""),
    ("canary", "changed"): ("answers differently than before", ""),
    ("canary", "partly_changed"): ("answers some calls differently than before", ""),
}


@dataclass(frozen=True, slots=True)
class HopSide:
    """One of the two probes: the endpoint's slug, and the probe's state and figures."""

    endpoint: str
    state: str
    numbers: Mapping[str, Any]


def describe_hop(kind: str, direct: HopSide, gateway: HopSide) -> str:
    """Say whether the gateway drops what the direct endpoint honours. Both probes must have a result."""
    ends = {"direct": direct.endpoint, "gateway": gateway.endpoint}
    if "incomplete" in (direct.state, gateway.state):
        return HOPS.write("too_few")
    if kind == "capability":
        losses = describe_losses(_lost_parameters(direct, gateway))
        return HOPS.write("drops" if losses else "drops_nothing", ends, losses=losses)
    good, bad = _STATES[kind]
    if direct.state not in good | bad or (direct.state in good and gateway.state not in good | bad):
        states = "; ".join(
            f"{side.endpoint}: {describe_state(kind, side.state).word.lower()}" for side in (direct, gateway)
        )
        return HOPS.write("undecided", states=states)
    ends["before"] = capital(_WORDS[direct.state])
    if direct.state in good:
        blame = _BLAME.get((kind, gateway.state), "")
        return HOPS.write("lost" if blame else "works", ends, after=_WORDS[gateway.state], blame=blame)
    if gateway.state in bad:
        return HOPS.write("alike" if direct.state == gateway.state else "already", ends)
    after = _WORDS[gateway.state].lower() if gateway.state in good else "undecided"
    return HOPS.write("bypassed", ends, after=after)


HOPS = Messages(
    "hop",
    {
        ("hop", "unknown"): {
            "too_few": "One of the two probes has too few answers to say where settings are dropped.",
            "alike": "{before} at {direct} and through {gateway}: whether the gateway does it too is unknown.",
            "already": "{before} at {direct} already, so the gateway cannot be judged.",
            "undecided": "The two probes cannot say where settings are dropped ({states}).",
        },
        ("hop", "asserts"): {
            "lost": "{before} at {direct}, {after} through {gateway}: {blame}.",
            "bypassed": "{before} at {direct}, {after} through {gateway}: the gateway does not send these calls there, "
            "or something answers in its place.",
            "drops": "{gateway} {losses}, which {direct} honours.",
        },
        ("hop", "denies"): {
            "works": "{before} at {direct} and through {gateway}: the gateway drops nothing of this.",
            "drops_nothing": "{gateway} neither drops nor refuses anything that {direct} honours.",
        },
    },
)


def find_losses(kind: str, direct: HopSide, gateway: HopSide) -> tuple[Loss, ...]:
    """Return what the gateway breaks that works without it, as (verb, object)."""
    if "incomplete" in (direct.state, gateway.state) or kind not in (*_STATES, "capability"):
        return ()
    if kind == "capability":
        return _lost_parameters(direct, gateway)
    good, bad = _STATES[kind]
    return (_LOSSES[kind, gateway.state],) if direct.state in good and gateway.state in bad else ()


def describe_losses(losses: Iterable[Loss]) -> str:
    """Join losses to a phrase about the gateway: "drops seed and top_k, and changes answers"."""
    by_verb: dict[str, dict[str, None]] = {}
    for verb, what in losses:
        by_verb.setdefault(verb, {})[what] = None
    verbs = [f"{verb} {listed([*names])}".rstrip() for verb, names in by_verb.items()]
    return listed(verbs) if verbs else ""


def _lost_parameters(direct: HopSide, gateway: HopSide) -> tuple[Loss, ...]:
    through = {row["parameter"]: row["state"] for row in gateway.numbers["rows"]}
    honoured = [row["parameter"] for row in direct.numbers["rows"] if row["state"] == "honoured"]
    verbs = {"ignored": "drops", "refused": "refuses"}
    return tuple(
        (verb, LABELS[name]) for state, verb in verbs.items() for name in honoured if through.get(name) == state
    )

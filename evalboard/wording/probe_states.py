"""Explain a probe's states: a word, whether it is good, and what to do (docs/probes.md has the rules).

Separate from `wording.probe`, whose numpy would slow down the start of the command line.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StateWords:
    """The texts of a probe's state on a page or the command line.

    standing: "good", "bad" (a person must act), "unsettled" (good or bad is undecided), "early" (nothing to compare
    with yet) or "unknown" (too few calls were answered).
    """

    word: str
    standing: str
    advice: str = ""


DAILY_CHECK_COST = "Up to 26 short calls a day."

INCOMPLETE = StateWords(
    "Incomplete",
    "unknown",
    "Look at the unanswered calls, fix what failed, and probe again.",
)
STATES: dict[str, dict[str, StateWords]] = {
    "seed": {
        "honoured": StateWords("Seed honoured", "good"),
        "partly_honoured": StateWords(
            "Seed partly honoured",
            "bad",
            "Check below whether one bucket drops it. If none does, probe under pinned, at batch size 1.",
        ),
        "ignored": StateWords(
            "Seed ignored",
            "bad",
            "Repeats cannot be reproduced by their seeds: look for a gateway or a server setting that drops the field.",
        ),
        "greedy": StateWords(
            "Temperature dropped",
            "bad",
            "Repeats only give the same answer again. Fix what drops the temperature, or judge the endpoint as greedy.",
        ),
        "deterministic": StateWords(
            "Deterministic regardless",
            "bad",
            "The seed was not tested. Probe at temperature 1.5; if the texts stay equal, the temperature is dropped.",
        ),
        "too_noisy": StateWords("Too noisy to tell", "unsettled", "Probe again with 10 prompts, or at a quieter time."),
        "incomplete": INCOMPLETE,
    },
    "batch": {
        "invariant": StateWords("Invariant", "good"),
        "nearly": StateWords(
            "Nearly invariant",
            "good",
            "In a run of many cases, expect one or two to change. Decode under pinned to avoid that.",
        ),
        "variant": StateWords(
            "Variant",
            "bad",
            "On your own engine, judge releases under pinned or invariant. An external server's repeats are samples.",
        ),
        "incomplete": INCOMPLETE,
    },
    "routing": {
        "one": StateWords("One stack", "good"),
        "several": StateWords(
            "Several stacks",
            "bad",
            "Bring the pool's workers to one version and one kind of hardware, or give each kind its own pool. An "
            "external gateway may let you choose one backend.",
        ),
        "rotated": StateWords("Rotated", "bad", "Run the baselines of this endpoint again before the next release."),
        "unknown": StateWords(
            "Stack not known",
            "unsettled",
            "Find the worker or server that does not report who answers: its results cannot be compared.",
        ),
        "incomplete": INCOMPLETE,
    },
    "canary": {
        "stable": StateWords("Stable", "good"),
        "changed": StateWords(
            "Changed",
            "bad",
            "Find out what changed, and run the baselines of this endpoint again. This canary starts a new baseline.",
        ),
        "partly_changed": StateWords(
            "Partly changed",
            "bad",
            "Something else answers part of the requests. Probe the routing, and look for a rollout in progress.",
        ),
        "drift": StateWords(
            "Drift", "unsettled", "Nothing to do yet. After two in a row, ask the operator of the endpoint."
        ),
        "too_few": StateWords("Too few runs yet", "early", "Ask the same again a few times a day."),
        "incomplete": INCOMPLETE,
    },
    "border": {
        "found": StateWords("Prompts found", "early", "Start another border probe, or schedule one an hour."),
        "none_found": StateWords("No split prompts", "unsettled", "Search among prompts of your own."),
        "stable": StateWords("Stable", "good"),
        "changed": StateWords(
            "Changed",
            "bad",
            "Ask who serves it what changed, and run the baselines of this endpoint again. Later probes are compared "
            "with this one; search again if few prompts are still split.",
        ),
        "too_few": StateWords("Too few probes yet", "early", "Start the same again, or schedule one an hour."),
        "incomplete": INCOMPLETE,
    },
    "determinism": {
        "certified": StateWords("Certified", "good"),
        "bits_move": StateWords(
            "Bits move",
            "bad",
            "Batching moves logprobs under this profile, but no token yet. Decode one request at a time, as pinned "
            "does. If bits still move, run the node's self-test and check its hardware.",
        ),
        "answers_move": StateWords(
            "Answers move",
            "bad",
            "Batching changes answers under this profile: judge no release with it on this node. Decode one request "
            "at a time, as pinned does. If answers still move, run the node's self-test and check its hardware.",
        ),
        "incomplete": INCOMPLETE,
    },
    "audit": {
        "identical": StateWords("Identical", "good"),
        "differs": StateWords(
            "Incident",
            "bad",
            "Stop the named worker, and keep its log, packages and self-test. Replay the case: if it differs again, "
            "the fault is permanent. Distrust what it answered since the last identical audit.",
        ),
        "stacks_differ": StateWords(
            "Stacks differ",
            "bad",
            "Bring the pool's workers to one version and one kind of hardware, or give each kind its own pool.",
        ),
        "nothing_held": StateWords("First audit", "early", "Run it again, or schedule it."),
        "incomplete": INCOMPLETE,
    },
    "capability": {
        "checked": StateWords("Checked", "good"),
        "ignores": StateWords(
            "Something ignored",
            "unsettled",
            "The server accepts these parameters and ignores them: do not rely on them. The table names them.",
        ),
        "incomplete": INCOMPLETE,
    },
    "vendor": {
        "measured": StateWords("Measured", "good"),
        "faults": StateWords(
            "Faults",
            "bad",
            "Ask the vendor about the rows with a fault. The vendor card shows other endpoints next to it.",
        ),
        "incomplete": INCOMPLETE,
    },
    "verify": {
        "same_stack": StateWords("Same stack", "good"),
        "same_model_other_numerics": StateWords("Same model, other numerics", "good"),
        "other_model": StateWords(
            "Another model",
            "bad",
            "Probe again first: 1 correct endpoint in 100 looks like this by chance. Then ask its operator.",
        ),
        "too_few_tokens": StateWords(
            "Too few tokens",
            "unsettled",
            "Use a suite with more cases or longer answers. With logprobs, far fewer tokens decide.",
        ),
    },
}


def describe_state(kind: str, state: str) -> StateWords:
    """Return a state's texts. One that only a newer server knows is shown as bad, not skipped."""
    return STATES.get(kind, {}).get(state) or StateWords(state.replace("_", " ").capitalize(), "bad")

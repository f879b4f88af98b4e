"""Explain a probe's states: a word, whether it is good, and what to do (docs/probes.md has the rules).

Separate from `wording.probe`, whose numpy would slow down the start of the command line.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StateWords:
    """The texts of a probe's state on a page or the command line.

    standing: "good", "bad" (somebody must act), "unsettled" (it cannot be told which), "early" (nothing to hold it
    against yet) or "unknown" (too few calls were answered).
    """

    word: str
    standing: str
    advice: str = ""


INCOMPLETE = StateWords(
    "Incomplete",
    "unknown",
    "Look at the calls without an answer, put right what failed, and probe again.",
)
STATES: dict[str, dict[str, StateWords]] = {
    "seed": {
        "honoured": StateWords("Seed honoured", "good"),
        "partly_honoured": StateWords(
            "Seed partly honoured",
            "bad",
            "See below whether one bucket drops it; if none does, probe under pinned, where nothing shares a step.",
        ),
        "ignored": StateWords(
            "Seed ignored",
            "bad",
            "Repeats cannot be reproduced by their seeds: look for a gateway or a server setting that drops the field.",
        ),
        "greedy": StateWords(
            "Temperature dropped",
            "bad",
            "Repeats are one answer given again: have the temperature passed on, or judge the endpoint as greedy.",
        ),
        "deterministic": StateWords(
            "Deterministic regardless",
            "bad",
            "The seed was not tested. Probe again at a temperature of 1.5; if the texts stay alike, it is dropped.",
        ),
        "too_noisy": StateWords("Too noisy to tell", "unsettled", "Probe again with 10 prompts, or at a quieter time."),
        "incomplete": INCOMPLETE,
    },
    "batch": {
        "invariant": StateWords("Invariant", "good"),
        "nearly": StateWords(
            "Nearly invariant",
            "good",
            "A run of many cases will still meet such a place: expect a case or two to move, or decode under pinned.",
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
            "Bring the pool's workers to one version and one kind of hardware, or give each kind its own pool. A "
            "gateway of others may be told to use one backend alone.",
        ),
        "rotated": StateWords("Rotated", "bad", "Run the baselines of this endpoint again before the next release."),
        "unknown": StateWords(
            "Stack not known",
            "unsettled",
            "See which worker or server does not say who answers; what it serves can be compared with nothing.",
        ),
        "incomplete": INCOMPLETE,
    },
    "canary": {
        "stable": StateWords("Stable", "good"),
        "changed": StateWords(
            "Changed",
            "bad",
            "Find out what was changed, and run the baselines of this endpoint again; this run begins a new one here.",
        ),
        "partly_changed": StateWords(
            "Partly changed",
            "bad",
            "Something else answers a part of the requests: probe the routing, and look for a rollout under way.",
        ),
        "drift": StateWords(
            "Drift", "unsettled", "Nothing to do yet; two in a row are a question to whoever serves the endpoint."
        ),
        "too_few": StateWords("Too few runs yet", "early", "Ask the same again a few times a day."),
        "incomplete": INCOMPLETE,
    },
    "determinism": {
        "certified": StateWords("Certified", "good"),
        "bits_move": StateWords(
            "Bits move",
            "bad",
            "What else is decoded moves logprobs under this profile, and no token yet. Decode one request at a time, "
            "as pinned does; if that moves too, run the node's self-test and look at its hardware.",
        ),
        "answers_move": StateWords(
            "Answers move",
            "bad",
            "What else is decoded changes answers under this profile: judge no release by it on this node. Decode one "
            "request at a time, as pinned does; if that moves too, run the node's self-test and look at its hardware.",
        ),
        "incomplete": INCOMPLETE,
    },
    "audit": {
        "identical": StateWords("Identical", "good"),
        "differs": StateWords(
            "Incident",
            "bad",
            "Stop the worker that is named, and keep what it has: its log, its packages and its self-test. Replay the "
            "case; if it comes again, the fault is lasting. Doubt what it answered since the last identical audit.",
        ),
        "stacks_differ": StateWords(
            "Stacks differ",
            "bad",
            "Bring the pool's workers to one version and one kind of hardware, or give each kind its own pool.",
        ),
        "nothing_held": StateWords("Nothing held yet", "early", "Ask again, or by a schedule."),
        "incomplete": INCOMPLETE,
    },
    "capability": {
        "checked": StateWords("Checked", "good"),
        "ignores": StateWords(
            "Something ignored",
            "unsettled",
            "What is ignored cannot be relied on, though every call that asks for it is answered: see the table.",
        ),
        "incomplete": INCOMPLETE,
    },
    "verify": {
        "same_stack": StateWords("Same stack", "good"),
        "same_model_other_numerics": StateWords("Same model, other numerics", "good"),
        "other_model": StateWords(
            "Another model",
            "bad",
            "Probe again before you say so: one honest check in 100 comes out like this. Then ask who serves it.",
        ),
        "too_few_tokens": StateWords(
            "Too few tokens",
            "unsettled",
            "Take a suite with more cases or longer answers; logprobs are worth many times the tokens.",
        ),
    },
}


def describe_state(kind: str, state: str) -> StateWords:
    """Return a state's texts. One that only a newer server knows is shown as bad, not skipped."""
    return STATES.get(kind, {}).get(state) or StateWords(state.replace("_", " ").capitalize(), "bad")

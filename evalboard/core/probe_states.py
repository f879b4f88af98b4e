"""What a probe's states mean to a reader: a word, whether it is well, and what to do (docs/probes.md has the rules)."""

from dataclasses import dataclass

KINDS = ("seed", "batch", "routing", "canary")


@dataclass(frozen=True, slots=True)
class Words:
    """How a state is told.

    standing: "good", "bad" (somebody must act), "unsettled" (it cannot be told which), "early" (nothing to hold it
    against yet) or "unknown" (too few calls were answered).
    """

    word: str
    standing: str
    advice: str = ""


INCOMPLETE = Words(
    "Incomplete",
    "unknown",
    "Look at the calls without an answer, put right what failed, and probe again.",
)
STATES: dict[str, dict[str, Words]] = {
    "seed": {
        "honoured": Words("Seed honoured", "good"),
        "partly_honoured": Words(
            "Seed partly honoured",
            "bad",
            "See below whether one bucket drops it; if none does, probe under pinned, where nothing shares a step.",
        ),
        "ignored": Words(
            "Seed ignored",
            "bad",
            "Repeats cannot be reproduced by their seeds: look for a gateway or a server setting that drops the field.",
        ),
        "deterministic": Words(
            "Deterministic regardless",
            "bad",
            "The seed was not tested. Probe again at a temperature of 1.5; if the texts stay alike, it is dropped.",
        ),
        "too_noisy": Words("Too noisy to tell", "unsettled", "Probe again with 10 prompts, or at a quieter time."),
        "incomplete": INCOMPLETE,
    },
    "batch": {
        "invariant": Words("Invariant", "good"),
        "nearly": Words(
            "Nearly invariant",
            "good",
            "A run of many cases will still meet such a place: expect a case or two to move, or decode under pinned.",
        ),
        "variant": Words(
            "Variant",
            "bad",
            "Judge releases under pinned or invariant; under fast, an answer depends on what else is decoded.",
        ),
        "incomplete": INCOMPLETE,
    },
    "routing": {
        "one": Words("One stack", "good"),
        "several": Words(
            "Several stacks",
            "bad",
            "Bring the pool's workers to one version and one kind of hardware, or give each kind its own pool.",
        ),
        "rotated": Words("Rotated", "bad", "Run the baselines of this endpoint again before the next release."),
        "unknown": Words(
            "Stack not known",
            "unsettled",
            "See which worker sends no fingerprint; what it serves can be compared with nothing.",
        ),
        "incomplete": INCOMPLETE,
    },
    "canary": {
        "stable": Words("Stable", "good"),
        "changed": Words(
            "Changed",
            "bad",
            "Find out what was changed, and run the baselines of this endpoint again; this run begins a new one here.",
        ),
        "partly_changed": Words(
            "Partly changed",
            "bad",
            "Something else answers a part of the requests: probe the routing, and look for a rollout under way.",
        ),
        "drift": Words(
            "Drift", "unsettled", "Nothing to do yet; two in a row are a question to whoever serves the endpoint."
        ),
        "too_few": Words("Too few runs yet", "early", "Ask the same again a few times a day."),
        "incomplete": INCOMPLETE,
    },
}


def words(kind: str, state: str) -> Words:
    """A state's words; one that is not known, as a newer server may send it, is bad rather than passed over."""
    return STATES.get(kind, {}).get(state) or Words(state.replace("_", " ").capitalize(), "bad")

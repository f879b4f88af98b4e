"""A probe in words: what its kind asks, what it found, and its numbers as rows."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from evalboard.core import probe_parameters, probe_states
from frontend.findings import Finding
from runs.models import Probe
from runs.selectors.probe import ProbeDetail, ProbeRow

GLYPHS = {"good": "pass", "bad": "warning", "unsettled": "inconclusive", "early": "idle", "unknown": "incomplete"}
INKS = {"good": "pass", "bad": "partly", "unsettled": "partly", "early": "quiet-ink", "unknown": "quiet-ink"}


@dataclass(frozen=True, slots=True)
class Kind:
    """What a probe of this kind asks, and what it tells by."""

    question: str
    how: str


KINDS = {
    "seed": Kind("does it honour seeds?", "Calls with one seed are held against calls with a seed each."),
    "batch": Kind(
        "does what else is decoded move an answer?",
        "Copies of a prompt are decoded greedily amid other requests, and must come out the same.",
    ),
    "routing": Kind("does one and the same stack answer?", "Every worker of the pool is asked the same."),
    "canary": Kind(
        "has it changed since the last time?",
        "Logprobs of first tokens are held against those of earlier canaries that were asked the same.",
    ),
}


@dataclass(frozen=True, slots=True)
class Cost:
    """What a kind takes with its defaults."""

    kind: str
    words: Kind
    n_calls: int
    tokens: int
    is_for_each_worker: bool


@dataclass(frozen=True, slots=True)
class StateMark:
    """A state as pages show it; `ink` is a class, and the glyph says it without its colour."""

    word: str
    glyph: str
    ink: str
    advice: str


@cache
def costs() -> tuple[Cost, ...]:
    return tuple(_cost(kind, words) for kind, words in KINDS.items())


def _cost(kind: str, words: Kind) -> Cost:
    parameters = probe_parameters.complete(kind, {})
    calls = probe_parameters.planned(kind, parameters, probe_parameters.texts(kind, parameters) or ())
    tokens = probe_parameters.sampling(kind, parameters, "")["max_tokens"]
    return Cost(kind, words, len(calls), tokens, is_for_each_worker=kind == Probe.Kind.ROUTING)


def mark(row: ProbeRow) -> StateMark | None:
    """None while it has found nothing."""
    if not row.state:
        return None
    found = probe_states.words(row.kind, row.state)
    return StateMark(found.word, GLYPHS[found.standing], INKS[found.standing], found.advice)


def of_probe(found: ProbeDetail) -> Finding:
    """The sentence of the page: what it found, or how far it is."""
    row = found.row
    if row.status == Probe.Status.FAILED:
        return Finding("The probe failed.", found.error)
    if row.state:
        return parted(row.sentence)
    if found.waits_for:
        rest = f"Still to be asked: {', '.join(found.waits_for)}."
    else:
        rest = "A worker takes it before any shard." if row.status == Probe.Status.QUEUED else KINDS[row.kind].how
    again = f" Begun again: {found.error}" if found.error else ""
    waits = "Waiting for a worker." if row.status == Probe.Status.QUEUED else "Asking."
    return Finding(waits, rest + again)


def parted(sentence: str) -> Finding:
    """Its first clause as the claim: what comes after a colon or a full stop are the numbers to it."""
    ends = [end for end in (sentence.find(": "), sentence.find(". ")) if end >= 0]
    if not ends:
        return Finding(sentence)
    return Finding(sentence[: min(ends) + 1], sentence[min(ends) + 2 :])


def of_list(rows: Iterable[ProbeRow]) -> Finding:
    """What the newest probe of each endpoint and kind says, among these rows; they come newest first."""
    newest: dict[tuple[str, str], ProbeRow] = {}
    for row in rows:
        if row.is_terminal:
            newest.setdefault((row.endpoint, row.kind), row)
    ill = [row for row in newest.values() if _standing(row) not in ("good", "early")]
    if not newest:
        return Finding("No probe has ended yet.", "What each found will stand in its row.")
    if not ill:
        return Finding("All is well by the newest probe of each kind.", "Older ones may have found something else.")
    named = "; ".join(f"{row.endpoint}: {_said(row)}" for row in ill[:3])
    more = f"; and {len(ill) - 3} more" if len(ill) > 3 else ""
    n = f"{len(ill)} of the newest probes need{'s' if len(ill) == 1 else ''} somebody."
    return Finding(n, f"{named}{more}.")


def _standing(row: ProbeRow) -> str:
    return probe_states.words(row.kind, row.state).standing if row.state else "failed"


def _said(row: ProbeRow) -> str:
    if not row.state:
        return f"{row.kind} failed"
    return probe_states.words(row.kind, row.state).word.lower()

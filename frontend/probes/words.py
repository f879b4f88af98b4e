"""A probe in words: what its kind asks, what it found, and its numbers as rows."""

import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from evalboard.contract.probe import Probe, ProbeRow
from evalboard.contract.probe_kinds import OF_EACH_WORKER
from evalboard.core.probes import choose_sampling, complete_parameters, list_prompt_texts, plan_calls
from evalboard.wording import probe_states
from evalboard.wording.numbers import listed
from evalboard.wording.run import describe_pause
from frontend.endpoints.words import ParameterState
from frontend.shell.findings import Headline, split_claim
from runs.models import ProbeRecord

RESOLVED = "suite_version"  # a canary or an audit always takes the suite's newest

GLYPHS = {"good": "pass", "bad": "warning", "unsettled": "inconclusive", "early": "idle", "unknown": "incomplete"}
INKS = {"good": "pass", "bad": "partly", "unsettled": "partly", "early": "quiet-ink", "unknown": "quiet-ink"}


@dataclass(frozen=True, slots=True)
class ProbeQuestion:
    """The question that a kind of probe answers, and how."""

    question: str
    how: str


KINDS = {
    "seed": ProbeQuestion(
        "does it honour seeds?", "Calls that share a seed are compared with calls that have different seeds."
    ),
    "batch": ProbeQuestion(
        "does batching change answers?",
        "Copies of a prompt are decoded greedily among other requests, and must be equal.",
    ),
    "routing": ProbeQuestion("does a single stack answer?", "Every worker of the pool is asked the same."),
    "canary": ProbeQuestion(
        "has it changed since the last time?",
        "Logprobs of first tokens are compared with those of earlier canaries of the same prompts.",
    ),
    "determinism": ProbeQuestion(
        "does a node give the same bits under any load?",
        "Each worker decodes prompts at batch size 1 and larger, up to every seat, among short and long prompts.",
    ),
    "audit": ProbeQuestion(
        "does every worker give the same bits to the same input?",
        "Each worker decodes chosen cases; answers are compared between workers and with the audit before.",
    ),
    "capability": ProbeQuestion(
        "which parameters does an external server honour?",
        "A few calls test one parameter each: honoured, refused or ignored.",
    ),
    "verify": ProbeQuestion(
        "does it serve the weights of its reference?",
        "Its answers and answers of known origin are scored on the reference, token by token.",
    ),
}


@dataclass(frozen=True, slots=True)
class ProbeCost:
    """The cost of a kind with its defaults; that of a verification depends on its suite."""

    kind: str
    words: ProbeQuestion
    n_calls: int | None
    tokens: int | None
    is_for_each_worker: bool
    is_at_most: bool


@dataclass(frozen=True, slots=True)
class StateMark(ParameterState):
    """A state on a page. ink: a class."""

    advice: str


@cache
def costs() -> tuple[ProbeCost, ...]:
    return tuple(_cost(kind, words) for kind, words in KINDS.items())


def _cost(kind: str, words: ProbeQuestion) -> ProbeCost:
    if kind == ProbeRecord.Kind.VERIFY:
        return ProbeCost(kind, words, None, None, is_for_each_worker=False, is_at_most=False)
    parameters = complete_parameters(kind, {})
    calls = plan_calls(kind, parameters, list_prompt_texts(kind, parameters) or ())
    tokens = choose_sampling(kind, parameters, "")["max_tokens"]
    return ProbeCost(
        kind,
        words,
        len(calls),
        tokens,
        is_for_each_worker=kind in OF_EACH_WORKER,
        is_at_most=kind == ProbeRecord.Kind.CAPABILITY,
    )


def mark(row: ProbeRow | Probe) -> StateMark | None:
    """Return the mark of a probe's finding, None without one."""
    return None if row.finding is None else mark_of(row.kind, row.finding.state)


def mark_of(kind: str, state: str) -> StateMark:
    """Return the mark of a kind's state."""
    words = probe_states.describe_state(kind, state)
    return StateMark(words.word, GLYPHS[words.standing], INKS[words.standing], words.advice)


def describe_probe(answer: Probe) -> Headline:
    """Return the page's sentence: the finding, or the progress."""
    if answer.status == ProbeRecord.Status.FAILED:
        return Headline("The probe failed.", answer.error or "")
    if answer.finding:
        return split_claim(answer.finding.sentence)
    if answer.sets:
        return _describe_sets(answer)
    if answer.pause is not None:
        return Headline("Waiting for its endpoint.", describe_pause(**dict(answer.pause)))
    if answer.waits_for:
        rest = f"Still to be asked: {', '.join(answer.waits_for)}."
    else:
        rest = (
            "A worker takes it before any shard."
            if answer.status == ProbeRecord.Status.QUEUED
            else KINDS[answer.kind].how
        )
        if answer.status == ProbeRecord.Status.RUNNING and not answer.progress.n_done:
            rest += " An engine may have to start first."
    again = f" Begun again: {answer.error}" if answer.error else ""
    waits = "Waiting for a worker." if answer.status == ProbeRecord.Status.QUEUED else "Asking."
    return Headline(waits, rest + again)


def _describe_sets(answer: Probe) -> Headline:
    """Say what a verification waits for: first runs, then their scoring."""
    runs = [f"run {each.run} ({each.role})" for each in answer.sets if each.run_status in ("queued", "running")]
    scorings = [
        f"forced scoring {each.forced} ({each.role})"
        for each in answer.sets
        if each.forced_status in ("queued", "running")
    ]
    if waiting := runs + scorings:
        return Headline("Collecting answers.", f"It waits for {listed(waiting)}.")
    return Headline("Collecting answers.", "A worker continues from here.")


def describe_list(rows: Iterable[ProbeRow]) -> Headline:
    """Summarise the newest probe per endpoint and kind. rows: newest first."""
    newest: dict[tuple[str, str], ProbeRow] = {}
    for row in rows:
        if row.is_terminal:
            newest.setdefault((row.endpoint, row.kind), row)
    ill = [row for row in newest.values() if _standing(row) not in ("good", "early")]
    if not newest:
        return Headline("No probe has ended yet.", "Findings will appear in the rows.")
    if not ill:
        return Headline("The newest probe of each kind is fine.", "Older ones may differ.")
    named = "; ".join(f"{row.endpoint}: {_outcome(row)}" for row in ill[:3])
    more = f"; and {len(ill) - 3} more" if len(ill) > 3 else ""
    n = f"{len(ill)} of the newest probes need{'s' if len(ill) == 1 else ''} attention."
    return Headline(n, f"{named}{more}.")


def _standing(row: ProbeRow) -> str:
    return probe_states.describe_state(row.kind, row.finding.state).standing if row.finding else "failed"


def _outcome(row: ProbeRow) -> str:
    if row.finding is None:
        return f"{row.kind} failed"
    return probe_states.describe_state(row.kind, row.finding.state).word.lower()


def command(endpoint: str, kind: str, profile: str, parameters: Mapping[str, Any]) -> str:
    """Return the `evalboard probe` command with the same parameters, without defaults."""
    defaults = complete_parameters(kind, {})
    words = ["evalboard", "probe", endpoint, "--kind", kind, "--profile", profile]
    for name, value in parameters.items():
        if name != RESOLVED and defaults.get(name) != value:
            words += ["--set", f"{name}={json.dumps(value, ensure_ascii=False)}"]
    return shlex.join(words)

"""A probe in words: what its kind asks, what it found, and its numbers as rows."""

import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from evalboard.contract.probe import Probe, ProbeRow
from evalboard.contract.probe_kinds import OF_EACH_WORKER
from evalboard.contract.vendors import VendorCard, VendorCell
from evalboard.core.probes import choose_sampling, complete_parameters, list_prompt_texts, plan_calls
from evalboard.wording import probe_states
from evalboard.wording.messages import Messages
from evalboard.wording.run import describe_pause
from evalboard.wording.vendors import STATE_WORDS as CELL_WORDS
from frontend.endpoints.words import ParameterState
from frontend.shell.findings import Headline, split_claim
from runs.models import ProbeRecord

NAMED = 3  # of the probes that need attention
RESOLVED = "suite_version"  # a canary or an audit always takes the suite's newest

CELL_STANDINGS = {
    "good": "good",
    "fault": "bad",
    "ignored": "unsettled",
    "refused": "unsettled",
    "several": "unsettled",
    "measured": "early",
}
GLYPHS = {"good": "pass", "bad": "warning", "unsettled": "inconclusive", "early": "idle", "unknown": "incomplete"}
INKS = {"good": "pass", "bad": "partly", "unsettled": "partly", "early": "quiet-ink", "unknown": "quiet-ink"}


# What a kind of probe asks, and how it finds out.
QUESTIONS = Messages(
    "probe_question",
    {
        ("probe", "asserts"): {
            "seed": "does it honour seeds?",
            "batch": "does batching change answers?",
            "routing": "does a single stack answer?",
            "canary": "has it changed since the last time?",
            "determinism": "does a node give the same bits under any load?",
            "audit": "does every worker give the same bits to the same input?",
            "capability": "which parameters does an external server honour?",
            "verify": "does it serve the weights of its reference?",
            "vendor": "does an external server serve a model as others do?",
            "border": "has it changed, by texts alone?",
        },
    },
)
METHODS = Messages(
    "probe_method",
    {
        ("probe", "asserts"): {
            "seed": "Calls that share a seed are compared with calls that have different seeds.",
            "batch": "Copies of a prompt are decoded greedily among other requests, and must be equal.",
            "routing": "Every worker of the pool is asked the same.",
            "canary": "Logprobs of first tokens are compared with those of earlier canaries of the same prompts.",
            "determinism": "Each worker decodes prompts alone and in larger batches, up to its largest, among short "
            "and long prompts.",
            "audit": "Each worker decodes chosen cases; answers are compared between workers and with the audit "
            "before.",
            "border": "First, 80 prompts are searched for those whose first word is split, in 640 calls. Later probes "
            "ask these again and compare the splits.",
            "vendor": "Tools, schemas, streams, long prompts and texts are tried; the vendor card compares endpoints.",
            "capability": "A few calls test one parameter each: honoured, refused or ignored.",
            "verify": "Its answers and answers of known origin are scored on the reference, token by token.",
        },
    },
)
SAID = Messages(
    "probe_page",
    {
        ("status", "asserts"): {
            "failed": "The probe failed.",
            "paused": "Waiting for its endpoint.",
            "queued": "Waiting for a worker.",
            "running": "Asking.",
            "next_worker": "A worker takes it before any shard.",
            "engine_starts": "An engine may have to start first.",
            "asks_more": "Still to be asked: {names}.",
            "again": "Begun again: {problem}",
            "collecting": "Collecting answers.",
            "waits_for": "It waits for {names:list}.",
            "continues": "A worker continues from here.",
        },
        ("list", "unknown"): {
            "none_ended": "No probe has ended yet.",
            "findings_later": "Findings will appear in the rows.",
        },
        ("list", "asserts"): {
            "fine": "The newest probe of each kind is fine.",
            "older": "Older ones may differ.",
            "ill": "{n} of the newest probes {n:needs|need} attention.",
            "which": "{names}.",
            "which_and_more": "{names}; and {n_more} more.",
        },
        ("chart", "asserts"): {
            "bands": "Distance of each set of answers from the reference, in nats: root mean square of the "
            "{statistic}.",
            "band_lines": "Lines are 95 % intervals. Right of the dashed line, answers are nearer to changed weights.",
            "pairs": "Pairs of calls with one seed have {same} {unit} in common, pairs with other seeds {other}.",
            "pair_marks": "Each mark is the pairs of a prompt that first differ there; larger marks are more pairs.",
            "canaries_moved": "{n} of the last {n_all} canaries found a change.",
            "canaries_held": "None of the last {n_all} canaries found a change.",
            "canary_marks": "Each mark is a canary: how far the newest runs' logprobs are from those of the runs "
            "before, in nats.",
            "copies": "{n:,} of the {n_other:,} copies that differ leave the commonest text at position {position}.",
            "copy_bars": "Each bar counts copies by the first position where they go another way.",
        },
    },
)


@dataclass(frozen=True, slots=True)
class ProbeCost:
    """The cost of a kind with its defaults; that of a verification depends on its suite."""

    kind: str
    question: str
    how: str
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
    return tuple(map(_cost, QUESTIONS))


def _cost(kind: str) -> ProbeCost:
    words = QUESTIONS.write(kind), METHODS.write(kind)
    if kind == ProbeRecord.Kind.VERIFY:
        return ProbeCost(kind, *words, None, None, is_for_each_worker=False, is_at_most=False)
    parameters = complete_parameters(kind, {})
    calls = plan_calls(kind, parameters, list_prompt_texts(kind, parameters) or ())
    tokens = choose_sampling(kind, parameters, "")["max_tokens"]
    return ProbeCost(
        kind,
        *words,
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
        return Headline(SAID.write("failed"), answer.error or "")
    if answer.finding:
        return split_claim(answer.finding.sentence)
    if answer.sets:
        return _describe_sets(answer)
    if answer.pause is not None:
        return Headline(SAID.write("paused"), describe_pause(**dict(answer.pause)))
    is_queued = answer.status == ProbeRecord.Status.QUEUED
    rest = [
        SAID.write("asks_more", names=", ".join(answer.waits_for))
        if answer.waits_for
        else SAID.write("next_worker")
        if is_queued
        else METHODS.write(answer.kind)
    ]
    if answer.status == ProbeRecord.Status.RUNNING and not answer.progress.n_done and not answer.waits_for:
        rest.append(SAID.write("engine_starts"))
    if answer.error:
        rest.append(SAID.write("again", problem=answer.error))
    return Headline(SAID.write("queued" if is_queued else "running"), " ".join(rest))


def _describe_sets(answer: Probe) -> Headline:
    """Say what a verification waits for: first runs, then their scoring."""
    runs = [f"run {each.run} ({each.role})" for each in answer.sets if each.run_status in ("queued", "running")]
    scorings = [
        f"forced scoring {each.forced} ({each.role})"
        for each in answer.sets
        if each.forced_status in ("queued", "running")
    ]
    waiting = runs + scorings
    return Headline(SAID.write("collecting"), SAID.write("waits_for" if waiting else "continues", names=waiting))


def describe_list(rows: Iterable[ProbeRow]) -> Headline:
    """Summarise the newest probe per endpoint and kind. rows: newest first."""
    newest: dict[tuple[str, str], ProbeRow] = {}
    for row in rows:
        if row.is_terminal:
            newest.setdefault((row.endpoint, row.kind), row)
    ill = [row for row in newest.values() if _standing(row) not in ("good", "early")]
    if not newest:
        return Headline(SAID.write("none_ended"), SAID.write("findings_later"))
    if not ill:
        return Headline(SAID.write("fine"), SAID.write("older"))
    named = "; ".join(f"{row.endpoint}: {_outcome(row)}" for row in ill[:NAMED])
    code = "which_and_more" if len(ill) > NAMED else "which"
    return Headline(SAID.write("ill", n=len(ill)), SAID.write(code, names=named, n_more=len(ill) - NAMED))


def _standing(row: ProbeRow) -> str:
    return probe_states.describe_state(row.kind, row.finding.state).standing if row.finding else "failed"


def _outcome(row: ProbeRow) -> str:
    if row.finding is None:
        return f"{row.kind} failed"
    return probe_states.describe_state(row.kind, row.finding.state).word.lower()


def mark_cells(card: VendorCard) -> tuple[tuple[str, tuple[tuple[str, StateMark, VendorCell], ...]], ...]:
    """Return each row's label with the endpoint, the mark and the cell of each column."""
    slugs = [column.endpoint for column in card.endpoints]
    return tuple(
        (row.label, tuple((slug, _mark_cell(cell), cell) for slug, cell in zip(slugs, row.cells, strict=True)))
        for row in card.rows
    )


def _mark_cell(cell: VendorCell) -> StateMark:
    standing = CELL_STANDINGS.get(cell.state, "unknown")
    return StateMark(CELL_WORDS[cell.state], GLYPHS[standing], INKS[standing], "")


def card_command(card: VendorCard) -> str:
    """Return the `evalboard vendors` command that prints the card."""
    words = ["evalboard", "vendors", card.suite or "SUITE"]
    words += ["--endpoints", ",".join(column.endpoint for column in card.endpoints)]
    words += ["--reference", card.reference] if card.reference else []
    return shlex.join([*words, "--format", "markdown"])


def command(endpoint: str, kind: str, profile: str, parameters: Mapping[str, Any]) -> str:
    """Return the `evalboard probe` command with the same parameters, without defaults."""
    defaults = complete_parameters(kind, {})
    words = ["evalboard", "probe", endpoint, "--kind", kind, "--profile", profile]
    for name, value in parameters.items():
        if name != RESOLVED and defaults.get(name) != value:
            words += ["--set", f"{name}={json.dumps(value, ensure_ascii=False)}"]
    return shlex.join(words)

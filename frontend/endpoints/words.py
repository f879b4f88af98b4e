"""What the pages of workers and of fingerprints found, in words."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from evalboard.contract.baseline import RotationSeen
from evalboard.contract.endpoint import BackendSeen, EndpointReport
from evalboard.contract.manifest import ManifestDifference
from evalboard.contract.probe import Probe, ProbeHop
from evalboard.wording.capability import GIVEN_BESIDE, LABELS, describe_parameter, describe_state_of_parameter
from evalboard.wording.hop import describe_losses
from evalboard.wording.manifest import render_moved
from evalboard.wording.numbers import counted, listed
from evalboard.wording.run import describe_pause
from frontend.shell.findings import Headline
from frontend.templatetags.numbers import share
from runs.fingerprints import EndpointTimeline
from runs.work import PoolRow

STOPPED = {"silent": "silent", "resting": "paused"}


def describe_team(pools: Sequence[PoolRow]) -> Headline:
    """Say how many workers there are and what they do, without stopped ones."""
    states = Counter(worker.state for pool in pools for worker in pool.workers)
    if not states:
        return Headline("No worker is there.", "Runs wait in the queue until one joins.")
    n_pools = sum(bool(pool.workers) for pool in pools)
    among = f" in {n_pools} pools" if n_pools > 1 else ""
    state_words = {"working": "at work", "idle": "idle", **STOPPED}
    each = ", ".join(f"{states[state]} {words}" for state, words in state_words.items() if states[state])
    n = states.total()
    claim = f"{counted(n, 'worker')}{among}: {each}."
    if not states["silent"]:
        return Headline(claim, "One that falls silent loses its lease, and its shards go to others.")
    return Headline(claim, "What a silent one held goes to others when its lease ends; what it stored stays.")


def describe_desertion(pool: PoolRow) -> Headline:
    """Say why a pool's work waits, and what to do."""
    n = pool.n_waiting
    waits = f"Pool {pool.name}: {counted(n, 'shard')} {'waits' if n == 1 else 'wait'}"
    there = Counter(worker.state for worker in pool.workers)
    if not there:
        return Headline(f"{waits} and no worker is there.", "Start one where its engine is:")
    states = " and ".join(f"{there[state]} {words}" for state, words in STOPPED.items() if there[state])
    return Headline(f"{waits} and no worker serves it ({states}).", "Start another, or mend what stops them:")


def describe_timelines(lines: Sequence[EndpointTimeline]) -> Headline:
    """Return the newest rotation of all endpoints, and what changed in it."""
    turns = [turn for line in lines for turn in line.turns]
    if not turns:
        return Headline(
            "No fingerprint has rotated.", "Under each profile, no other server was seen since the first run."
        )
    last = max(turns, key=lambda turn: (turn.at, turn.id))
    where = ", ".join(filter(None, (last.endpoint, last.profile)))
    claim = f"The last rotation was on {where}, {_shown_by(last)}."
    what = f"What moved: {render_moved(last.moved)}. " if last.moved else ""
    return Headline(claim, f"{what}Scores from before and after it are different measurements.")


def describe_difference(fields: ManifestDifference, *, is_same: bool) -> Headline:
    """Say what differs between two fingerprints, and how much does not."""
    if is_same:
        return Headline("Both are the same fingerprint.", "Nothing can differ.")
    equal = f"{counted(len(fields.equal), 'field')} {'is' if len(fields.equal) == 1 else 'are'} equal"
    neither = f"{len(fields.unknown)} unknown on both sides" if fields.unknown else ""
    rest = f"{equal}{', ' if neither else ''}{neither}."
    if not fields.moved:
        claim = "No known field differs."
        return Headline(claim, f"They list different fields as unknown. {rest}")
    return Headline(f"{render_moved(fields.moved)}.", f"{len(fields.moved)} moved, {rest}")


ENGINE_WORDS = {
    "vllm": "vLLM, started by a worker",
    "openai": "an external server",
    "imported": "known by logs alone",
}
ENGINE_TITLES = {
    "vllm": "Your own: a worker loads the model",
    "openai": "External servers",
    "imported": "Known by logs alone",
}
API_WORDS = {"chat": "chat completions", "completions": "completions", "responses": "the Responses API"}
GLYPHS = {"honoured": "pass", "ignored": "warning", "refused": "cancelled"}
GLYPHS |= {"not_asked": "idle", "unclear": "inconclusive"}
INKS = {"honoured": "pass", "ignored": "partly"}


@dataclass(frozen=True, slots=True)
class ParameterState:
    """A parameter's state in a word; the glyph shows it without colour."""

    word: str
    glyph: str
    ink: str


@dataclass(frozen=True, slots=True)
class CheckRow:
    """A parameter of a capability check: through the endpoint, directly if it is a gateway, and why."""

    label: str
    state: ParameterState
    direct: ParameterState | None
    differs: bool
    detail: str
    seed_probe: str | None  # that has the statistics of three calls' seed


NAMES_SHOWN = 3


def describe_endpoint(
    report: EndpointReport,
    *,
    check: Probe | None = None,
    hops: Sequence[ProbeHop] = (),
    was_probed: bool = False,
    is_named: bool = False,
    n_expired: int = 0,
) -> Headline:
    """Say what is wrong with an endpoint, who answers, and which baselines expired by a change.

    check: its newest one, with its numbers. hops: of its probes and of those around it, the newest first. is_named:
    its answers say who gave them. n_expired: current baselines of its that a rotation made expire.
    """
    if report.rests_until is not None:
        n, why = report.n_failures or 0, report.rest_reason or ""
        words = describe_pause(n_failures=n, reason=why, until=report.rests_until)
        return Headline(words, "Runs on it wait and lose nothing.")
    who = _describe_who_answers(report, was_probed=was_probed, is_named=is_named)
    amiss = _describe_loss(report, hops) or _describe_ignored(check)
    claim = f"{amiss}, and {who.claim[:1].lower()}{who.claim[1:]}" if amiss else who.claim
    if not n_expired:
        return Headline(claim, who.rest)
    have = "1 current baseline has" if n_expired == 1 else f"{n_expired} current baselines have"
    return Headline(claim, f"{who.rest} {have} expired: run the reference set to see what moved.")


def _describe_loss(report: EndpointReport, hops: Sequence[ProbeHop]) -> str:
    """Say what the gateway breaks, each thing once; "" if nothing."""
    words = describe_losses(loss for hop in hops if hop.gateway == report.slug for loss in hop.losses)
    return f"The gateway {words}" if words else ""


def _describe_ignored(check: Probe | None) -> str:
    rows = [row for row in _rows_of(check) if row["state"] == "ignored" and row["parameter"] not in GIVEN_BESIDE]
    names = [LABELS.get(row["parameter"], row["parameter"]) for row in rows]
    n_more = len(names) - NAMES_SHOWN
    shown = [*names[:NAMES_SHOWN], f"{n_more} more"] if n_more > 1 else names
    return f"It silently ignores {listed(shown)}" if names else ""


def _describe_who_answers(report: EndpointReport, *, was_probed: bool, is_named: bool) -> Headline:
    last = report.last
    if not last.n_responses:
        if was_probed:
            shown = "Its probes are below." if is_named else "Its first run shows who answers."
            return Headline("No run has been asked of it yet.", f"{shown} {_rotation_words(report)}".strip())
        return Headline("Nothing has been asked of it yet.", "Its first run shows who answers.")
    rest = _rotation_words(report)
    known = [each for each in last.backends if each.fingerprint is not None]
    responses = f"the last {counted(last.n_responses, 'response')}"
    if not last.backends:
        return Headline(f"None of {responses} came back.", "The errors below say why.")
    if not known:
        return Headline("Nothing names who answers.", f"None of {responses} says which server gave it. {rest}".strip())
    if len(last.backends) > 1:
        shares = ", ".join(f"{_stack_name(each)} {share(each.share)}" for each in last.backends)
        return Headline(
            f"{len(last.backends)} stacks answer: {shares}.", f"Their scores are never put together. {rest}"
        )
    return Headline(f"One stack answers: {_stack_name(known[0])}.", f"It gave {responses}. {rest}")


def _stack_name(seen: BackendSeen) -> str:
    return seen.fingerprint.title if seen.fingerprint else "unknown"


def _rotation_words(report: EndpointReport) -> str:
    turn = report.rotated
    if turn is None:
        return "No rotation has been seen."
    at = f"{turn.at.astimezone(UTC):%Y-%m-%d}"
    under = f"under {turn.profile}, " if turn.profile else ""
    return f"The last rotation was on {at}, {under}{_shown_by(turn)}."


def _shown_by(turn: RotationSeen) -> str:
    return f"seen by probe {turn.probe}" if turn.probe else f"with run {turn.run}"


def render_check_rows(check: Probe | None, direct: Probe | None) -> tuple[CheckRow, ...]:
    """Return a row per parameter. direct: the newest check of a gateway's direct endpoint."""
    others = {row["parameter"]: row for row in _rows_of(direct)}
    newest = check.finding.numbers.get("seed_probe") if check and check.finding else None
    seed_probe = newest["id"] if newest else None
    return tuple(_check_row(row, others.get(row["parameter"]), seed_probe) for row in _rows_of(check))


def _rows_of(check: Probe | None) -> Sequence[Mapping[str, Any]]:
    return check.finding.numbers.get("rows", []) if check and check.finding else []


def _check_row(row: Mapping[str, Any], other: Mapping[str, Any] | None, seed_probe: str | None) -> CheckRow:
    return CheckRow(
        label=LABELS.get(row["parameter"], row["parameter"]),
        state=mark_parameter(row),
        direct=mark_parameter(other) if other else None,
        differs=other is not None and other["state"] != row["state"],
        detail=describe_parameter(row),
        seed_probe=seed_probe if row["parameter"] == "seed" else None,
    )


def mark_parameter(row: Mapping[str, Any]) -> ParameterState:
    """Return the mark of a parameter's state.

    A refused parameter is no fault, since the caller is told; an ignored one is.
    """
    state = row["state"]
    return ParameterState(describe_state_of_parameter(row), GLYPHS[state], INKS.get(state, "quiet-ink"))

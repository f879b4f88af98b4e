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
from evalboard.wording.messages import Messages
from evalboard.wording.numbers import listed
from evalboard.wording.run import describe_pause
from frontend.shell.findings import Headline
from frontend.templatetags.numbers import share
from runs.fingerprints import EndpointTimeline
from runs.work import PoolRow

STOPPED = {"silent": "silent", "resting": "paused"}
SAID = Messages(
    "endpoint_page",
    {
        ("workers", "asserts"): {
            "no_worker": "No worker is running.",
            "runs_wait": "Runs wait in the queue until one joins.",
            "workers": "{n:worker}{among}: {states}.",
            "leases": "If a worker falls silent, its lease ends and its shards go to others.",
            "silent": "A silent worker's shards go to others when its lease ends. Its stored responses stay.",
            "deserted": "Pool {pool}: {n:shard} {n:waits|wait} and no worker is running.",
            "stopped": "Pool {pool}: {n:shard} {n:waits|wait} and no worker serves it ({states}).",
        },
        ("workers", "advises"): {
            "start": "Start one where its engine is:",
            "start_another": "Start another, or fix what stops them:",
        },
        ("rotation", "denies"): {
            "none_rotated": "No fingerprint has rotated.",
            "one_server": "Under each profile, one server has given most answers since the first run.",
            "not_seen": "No rotation has been seen.",
        },
        ("rotation", "asserts"): {
            "last": "The last rotation was {where}, {seen}.",
            "moved": "What moved: {moved}.",
            "apart": "Scores from before and after it are different measurements.",
            "joined": "{name} joined: it gave {share} of the answers, and others gave most. That is no rotation.",
            "took_over": "{name} took over, as far as a probe sees: it gave {share} of the probe's answers.",
        },
        ("difference", "denies"): {
            "same": "Both are the same fingerprint.",
            "nothing": "Nothing can differ.",
            "none_known": "No known field differs.",
        },
        ("difference", "asserts"): {
            "fields": "{moved}.",
            "n_moved": "{n_moved:,} moved, {n:field} {n:is|are} equal{neither}.",
            "equal": "They list different fields as unknown. {n:field} {n:is|are} equal{neither}.",
        },
        ("endpoint", "asserts"): {
            "paused": "Its runs wait; no data is lost.",
            "expired": "{n:,} current {n:baseline has|baselines have} expired: run the reference set to see what "
            "moved.",
            "loses": "The gateway {losses}",
            "ignores": "It silently ignores {names}",
            "and": "{amiss}, and {who}",
        },
        ("endpoint", "unknown"): {
            "no_run": "It has no run yet.",
            "nothing_yet": "It has no run and no probe yet.",
            "first_run": "Its first run shows who answers.",
            "probes": "Its probes are below.",
            "no_answer": "The last {n:call} got no answer.",
            "errors": "The errors below say why.",
            "not_named": "Who answers is unknown.",
            "none_says": "None of the last {n:response} names the server that gave it.",
        },
        ("stacks", "asserts"): {
            "one": "One stack answers: {name}.",
            "gave": "It gave the last {n:response}.",
            "several": "{n} stacks answer: {shares}.",
            "separate": "Each is scored separately.",
            "every": "On {day:%Y-%m-%d} {who} gave every answer.",
            "shared": "On {day:%Y-%m-%d} {who} gave {share} of the answers, {others}.",
            "column": "{n:answer} to {sources}, a column a day in UTC; each day is 100 %.",
        },
        ("setting", "asserts"): {
            "own_endpoint": "A worker loads the model itself, with its dtype. Its identity is attested.",
            "remote_endpoint": "Any server that speaks OpenAI’s protocol: a provider, a gateway, a vLLM elsewhere. "
            "Its identity is self-reported.",
            "profile": "How cases are decoded: sampling settings and engine pins. Runs keep the version they were "
            "started with.",
            "policy": "What turns a comparison into a verdict. A verdict keeps the version it was taken under.",
            "same_model": "A log has a model's name and not its weights. Two names that you join count as one model.",
        },
    },
)


def describe_team(pools: Sequence[PoolRow]) -> Headline:
    """Say how many workers there are and what they do, without stopped ones."""
    states = Counter(worker.state for pool in pools for worker in pool.workers)
    if not states:
        return Headline(SAID.write("no_worker"), SAID.write("runs_wait"))
    n_pools = sum(bool(pool.workers) for pool in pools)
    among = f" in {n_pools} pools" if n_pools > 1 else ""
    state_words = {"working": "at work", "idle": "idle", **STOPPED}
    each = ", ".join(f"{states[state]} {words}" for state, words in state_words.items() if states[state])
    claim = SAID.write("workers", n=states.total(), among=among, states=each)
    return Headline(claim, SAID.write("silent" if states["silent"] else "leases"))


def describe_desertion(pool: PoolRow) -> Headline:
    """Say why a pool's work waits, and what to do."""
    there = Counter(worker.state for worker in pool.workers)
    states = " and ".join(f"{there[state]} {words}" for state, words in STOPPED.items() if there[state])
    claim = SAID.write("stopped" if there else "deserted", pool=pool.name, n=pool.n_waiting, states=states)
    return Headline(claim, SAID.write("start_another" if there else "start"))


def describe_timelines(lines: Sequence[EndpointTimeline]) -> Headline:
    """Return the newest rotation of all endpoints, and what changed in it."""
    turns = [turn for line in lines for turn in line.turns]
    if not turns:
        return Headline(SAID.write("none_rotated"), SAID.write("one_server"))
    last = max(turns, key=lambda turn: (turn.at, turn.id))
    where = ", ".join(filter(None, (last.endpoint, last.profile)))
    what = [SAID.write("moved", moved=render_moved(last.moved))] if last.moved else []
    return Headline(
        SAID.write("last", where=f"on {where}", seen=_shown_by(last)), " ".join([*what, SAID.write("apart")])
    )


def describe_difference(fields: ManifestDifference, *, is_same: bool) -> Headline:
    """Say what differs between two fingerprints, and how much does not."""
    if is_same:
        return Headline(SAID.write("same"), SAID.write("nothing"))
    neither = f", {len(fields.unknown)} unknown on both sides" if fields.unknown else ""
    facts = {"n": len(fields.equal), "neither": neither, "n_moved": len(fields.moved)}
    if not fields.moved:
        return Headline(SAID.write("none_known"), SAID.write("equal", facts))
    return Headline(SAID.write("fields", moved=render_moved(fields.moved)), SAID.write("n_moved", facts))


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
        return Headline(words, SAID.write("paused"))
    who = _describe_who_answers(report, was_probed=was_probed, is_named=is_named)
    amiss = _describe_loss(report, hops) or _describe_ignored(check)
    lowered = f"{who.claim[:1].lower()}{who.claim[1:]}"
    claim = SAID.write("and", amiss=amiss, who=lowered) if amiss else who.claim
    return Headline(claim, f"{who.rest} {SAID.write('expired', n=n_expired)}" if n_expired else who.rest)


def _describe_loss(report: EndpointReport, hops: Sequence[ProbeHop]) -> str:
    """Say what the gateway breaks, each thing once; "" if nothing."""
    words = describe_losses(loss for hop in hops if hop.gateway == report.slug for loss in hop.losses)
    return SAID.write("loses", losses=words) if words else ""


def _describe_ignored(check: Probe | None) -> str:
    rows = [row for row in _rows_of(check) if row["state"] == "ignored" and row["parameter"] not in GIVEN_BESIDE]
    names = [LABELS.get(row["parameter"], row["parameter"]) for row in rows]
    n_more = len(names) - NAMES_SHOWN
    shown = [*names[:NAMES_SHOWN], f"{n_more} more"] if n_more > 1 else names
    return SAID.write("ignores", names=listed(shown)) if names else ""


def _describe_who_answers(report: EndpointReport, *, was_probed: bool, is_named: bool) -> Headline:
    last, rest = report.last, _rotation_words(report)
    n = last.n_responses
    if not n:
        if was_probed:
            return Headline(SAID.write("no_run"), f"{SAID.write('probes' if is_named else 'first_run')} {rest}")
        return Headline(SAID.write("nothing_yet"), SAID.write("first_run"))
    known = [each for each in last.backends if each.fingerprint is not None]
    if not last.backends:
        return Headline(SAID.write("no_answer", n=n), SAID.write("errors"))
    if not known:
        return Headline(SAID.write("not_named"), f"{SAID.write('none_says', n=n)} {rest}")
    if len(last.backends) > 1:
        shares = ", ".join(f"{_stack_name(each)} {share(each.share)}" for each in last.backends)
        return Headline(SAID.write("several", n=len(last.backends), shares=shares), f"{SAID.write('separate')} {rest}")
    return Headline(SAID.write("one", name=_stack_name(known[0])), f"{SAID.write('gave', n=n)} {rest}")


def _stack_name(seen: BackendSeen) -> str:
    return seen.fingerprint.title if seen.fingerprint else "unknown"


def _rotation_words(report: EndpointReport) -> str:
    turn = report.rotated
    if turn is None:
        return SAID.write("not_seen")
    under = f", under {turn.profile}" if turn.profile else ""
    return SAID.write("last", where=f"on {turn.at.astimezone(UTC):%Y-%m-%d}{under}", seen=_shown_by(turn))


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

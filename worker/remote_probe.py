"""Make the calls of a probe to an external server, each of which names its backend."""

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

from evalboard.calling.calls import Answered, CallOutcome, DecodeRequest, EndpointRefused, EndpointRests
from evalboard.contract.probe_kinds import OF_EXTERNAL_SERVERS, ProbeKind
from evalboard.core.probes import TOOLS, WITH_TOOLS, ProbeExchange, choose_sampling, select_needed_calls
from evalboard.core.profile import parse_profile
from evalboard.core.trace import Failed
from evalboard.importers.records import LoggedPositions, LoggedResponse
from runs.models import EndpointRecord
from runs.probes import ProbeWork, fail_probe, finish_probe, let_probe_rest, record_calls
from runs.served import bucket_of_answer
from runs.store import with_images
from runs.work import Lease, end_rest
from worker.calls import EndpointClient
from worker.heartbeat import Heartbeat
from worker.jobs import Station

LEFT_OUT = "call_failed: The call was left out."
NO_SEED = "call_refused: The server refuses a seed, so the call went without one."
ADDRESS = "base_url"  # the same for every answer, so it identifies no backend


class RemoteProbes:
    """Works on probes that need no engine: the one that is warm stays so."""

    def __init__(self, station: Station) -> None:
        self._station = station

    def work(self, lease: Lease, work: ProbeWork, heartbeat: Heartbeat) -> None:
        """Ask what is left of a probe. Raises LeaseLost, and Interrupted where the work must end."""
        endpoint = work.serving.endpoint
        self._station.note(f"Probes endpoint {endpoint.slug} ({work.kind}).")
        try:
            self._ask(lease, work, heartbeat)
        except EndpointRefused as refusal:
            self._station.check(heartbeat)
            heartbeat.persist(partial(fail_probe, lease=lease, reason=refusal.detail))
        except EndpointRests as rest:
            self._station.check(heartbeat)
            step = partial(let_probe_rest, reason=rest.detail, seconds=rest.seconds, n_failures=rest.n_failures)
            heartbeat.persist(partial(step, lease=lease))
        else:
            heartbeat.persist(partial(finish_probe, lease=lease))
        self._station.note("")

    def _ask(self, lease: Lease, work: ProbeWork, heartbeat: Heartbeat) -> None:
        """Store the answers round by round. Raises EndpointRefused or EndpointRests."""
        calls, endpoint = self._station.calls, work.serving.endpoint
        is_check = work.kind == ProbeKind.CAPABILITY
        is_alone = parse_profile(work.serving.profile_settings).batch_class == "alone"
        answered = list(work.answered)
        client = calls.open_for(endpoint, is_alone=is_alone, learns=not is_check)
        try:
            for planned in work.rounds:
                wanted = select_needed_calls(planned, answered) if is_check else list(planned)
                outcomes = _outcomes(client, work, wanted, answered)
                self._station.check(heartbeat)
                answers = heartbeat.persist(partial(self._read, work, wanted, outcomes))
                heartbeat.persist(partial(record_calls, lease=lease, calls=answers))
                answered += answers
        except EndpointRefused:
            calls.discard(client)
            raise
        if not all(call.error for call in answered):
            end_rest(endpoint_id=endpoint.pk)

    def _read(
        self, work: ProbeWork, wanted: Sequence[ProbeExchange], outcomes: Mapping[int, CallOutcome]
    ) -> list[ProbeExchange]:
        """Return the calls with their answers, and with the bucket of each answer's backend."""
        endpoint = work.serving.endpoint
        called = [replace(call, worker=self._station.worker.pk, is_remote=True) for call in wanted]
        return [_with_answer(call, outcomes.get(place), endpoint, work.kind) for place, call in enumerate(called)]


def _outcomes(
    client: EndpointClient, work: ProbeWork, wanted: Sequence[ProbeExchange], answered: Sequence[ProbeExchange]
) -> dict[int, CallOutcome]:
    """Return the result of each call, by its place."""
    requests = [_request(place, call, work, answered) for place, call in enumerate(wanted)]
    with closing(client.decode(requests)) as outcomes:
        return {outcome.case_index: outcome for outcome in outcomes}


def _request(place: int, call: ProbeExchange, work: ProbeWork, answered: Sequence[ProbeExchange]) -> DecodeRequest:
    # Such a probe states all that it asks; neutral values of a profile would be asked as well.
    is_whole = work.kind in OF_EXTERNAL_SERVERS
    from_profile = {} if is_whole else parse_profile(work.serving.profile_settings).sampling
    sampling: dict[str, Any] = {
        **from_profile,
        **choose_sampling(work.kind, work.parameters, call.group, answered),
    }
    sampling.pop("reasoning_tags", None)
    if call.seed is not None:
        sampling["seed"] = call.seed
    has_tools = work.kind == ProbeKind.VENDOR and call.group in WITH_TOOLS
    tools = [*TOOLS] if has_tools else None
    messages = with_images(work.prompts[call.prompt])
    return DecodeRequest(case_index=place, messages=messages, sampling=sampling, tools=tools)


def _with_answer(
    call: ProbeExchange, outcome: CallOutcome | None, endpoint: EndpointRecord, kind: str
) -> ProbeExchange:
    if isinstance(outcome, Failed):
        return replace(call, error=f"{outcome.code}: {outcome.detail}")
    if not isinstance(outcome, Answered):
        return replace(call, error=LEFT_OUT)
    response, facts = outcome.response, outcome.call
    if response.error:
        return replace(call, error=f"no_answer: {response.error}")
    if kind == ProbeKind.SEED and call.seed is not None and "seed" in facts.left_out:
        return replace(call, error=NO_SEED)
    positions, served_by = response.positions, response.served_by
    retried = ("retried",) if facts.n_tries > 1 else ()
    bucket = bucket_of_answer(endpoint, served_by)
    answered = replace(
        call,
        token_ids=tuple(positions.token_ids.tolist()) if positions and positions.has_ids else (),
        text=_whole_text(response),
        finish_reason=response.finish_reason,
        top=_top(positions) if positions else (),
        bucket=None if bucket is None else bucket.pk,
        backend="" if served_by.key_from == ADDRESS else served_by.key,
        system_fingerprint=served_by.system_fingerprint,
        n_tokens=facts.n_tokens,
        n_prompt_tokens=facts.n_prompt_tokens,
        n_reasoning_tokens=facts.n_reasoning_tokens,
        n_cached_tokens=facts.n_cached_tokens,
        left_out=facts.left_out,
        clock_ahead=facts.clock_ahead,
        marks=tuple(dict.fromkeys((*response.flags, *retried))),
    )
    return replace(answered, **_answer_as_sent(outcome, call.group)) if kind == ProbeKind.VENDOR else answered


def _answer_as_sent(outcome: Answered, group: str) -> dict[str, Any]:
    """Return what a vendor probe reads of an answer: its tool calls, its model, its time.

    What must be JSON is read without the thinking, and all else with it, as other probes do.
    """
    body = outcome.exchange.body if outcome.exchange is not None else {}
    message = body["choices"][0].get("message") or {}  # `read_answer` has seen to the choice
    listed = message.get("tool_calls") or []
    functions = [call["function"] for call in listed if isinstance(call, Mapping) and "function" in call]
    called = [(each.get("name"), each.get("arguments")) for each in functions if isinstance(each, Mapping)]
    facts = outcome.call
    return {
        **({"text": outcome.response.text} if group == "schema" else {}),
        "tool_calls": tuple((_as_text(name), _as_text(arguments)) for name, arguments in called),
        "model": facts.model_reported,
        "seconds": (facts.ended_at - facts.started_at).total_seconds(),
    }


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def _whole_text(response: LoggedResponse) -> str:
    """Return the whole response including thinking, which counts for a probe."""
    return f"{response.reasoning or ''}{response.text}"


def _top(positions: LoggedPositions) -> tuple[tuple[str, float], ...]:
    """Return the first position's alternatives by text, without non-finite logprobs."""
    alternatives = positions[0].alternatives
    return tuple(
        (token.decode("utf-8", "backslashreplace"), logprob)
        for token, logprob in alternatives
        if math.isfinite(logprob)
    )

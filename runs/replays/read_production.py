"""Replays under the settings of production: which settings these were, and what came out."""

import base64
from dataclasses import dataclass
from typing import Any

from evalboard.contract import replay as contract
from evalboard.core.fields import SAMPLING_FIELDS
from evalboard.core.suite import ChatBody, read_chat_body
from evalboard.core.trace import TokenTrace, read_trace
from evalboard.wording.production import ProductionRequest
from runs.models import Case, EngineProcess, ReplayRecord
from runs.pairs import stored_words
from runs.replays.recorded import read_run_response
from runs.run import TraceWindow, show_trace, window_of


@dataclass(frozen=True, slots=True)
class DecodedPage:
    """A replay's page, besides its row. result: the first with an answer; None before there is one.

    process: that gave it. window: its tokens, None without any. messages: the prompt as sent.
    """

    result: dict[str, Any] | None
    process: EngineProcess | None
    window: TraceWindow | None
    messages: tuple[dict[str, Any], ...]


def describe_production(replay: ReplayRecord, *, has_trace: bool) -> contract.Production | None:
    """Return production's settings with the answer; None for a replay under its run's own.

    has_trace: include every token, which lists leave out.
    """
    if not replay.is_production:
        return None
    chat = chat_of(replay)
    return contract.Production(
        endpoint=replay.endpoint.slug,
        profile=replay.profile.slug,
        profile_version=replay.profile.version,
        model=(chat.model if chat else "") or None,
        not_sent=chat.not_sent if chat else (),
        from_profile=_from_profile(chat),
        answer=_answer(replay, has_trace=has_trace),
    )


def describe_request(replay: ReplayRecord) -> ProductionRequest | None:
    """Return the request for a replay's sentences; None under its run's own settings."""
    if not replay.is_production:
        return None
    chat, settings = chat_of(replay), replay.profile.settings
    sampling = {**settings["sampling"], **(chat.sampling if chat else {})}
    return ProductionRequest(
        profile=str(replay.profile),
        own_profile=None if replay.run is None else str(replay.run.profile),
        not_sent=chat.not_sent if chat else (),
        changes_tokens=chat.changes_tokens if chat else (),
        from_profile=_from_profile(chat),
        temperature=sampling["temperature"],
        is_seeded=chat is None or "seed" in chat.sampling,
        has_limit=chat is None or chat.max_tokens is not None,
        has_tools=chat is not None and chat.tools is not None,
        batch_class=settings["batch_class"],
    )


def replay_page(replay_id: int, *, at: int | None = None) -> DecodedPage:
    """Read a replay's answer with its tokens around position `at`, by default the smallest margin."""
    replay = ReplayRecord.objects.select_related("run__profile", "profile").get(pk=replay_id)
    first = _first_answer(replay)
    chat = chat_of(replay)
    if chat is not None:
        messages = chat.messages
    else:
        assert replay.run is not None and replay.case_index is not None  # noqa: S101, PT018  it has a case or a body
        case = Case.objects.get(suite_version=replay.run.suite_version_id, index=replay.case_index)
        messages = tuple(case.content["messages"])
    if first is None:
        return DecodedPage(None, None, None, messages)
    result, trace = first
    process = _process(result)
    words = None if process is None or process.vocabulary_id is None else stored_words(process.vocabulary_id)
    return DecodedPage(result, process, window_of(trace, words, at) if trace else None, messages)


def chat_of(replay: ReplayRecord) -> ChatBody | None:
    """Return the request of production that a replay decodes, None where it decodes a case of a run."""
    return None if replay.body is None else read_chat_body(replay.body)


def _from_profile(chat: ChatBody | None) -> tuple[str, ...]:
    if chat is None:
        return ()
    return tuple(name for name in SAMPLING_FIELDS if name not in chat.sampling and name != "logprobs")


def _answer(replay: ReplayRecord, *, has_trace: bool) -> contract.ProductionAnswer | None:
    result = next((each for each in replay.results if not each["error"]), None)
    if result is None:
        return None
    first, process = _first_answer(replay) if has_trace else None, _process(result)
    words = None if process is None or process.vocabulary_id is None else stored_words(process.vocabulary_id)
    return contract.ProductionAnswer(
        text=result["text"],
        bucket=result["bucket"],
        sampling=result["sampling"],
        engine={} if process is None else process.manifest.get("engine", {}),
        trace=None if first is None or first[1] is None else show_trace(first[1], words),
    )


def _first_answer(replay: ReplayRecord) -> tuple[dict[str, Any], TokenTrace | None] | None:
    """Return the first result with an answer, and its trace.

    The trace may be the run's response's. It is None where that was deleted.
    """
    result = next((each for each in replay.results if not each["error"]), None)
    if result is None or result["trace"] is not None:
        return None if result is None else (result, read_trace(base64.b64decode(result["trace"]), 0))
    response = None
    if replay.repeat_id is not None and replay.case_index is not None:
        response = read_run_response(replay.repeat_id, replay.case_index)
    is_equal = response is not None and response.trace.digest.hex() == result["trace_digest"]
    return result, response.trace if response is not None and is_equal else None


def _process(result: dict[str, Any]) -> EngineProcess | None:
    return (
        EngineProcess.objects.select_related("bucket__model", "bucket__fingerprint", "worker")
        .filter(pk=result["engine_process"])
        .first()
    )

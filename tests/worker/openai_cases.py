"""Endpoints, requests and engines for the tests of calls to servers of others."""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from evalboard.calling.calls import Answered, CallOutcome, DecodeRequest
from evalboard.core.trace import Failed
from runs.models import EndpointRecord
from tests.scripted import ScriptedServer
from worker.engines.openai import OpenAIEngine

SAMPLING = {
    "temperature": 0.0,
    "top_p": 1.0,
    "top_k": 0,
    "min_p": 0.0,
    "seed": 42,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "min_tokens": 0,
    "ignore_eos": False,
    "skip_special_tokens": True,
    "logprobs": 2,
    "max_tokens": 32,
    "stop": [],
}


class NoChance(random.Random):
    """Draws no wait at all."""

    def uniform(self, a: float, b: float) -> float:
        return a


def an_endpoint(server: ScriptedServer, **fields: Any) -> EndpointRecord:
    """An endpoint, not stored, at a scripted server."""
    given = {"slug": "theirs", "engine": "openai", "model_repo": "their-model", "base_url": server.base_url}
    return EndpointRecord(**given | fields)


def questions(n: int, **sampling: Any) -> list[DecodeRequest]:
    """n cases, each with a question of its own."""
    return [
        DecodeRequest(
            case_index=index,
            messages=[{"role": "user", "content": f"Question {index}?"}],
            sampling=SAMPLING | sampling,
        )
        for index in range(n)
    ]


@contextmanager
def opened(
    server: ScriptedServer,
    *,
    concurrency: int = 1,
    response_seconds: float = 60.0,
    first_byte_seconds: float | None = None,
    waits: list[float] | None = None,
    learns: bool = True,
    **fields: Any,
) -> Iterator[OpenAIEngine]:
    """An engine at a scripted server that draws no waits; of those that a server wants, `waits` is told in place."""
    engine = OpenAIEngine(
        an_endpoint(server, **fields),
        response_seconds=response_seconds,
        first_byte_seconds=first_byte_seconds,
        concurrency=concurrency,
        learns=learns,
        randomness=NoChance(),
        sleep=None if waits is None else waits.append,
    )
    engine.open()
    try:
        yield engine
    finally:
        engine.stop()


def decode(
    server: ScriptedServer, requests: Sequence[DecodeRequest] | None = None, **options: Any
) -> list[CallOutcome]:
    """The outcomes of these cases in their order; of one case without any."""
    with opened(server, **options) as engine:
        outcomes = list(engine.decode(questions(1) if requests is None else requests))
    return sorted(outcomes, key=lambda outcome: outcome.case_index)


def answered(outcome: CallOutcome) -> Answered:
    assert isinstance(outcome, Answered), outcome
    return outcome


def failed(outcome: CallOutcome) -> Failed:
    assert isinstance(outcome, Failed), outcome
    return outcome

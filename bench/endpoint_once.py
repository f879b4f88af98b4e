"""Calls to one server, by the product's caller with its slots and by bare httpx.

Arguments: port, calls in flight, calls, rounds. DATABASE_URL names a migrated database.

Prints the seconds of each round as JSON, and the process's peak memory. Without rounds of httpx where more than 8
are in flight: then memory is what is measured.
"""

import json
import resource
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import django
import httpx

QUESTION = [{"role": "user", "content": "Why is the sky blue? " * 20}]
BODY = {"model": "m", "messages": QUESTION, "temperature": 0, "seed": 42, "logprobs": True, "top_logprobs": 2}


def call_ours(port: int, in_flight: int, n: int) -> float:
    from evalboard.calling.calls import Answered, DecodeRequest
    from runs.models import EndpointRecord
    from runs.work import CallLimits
    from tests import build
    from worker.engines.openai import OpenAIEngine

    def requests() -> Iterator[DecodeRequest]:
        for index in range(n):
            sampling = {"temperature": 0.0, "seed": 42, "logprobs": 2, "max_tokens": 128, "stop": []}
            yield DecodeRequest(case_index=index, messages=QUESTION, sampling=sampling)

    address = f"http://127.0.0.1:{port}/v1"
    settings = {"engine": "openai", "model_repo": "m", "base_url": address, "concurrency": in_flight}
    endpoint, _ = EndpointRecord.objects.get_or_create(slug=f"b-{port}", defaults=settings)
    limits = CallLimits(endpoint, worker=build.worker(f"{port}-{time.monotonic_ns()}"), is_alone=False)
    engine = OpenAIEngine(endpoint, response_seconds=60.0, concurrency=in_flight, limits=limits)
    engine.open()
    began = time.perf_counter()
    for outcome in engine.decode(requests()):
        assert isinstance(outcome, Answered), outcome
        assert outcome.response.positions is not None
    seconds = time.perf_counter() - began
    engine.stop()
    return seconds


def call_bare(port: int, in_flight: int, n: int) -> float:
    limits = httpx.Limits(max_connections=in_flight, max_keepalive_connections=in_flight)
    with httpx.Client(limits=limits, timeout=60.0, trust_env=False) as client, ThreadPoolExecutor(in_flight) as threads:
        url = f"http://127.0.0.1:{port}/v1/chat/completions"
        client.get(url.removesuffix("/chat/completions") + "/models")

        def call(_: int) -> None:
            client.post(url, json=BODY).json()

        began = time.perf_counter()
        list(threads.map(call, range(n)))
        return time.perf_counter() - began


def main() -> None:
    port, in_flight, n, n_rounds = map(int, sys.argv[1:])
    django.setup()
    ours, bare = [], []
    for _ in range(n_rounds):
        if in_flight <= 8:
            bare.append(call_bare(port, in_flight, n))
        ours.append(call_ours(port, in_flight, n))
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"ours": ours, "bare": bare, "peak_mb": peak_mb}))


if __name__ == "__main__":
    main()

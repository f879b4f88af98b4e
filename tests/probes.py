"""Probes brought to their end through the services, with the answers that a test wants an engine to have given."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from evalboard.contract.probe_kinds import OF_EXTERNAL_SERVERS
from evalboard.core.probes import ProbeExchange, select_needed_calls
from runs.models import BucketRecord, EndpointRecord, EngineProcess, ProbeRecord, ProfileRecord, WorkerRecord
from runs.probes import claim_probe, create_probe, finish_probe, record_calls
from runs.probes.read import probe_work
from runs.served.backends import bucket_of, model_of
from tests import build
from tests.vendors import honest

Answer = Callable[[ProbeExchange], ProbeExchange]


def ask(
    kind: str = "seed", *, on: str = "local", parameters: Mapping[str, Any] | None = None, user: Any = None
) -> ProbeRecord:
    """A queued probe; endpoint and profiles are made where they are not there. Only a remote one has capabilities."""
    if kind in OF_EXTERNAL_SERVERS and on == "local":
        on = remote("hosted")
    if not EndpointRecord.objects.filter(slug=on).exists():
        build.endpoint(on)
    for slug in ("pinned", "fast"):
        if not ProfileRecord.objects.filter(slug=slug).exists():
            build.profile(slug)
    return create_probe(endpoint=on, kind=kind, parameters=parameters or {}, user=user)


def remote(slug: str = "hosted", **changes: Any) -> str:
    """An endpoint that others run; nothing is called."""
    known = {"engine": "openai", "base_url": "http://127.0.0.1:9/v1", "model_repo": "paint-1b", "line": "paint"}
    others = {"dtype": "", "max_model_len": None}
    return EndpointRecord.objects.get_or_create(slug=slug, defaults={**known, **others, **changes})[0].slug


def served_by_others(answer: Answer) -> ProbeRecord:
    """Answer the oldest claimable probe of a server of others as a worker without an engine process would."""
    worker = WorkerRecord.objects.filter(name="prober").first() or build.worker("prober")
    lease = claim_probe(worker=worker)
    assert lease is not None
    work = probe_work(lease.id, worker_id=worker.pk)
    answered: list[ProbeExchange] = []
    for calls in work.rounds:
        wanted = select_needed_calls(calls, answered) if work.kind == "capability" else calls
        answers = [_named(replace(answer(call), worker=worker.pk, is_remote=True)) for call in wanted]
        record_calls(lease=lease, calls=answers)
        answered += answers
    finish_probe(lease=lease)
    return ProbeRecord.objects.get(pk=lease.id)


def _named(call: ProbeExchange) -> ProbeExchange:
    return replace(call, bucket=backend(call.backend).pk) if call.backend else call


def backend(name: str) -> BucketRecord:
    """The bucket of what a header names so."""
    known = (("backend", name), ("backend_from", "x-evalboard-backend"), ("model_reported", "paint-1b"))
    return bucket_of(model_of("paint-1b"), known)


def served(answer: Answer, *, rounds: int | None = None, by: EngineProcess | None = None) -> ProbeRecord:
    """Answer the oldest claimable probe as a worker would, all of it or only its first `rounds`.

    by: its engine process; its oldest one unless given.
    """
    worker = WorkerRecord.objects.filter(name="prober").first() or build.worker("prober")
    process = by or EngineProcess.objects.filter(worker=worker).first() or build.process(worker=worker)
    lease = claim_probe(worker=worker)
    assert lease is not None
    bucket = process.bucket
    assert bucket is not None
    by = {"worker": worker.pk, "engine_process": process.pk, "bucket": bucket.pk}
    for calls in probe_work(lease.id, worker_id=worker.pk).rounds[:rounds]:
        answered = [replace(answer(call), fingerprint=bucket.fingerprint.digest, **by) for call in calls]
        record_calls(lease=lease, calls=answered)
    if rounds is None:
        finish_probe(lease=lease)
    return ProbeRecord.objects.get(pk=lease.id)


def alike(call: ProbeExchange) -> ProbeExchange:
    """Every call has the same answer."""
    return replace(call, text="blue", token_ids=(1, 0), finish_reason="stop", batch_max=4)


def honoured(call: ProbeExchange) -> ProbeExchange:
    """A seed decides the answer, and nothing else does."""
    ids = tuple(((call.seed or 0) * 7919 + call.prompt * 31 + place * (call.seed or 0)) % 9973 for place in range(12))
    return replace(call, text=f"seed {call.seed}", token_ids=ids, finish_reason="length", batch_max=1)


def ignored() -> Answer:
    """No two calls have the same answer, whatever their seeds."""
    numbers = count()

    def answer(call: ProbeExchange) -> ProbeExchange:
        n = next(numbers)
        ids = tuple((n * 7919 + place * (n + 3)) % 9973 for place in range(12))
        return replace(call, text=f"answer {n}", token_ids=ids, finish_reason="length", batch_max=1)

    return answer


def moved_by_batching(every: int) -> Answer:
    """Each so many-th copy goes another way at its second token, the others all say "blue"."""
    numbers = count(1)

    def answer(call: ProbeExchange) -> ProbeExchange:
        is_other = call.group == "copy" and next(numbers) % every == 0
        ids, words = ((1, 2, 0), "blue red") if is_other else ((1, 0), "blue")
        return replace(call, text=words, token_ids=ids, finish_reason="stop", batch_max=12)

    return answer


def listing(*logprobs: float) -> Answer:
    """Every call lists these logprobs for its first token."""
    top = tuple(enumerate(logprobs, start=1))
    return lambda call: replace(call, text="blue", token_ids=(1,), top=top, finish_reason="length", batch_max=1)


def exact(call: ProbeExchange) -> ProbeExchange:
    """Every call has the same answer to the bit."""
    at = "2026-11-23T02:30:11.482+00:00"
    logprobs = (-0.5, -0.1)
    return replace(alike(call), trace_digest="aa", logprobs=logprobs, at=at)


def other_bits_from(place: int) -> Answer:
    """From this round on another token comes, "red"."""
    return lambda call: (
        exact(call) if call.round < place else replace(exact(call), text="red", token_ids=(2, 0), trace_digest="bb")
    )


def failed(words: str) -> Answer:
    return lambda call: replace(call, error=words)


def vendor_probed(slug: str, answer: Answer = honest, **fields: Any) -> ProbeRecord:
    """Return a finished vendor probe of a server of others. fields: of its endpoint."""
    ask("vendor", on=remote(slug, **fields))
    return served_by_others(answer)

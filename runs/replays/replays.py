"""Replays: requested, claimed by one statement, recorded by variant under a fence, ended.

A replay is claimed before any shard, because a person waits for it, and it changes nothing of its run.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from django.db import transaction
from django.db.models import F

from evalboard.core.compare import choose_shifts
from evalboard.core.errors import InvalidInput
from evalboard.core.profile import DTYPES, MAX_GROUP_SIZE, OBSERVED
from evalboard.core.suite import read_chat_body
from runs import acts
from runs.models import Case, EndpointRecord, ProfileRecord, ReplayRecord, RunRecord, WorkerRecord
from runs.run import named_endpoint, newest_profile
from runs.store import require_row, storable
from runs.work import Lease, Requests, lease_end, refuse_if_nobody_can, requests

MAX_VARIANTS = 32  # each may be a start of the engine, and a worker does nothing else meanwhile

REPLAYS = Requests(ReplayRecord, serving="")


def create_replay(
    *,
    run_id: int,
    case_id: str,
    repeat: int = 1,
    batch_sizes: Sequence[int] = (),
    dtypes: Sequence[str] = (),
    neighbours: int = 1,
    profile: str | None = None,
    user: Any = None,
) -> ReplayRecord:
    """Ask for one case of a run to be decoded again; a worker of the endpoint's pool finds the row.

    repeat: of the run, whose response the answers are held against; where it has none, that is said.
    batch_sizes, dtypes: each of one with each of the other; none: as the run decoded it.
    neighbours: so many different choices of the cases that fill a batch, at each size.
    profile: by whose newest version it is decoded, for the settings of production; None: by the run's own.
    Raises NotFound for a run or case that is not there, InvalidInput with fields, Conflict for a run that was read
    from a log or that others served, and ProfileRefused when every worker seen lately says that its hardware cannot
    honour the profile.
    """
    run = require_row(
        RunRecord.objects.select_related("suite_version", "endpoint", "profile").filter(pk=run_id),
        f"There is no run {run_id}.",
    )
    acts.require("replay", run)
    case = require_row(
        Case.objects.filter(suite_version=run.suite_version_id, case_id=case_id),
        f"The suite of run {run_id} has no case {case_id}.",
    )
    decoding = run.profile if profile is None else newest_profile(profile)
    repeat_row = run.repeats.filter(index=repeat).first()
    sizes, n_cases = sorted(set(batch_sizes)), run.suite_version.n_cases
    fields = _problems(sizes, dtypes, neighbours, n_cases=n_cases) | _profile_problems(decoding)
    if repeat_row is None:
        fields["repeat"] = f"Run {run_id} has the repeats 1 to {run.repeats.count()}."
    variants = [] if fields else _variants(sizes, dtypes, neighbours, n_cases=n_cases)
    if len(variants) > MAX_VARIANTS:
        fields["variants"] = f"These are {len(variants)} variants of the case; at most {MAX_VARIANTS} at a time."
    if fields or repeat_row is None:
        raise InvalidInput("The replay is not valid.", fields=fields)
    refuse_if_nobody_can(run.endpoint, decoding)
    place = {"run": run, "repeat": repeat_row, "case_index": case.index}
    return _store(run.endpoint, decoding, variants=variants, created_by=user, **place)


def create_body_replay(*, endpoint: str, profile: str, body: Any, user: Any = None) -> ReplayRecord:
    """Request the decoding of a production request on our endpoint under production's settings.

    body: of a chat completion, as an OpenAI client sends it; what it does not say of sampling, the profile says. Raises
    NotFound for names that do not exist, InvalidInput with fields, and ProfileRefused as `create_replay` does.
    """
    target, decoding = named_endpoint(endpoint), newest_profile(profile)
    fields = _profile_problems(decoding)
    if target.engine != EndpointRecord.Engine.VLLM:
        fields["endpoint"] = "No engine here decodes what it serves; name an endpoint of ours that has the weights."
    chat = read_chat_body(body)
    longest = target.max_model_len or 0
    if not fields and chat.max_tokens is not None and chat.max_tokens >= longest:
        words = f"Answers of {chat.max_tokens:,} tokens leave no room for a prompt in the endpoint's context of"
        fields["body.max_tokens"] = f"{words} {longest:,}."
    if fields:
        raise InvalidInput("The replay is not valid.", fields=fields)
    refuse_if_nobody_can(target, decoding)
    return _store(target, decoding, variants=[{}], created_by=user, body=body)


def _store(target: EndpointRecord, decoding: ProfileRecord, **fields: Any) -> ReplayRecord:
    with transaction.atomic():
        replay = ReplayRecord.objects.create(endpoint=target, profile=decoding, **fields)
        requests.ring_after_commit(target.pool)
    return replay


def claim_replay(
    *, worker: WorkerRecord, left_alone: frozenset[int] = frozenset(), left_replays: frozenset[int] = frozenset()
) -> Lease | None:
    """Claim the oldest claimable replay of the worker's pool, or None.

    left_alone: runs that the worker cannot serve under their own profiles; left_replays: those under others.
    """
    mine = ReplayRecord.objects.exclude(run__in=left_alone, profile=F("run__profile")).exclude(pk__in=left_replays)
    return REPLAYS.claim(mine, worker=worker)


def record_result(*, lease: Lease, result: Mapping[str, Any]) -> None:
    """Store what one variant gave, after those before it; that renews the lease. Raises LeaseLost.

    Called again with the same variant it stores nothing: a worker whose connection went away after the COMMIT sends
    its result once more.
    """
    with REPLAYS.locked(lease=lease) as replay:
        is_stored = any(each["variant"] == result["variant"] for each in replay.results)
        new = [] if is_stored else [_storable(result)]
        REPLAYS.write(lease=lease, results=[*replay.results, *new], lease_until=lease_end())


def finish_replay(*, lease: Lease) -> None:
    """End a replay after all its variants; it fails if none has an answer. Raises LeaseLost."""
    with REPLAYS.locked(lease=lease) as replay:
        errors = [result["error"]["detail"] for result in replay.results if result["error"]]
        if len(errors) < len(replay.results):
            REPLAYS.finish(lease=lease, status=ReplayRecord.Status.FINISHED, error="")
        else:
            error = errors[0] if errors else "No variant was decoded."
            REPLAYS.finish(lease=lease, status=ReplayRecord.Status.FAILED, error=error)


def _profile_problems(decoding: ProfileRecord) -> dict[str, str]:
    if decoding.settings.get("batch_class") == OBSERVED:
        return {"profile": "It was read from logs and lacks settings; choose a complete profile."}
    return {}


def _problems(sizes: Sequence[int], dtypes: Sequence[str], n_choices: int, *, n_cases: int) -> dict[str, str]:
    fields = {}
    if any(not 1 <= size <= MAX_GROUP_SIZE for size in sizes):
        fields["batch_sizes"] = f"Must be whole numbers from 1 to {MAX_GROUP_SIZE}."
    if any(dtype not in DTYPES for dtype in dtypes):
        fields["dtypes"] = f"Must be among {', '.join(DTYPES)}."
    if not 1 <= n_choices <= MAX_VARIANTS:
        fields["neighbours"] = f"Must be a whole number from 1 to {MAX_VARIANTS}."
    elif n_choices > 1 and max(sizes, default=1) < 2:
        fields["neighbours"] = "Only a batch has neighbours: give a batch size of at least 2."
    elif "batch_sizes" not in fields and (
        few := [size for size in sizes if choose_shifts(n_choices=n_choices, n_cases=n_cases, batch_size=size) is None]
    ):
        fields["neighbours"] = (
            f"The suite’s {n_cases} cases are too few for {n_choices} choices at batch size {few[0]}."
        )
    return fields


def _variants(sizes: Sequence[int], dtypes: Sequence[str], n_choices: int, *, n_cases: int) -> list[dict[str, Any]]:
    """Return variants by dtype, batch size and choice of neighbours, with those to compare adjacent."""
    variants: list[dict[str, Any]] = []
    for dtype, size in product(dict.fromkeys(dtypes) or (None,), sizes or (None,)):
        named: dict[str, Any] = {} if dtype is None else {"dtype": dtype}
        if size is None:
            variants.append(named)
            continue
        shifts = choose_shifts(n_choices=n_choices, n_cases=n_cases, batch_size=size) or [0]
        variants += [named | {"batch_size": size} | ({"neighbours": shift} if shift else {}) for shift in shifts]
    return variants


def _storable(result: Mapping[str, Any]) -> dict[str, Any]:
    error, text = result["error"], result.get("text")
    return {
        **result,
        "text": text and storable(text),
        "error": error and {**error, "detail": storable(error["detail"])},
    }

"""What a worker needs to know of a shard it has claimed, and of what an engine is to serve."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from django.db.models import QuerySet

from evalboard.core.profile import call_seed, order_key
from evalboard.core.trace import unpack_selection
from runs.models import Case, EndpointRecord, ProfileRecord, RepeatRecord, ResponseRecord, Shard


@dataclass(frozen=True, slots=True)
class CaseToDecode:
    """One case, with the seed that its call is to be sent."""

    index: int
    seed: int
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] | None
    is_done: bool


@dataclass(frozen=True, slots=True)
class Serving:
    """What an engine is to serve: a model of an endpoint, under a profile's settings.

    max_tokens: of the longest answer. The model is a path, or a repository with its revision; model_adapter is a LoRA
    adapter on it, or "".
    """

    endpoint: EndpointRecord
    model_path: str
    model_repo: str
    model_revision: str
    model_adapter: str
    profile_settings: dict[str, Any]
    max_tokens: int
    stop: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShardWork:
    """One shard's cases in the order in which they are decoded, and what with.

    is_restarted: each repeat of the run has an engine process of its own.
    """

    run_id: int
    run_created_at: datetime
    repeat_index: int
    n_repeats: int
    is_restarted: bool
    serving: Serving
    n_crashes: int
    n_rests: int
    cases: tuple[CaseToDecode, ...]


def shard_work(shard_id: int, *, decoding: ProfileRecord | None = None) -> ShardWork:
    """Return a shard's work; decoding: a profile in place of the run's, as a replay has it."""
    shard = Shard.objects.select_related(
        "repeat__run__suite_version", "repeat__run__endpoint", "repeat__run__profile"
    ).get(pk=shard_id)
    run = shard.repeat.run
    done = set(
        ResponseRecord.objects.filter(repeat=shard.repeat_id, case_index__range=(shard.first, shard.last)).values_list(
            "case_index", flat=True
        )
    )
    cases = Case.objects.filter(suite_version=run.suite_version_id, index__range=(shard.first, shard.last))
    if shard.repeat.cases is not None:
        chosen = np.flatnonzero(unpack_selection(bytes(shard.repeat.cases), run.suite_version.n_cases))
        cases = cases.filter(index__in=chosen.tolist())
    return ShardWork(
        run_id=run.pk,
        run_created_at=run.created_at,
        repeat_index=shard.repeat.index,
        n_repeats=run.repeats.count(),
        is_restarted=run.is_restarted,
        serving=serving_of(
            run.endpoint,
            decoding or run.profile,
            run.model_override,
            max_tokens=run.suite_version.max_tokens,
            stop=run.suite_version.stop,
        ),
        n_crashes=shard.n_crashes,
        n_rests=shard.n_rests,
        cases=tuple(
            case_to_decode(case, shard.repeat, decoding=decoding, is_done=case.index in done)
            for case in _in_order(cases, shard)
        ),
    )


def _in_order(cases: QuerySet[Case], shard: Shard) -> list[Case]:
    repeat, run = shard.repeat, shard.repeat.run
    ordered = list(cases.order_by("index"))
    if run.is_shuffled:
        ordered.sort(key=lambda case: order_key(run.pk, repeat=repeat.index, case_index=case.index))
    return ordered


def case_to_decode(
    case: Case, repeat: RepeatRecord, *, decoding: ProfileRecord | None = None, is_done: bool = False
) -> CaseToDecode:
    """Return a case as a repeat decodes it, under its run's profile or another one."""
    run = repeat.run
    sampling = (decoding or run.profile).settings["sampling"]
    return CaseToDecode(
        index=case.index,
        seed=call_seed(
            sampling,
            run_seed=run.seed,
            repeat=repeat.index,
            case_id=case.case_id,
            is_external=run.is_reported,
        ),
        messages=case.content["messages"],
        tools=case.content.get("tools"),
        is_done=is_done,
    )


def serving_of(
    endpoint: EndpointRecord,
    decoding: ProfileRecord,
    model: dict[str, Any] | None,
    *,
    max_tokens: int,
    stop: Sequence[str] = (),
) -> Serving:
    """Return what serves an endpoint under a profile. model: another checkpoint or adapter, as in a run."""
    return Serving(
        endpoint=endpoint,
        **endpoint.checkpoint(model),
        profile_settings=decoding.settings,
        max_tokens=max_tokens,
        stop=tuple(stop),
    )

"""What a worker needs to know of a shard it has claimed, and of what an engine is to serve."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from evalboard.core.profile import call_seed
from evalboard.core.trace import unpack_selection
from runs.models import Case, Endpoint, Repeat, Response, Run, Shard


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
    """What an engine is to serve, whoever asks: a model of an endpoint, under a profile's settings.

    max_tokens: of the longest answer. The model is a path, or a repository with its revision.
    """

    endpoint: Endpoint
    model_path: str
    model_repo: str
    model_revision: str
    profile_settings: dict[str, Any]
    max_tokens: int
    stop: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShardWork:
    """One shard's cases, and what they are decoded with."""

    run_id: int
    repeat_index: int
    n_repeats: int
    serving: Serving
    n_crashes: int
    cases: tuple[CaseToDecode, ...]


def shard_work(shard_id: int) -> ShardWork:
    shard = Shard.objects.select_related(
        "repeat__run__suite_version", "repeat__run__endpoint", "repeat__run__profile"
    ).get(pk=shard_id)
    run = shard.repeat.run
    done = set(
        Response.objects.filter(repeat=shard.repeat_id, case_index__range=(shard.first, shard.last)).values_list(
            "case_index", flat=True
        )
    )
    cases = Case.objects.filter(suite_version=run.suite_version_id, index__range=(shard.first, shard.last))
    if shard.repeat.cases is not None:
        chosen = np.flatnonzero(unpack_selection(bytes(shard.repeat.cases), run.suite_version.n_cases))
        cases = cases.filter(index__in=chosen.tolist())
    return ShardWork(
        run_id=run.pk,
        repeat_index=shard.repeat.index,
        n_repeats=run.repeats.count(),
        serving=_serving(run),
        n_crashes=shard.n_crashes,
        cases=tuple(case_to_decode(case, shard.repeat, is_done=case.index in done) for case in cases.order_by("index")),
    )


def case_to_decode(case: Case, repeat: Repeat, *, is_done: bool = False) -> CaseToDecode:
    """Return a case as a repeat decodes it; reads the repeat's run and its profile."""
    run = repeat.run
    return CaseToDecode(
        index=case.index,
        seed=call_seed(run.profile.settings["sampling"], run_seed=run.seed, repeat=repeat.index, case_id=case.case_id),
        messages=case.content["messages"],
        tools=case.content.get("tools"),
        is_done=is_done,
    )


def _serving(run: Run) -> Serving:
    other = run.model_override or {}
    return Serving(
        endpoint=run.endpoint,
        model_path=other.get("path", "") if other else run.endpoint.model_path,
        model_repo=other.get("repo", "") if other else run.endpoint.model_repo,
        model_revision=other.get("revision", "") if other else run.endpoint.model_revision,
        profile_settings=run.profile.settings,
        max_tokens=run.suite_version.max_tokens,
        stop=tuple(run.suite_version.stop),
    )

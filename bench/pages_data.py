"""Made-up pairs of runs for bench_pages, of any number of cases: answers of one small run, copied as rows.

Repeats end as they do for a worker, so that what is computed and kept at a run's end is.
"""

from dataclasses import dataclass

import numpy as np
from django.conf import settings
from django.db import connection
from django.db.models import F
from numpy.typing import NDArray

from evalboard.core.profile import DEFAULT_PROFILES
from evalboard.core.trace import Decoded
from runs.catalogue import create_endpoint, create_profile, store_default_policies
from runs.models import EngineProcess, RepeatRecord, ResponseRecord, RunRecord, Shard, TraceBlock
from runs.release import create_release
from runs.run import create_run
from runs.suites import push_suite
from runs.work import (
    bind_bucket,
    claim_shard,
    finish_shard,
    open_engine_process,
    record_outcomes,
    register_worker,
    rollup,
)
from tests import outcomes

SEED = 20261123
NAME = "bench-pages"
N_REPEATS = 5
N_ANSWERS = 16  # right ones, and as many wrong ones
FAILED, UNSTABLE = 0.2, 0.01  # of the cases

COPY = """
INSERT INTO runs_response (repeat_id, case_index, engine_process_id, trace_block_id, {names})
SELECT %s, chosen.place - 1, %s, block.copied, {kept}
  FROM unnest(%s::int[]) WITH ORDINALITY AS chosen (answer, place)
  JOIN runs_response old ON old.case_index = chosen.answer
  JOIN unnest(%s::bigint[], %s::bigint[]) AS block (original, copied) ON block.original = old.trace_block_id
 WHERE old.repeat_id = %s ORDER BY chosen.place
"""


@dataclass(frozen=True, slots=True)
class Judged:
    """A suite with two runs of it and the release that judges them."""

    suite: str
    baseline: int
    candidate: int
    release: int


@dataclass(frozen=True, slots=True)
class Template:
    """The answers that are copied, all of one repeat, and the blocks of their traces."""

    repeat: int
    blocks: tuple[TraceBlock, ...]


def make_template() -> Template:
    """Store a run of 2 × N_ANSWERS answers as a worker does; with it the endpoint and the profile of all others."""
    create_endpoint(
        slug=NAME, model_path=str(settings.MODEL_ROOTS[0] / "made-up"), dtype="float32", line=NAME, pool=NAME
    )
    create_profile(slug=NAME, title="Bench", settings=DEFAULT_PROFILES["pinned"]["settings"])
    store_default_policies()
    process = _serving("template")
    run = create_run(suite=_push("template", 2 * N_ANSWERS), endpoint=NAME, profile=NAME, repeats=1)
    bind_bucket(run_id=run.pk, bucket=process.bucket)
    while lease := claim_shard(worker=process.worker):
        shard = Shard.objects.get(pk=lease.id)
        record_outcomes(lease=lease, process=process, outcomes=[_answer(n) for n in range(shard.first, shard.last + 1)])
        finish_shard(lease=lease)
    return Template(RepeatRecord.objects.get(run=run).pk, tuple(run.trace_blocks.order_by("id")))


def make_judged(template: Template, n_cases: int) -> Judged:
    """Store two runs of n_cases × N_REPEATS, served alike but for the model, and a release on them."""
    slug = _push(f"{n_cases}", n_cases)
    rng = np.random.default_rng((SEED, n_cases))
    is_wrong = rng.random(n_cases) < FAILED
    baseline, candidate = (
        _run(template, slug, _serving(f"{n_cases}-{side}", model=side), is_wrong, rng) for side in ("a", "b")
    )
    gate = {"suite": slug, "baseline": baseline, "candidate": candidate}
    release = create_release(gates=[gate], policy="paired")
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    return Judged(slug, baseline, candidate, release.pk)


def _push(name: str, n_cases: int) -> str:
    slug = f"{NAME}-{name}"
    cases = [
        {"id": name_case(n), "prompt": f"Say blue, number {n}.", "target": "blue", "tags": [f"tag-{n % 10}"]}
        for n in range(n_cases)
    ]
    push_suite(document={"slug": slug, "title": slug, "scorer": {"kind": "exact"}, "cases": cases})
    return slug


def name_case(index: int) -> str:
    """Return the id of a case of any of the suites."""
    return f"case-{index:06}"


def _serving(name: str, *, model: str = "a") -> EngineProcess:
    worker = register_worker(name=f"{NAME}-{name}", host="bench", pid=0, pool=NAME, hardware={}, versions={})
    manifest = outcomes.manifest()
    weights = {"model.safetensors": {"size": 8, "sha256": f"{ord(model[0]):064x}"}}
    return open_engine_process(
        worker=worker,
        manifest=manifest | {"model": manifest["model"] | {"files": weights}},
        wanted_pins={},
        batch_class="alone",
        line=NAME,
        model_name=f"made-up-{model}",
        start_seconds=0.0,
    )


def _answer(number: int) -> Decoded:
    """The first half is right. Each has a trace of its own."""
    text = "blue" if number < N_ANSWERS else f"red {number}"
    return outcomes.decoded(number, text=text, logprob=-0.25 - number / 100)


def _run(
    template: Template, suite: str, process: EngineProcess, is_wrong: NDArray[np.bool_], rng: np.random.Generator
) -> int:
    run = create_run(suite=suite, endpoint=NAME, profile=NAME, repeats=N_REPEATS)
    bind_bucket(run_id=run.pk, bucket=process.bucket)
    RunRecord.objects.filter(pk=run.pk).update(status=RunRecord.Status.RUNNING, started_at=F("created_at"))
    blocks = {block.pk: _own(block, run) for block in template.blocks}
    usual = rng.integers(0, N_ANSWERS, len(is_wrong)) + N_ANSWERS * is_wrong
    for repeat in run.repeats.order_by("index"):
        is_flipped = rng.random(len(is_wrong)) < UNSTABLE / N_REPEATS
        chosen = np.where(is_flipped, (usual + N_ANSWERS) % (2 * N_ANSWERS), usual)
        _copy(template, repeat, process, blocks, chosen)
        repeat.engine_processes.add(process)
        repeat.shards.update(status=Shard.Status.FINISHED, attempt=1, n_done=F("last") - F("first") + 1)
        rollup.finish_repeat(repeat_id=repeat.pk)
    run.refresh_from_db()
    assert run.status == RunRecord.Status.FINISHED, run.status
    return run.pk


def _own(block: TraceBlock, run: RunRecord) -> int:
    return TraceBlock.objects.create(run=run, data=block.data, n_traces=block.n_traces, is_packed=True).pk


def _copy(
    template: Template, repeat: RepeatRecord, process: EngineProcess, blocks: dict[int, int], chosen: NDArray[np.int64]
) -> None:
    own = ("id", "repeat_id", "case_index", "engine_process_id", "trace_block_id")
    columns = [field.column for field in ResponseRecord._meta.concrete_fields if field.column not in own]
    names, kept = ", ".join(f'"{name}"' for name in columns), ", ".join(f'old."{name}"' for name in columns)
    places = [list(blocks), list(blocks.values())]
    with connection.cursor() as cursor:
        cursor.execute(
            COPY.format(names=names, kept=kept), [repeat.pk, process.pk, chosen.tolist(), *places, template.repeat]
        )

"""Made-up runs for bench_api: one is stored by the services, and copied as rows as often as is wanted."""

from typing import Any

from django.conf import settings
from django.db import connection, models
from django.db.models.functions import Now

from evalboard.core.profile import DEFAULT_PROFILES
from runs.catalogue import create_endpoint, create_profile
from runs.models import (
    CaseColumns,
    EngineProcess,
    RepeatRecord,
    RepeatScore,
    ResponseRecord,
    RunRecord,
    Shard,
    WorkerRecord,
)
from runs.run import create_run
from runs.suites import push_suite
from runs.work import bind_bucket, claim_shard, finish_shard, open_engine_process, record_outcomes, register_worker
from tests import outcomes

SUITE, ENDPOINT, PROFILE = "bench-api", "bench-api", "bench-api"
N_CASES, N_REPEATS = 20, 5
N_BRANCHES = 50
BODY = {"suite": SUITE, "endpoint": ENDPOINT, "profile": PROFILE, "repeats": N_REPEATS, "labels": {"branch": "new"}}
CHILDREN: tuple[type[models.Model], ...] = (Shard, RepeatScore, CaseColumns, ResponseRecord)


def make_runs(n: int) -> list[int]:
    """Store so many finished runs of 100 responses each; their ids, oldest first."""
    template = _template()
    with connection.cursor() as cursor:
        cursor.execute(_copied_runs(), [N_BRANCHES, n - 1, template.pk])
        cursor.execute(_copied(RepeatRecord, "run_id", "new.id", "runs_run new", "new.id > old.run_id"), [template.pk])
        # Else each key of a response is looked up by a plan made while these tables were empty: by reading all of them.
        cursor.execute("ANALYZE runs_run, runs_repeat")
        for model in CHILDREN:
            beside = "runs_repeat new JOIN runs_repeat mine ON mine.index = new.index"
            where = "mine.id = old.repeat_id AND new.run_id > mine.run_id"
            cursor.execute(_copied(model, "repeat_id", "new.id", beside, where, of="mine.run_id"), [template.pk])
        cursor.execute(
            "INSERT INTO runs_repeat_engine_processes (repeat_id, engineprocess_id) "
            "SELECT new.id, old.engineprocess_id FROM runs_repeat_engine_processes old "
            "JOIN runs_repeat mine ON mine.id = old.repeat_id "
            "JOIN runs_repeat new ON new.index = mine.index AND new.run_id > mine.run_id WHERE mine.run_id = %s",
            [template.pk],
        )
        cursor.execute("VACUUM ANALYZE")
    return list(RunRecord.objects.order_by("id").values_list("id", flat=True))


def set_at_work(run_ids: list[int]) -> None:
    """Make finished runs look as while they are at work: the last repeat's shards are running."""
    RunRecord.objects.filter(pk__in=run_ids).update(status=RunRecord.Status.RUNNING, finished_at=None)
    last = RepeatRecord.objects.filter(run__in=run_ids, index=N_REPEATS)
    Shard.objects.filter(repeat__in=last).update(status=Shard.Status.RUNNING, n_done=0, lease_until=Now())
    last.update(status=RepeatRecord.Status.RUNNING, finished_at=None)


def progress(run_ids: list[int], n_done: int) -> None:
    Shard.objects.filter(repeat__run__in=run_ids, repeat__index=N_REPEATS).update(n_done=n_done % N_CASES)


def _template() -> RunRecord:
    cases = [{"id": f"case-{n}", "prompt": "Say blue.", "target": "blue"} for n in range(N_CASES)]
    push_suite(document={"slug": SUITE, "scorer": {"kind": "exact"}, "cases": cases})
    path = str(settings.MODEL_ROOTS[0] / "made-up")
    create_endpoint(slug=ENDPOINT, model_path=path, dtype="float32", line="bench-api", pool="bench-api")
    create_profile(slug=PROFILE, title="Bench", settings=DEFAULT_PROFILES["pinned"]["settings"])
    worker, process = _serving()
    run = create_run(**{name: BODY[name] for name in ("suite", "endpoint", "profile", "repeats")})
    while lease := claim_shard(worker=worker):
        shard = Shard.objects.get(pk=lease.id)
        bind_bucket(run_id=run.pk, bucket=process.bucket)
        came = [outcomes.decoded(case) for case in range(shard.first, shard.last + 1)]
        record_outcomes(lease=lease, process=process, outcomes=came)
        finish_shard(lease=lease)
    run.refresh_from_db()
    assert run.status == RunRecord.Status.FINISHED, run.status
    return run


def _serving() -> tuple[WorkerRecord, EngineProcess]:
    pool = "bench-api"
    worker = register_worker(name=pool, host="bench", pid=0, pool=pool, hardware={}, versions={})
    process = open_engine_process(
        worker=worker,
        manifest=outcomes.manifest(),
        wanted_pins={},
        batch_class="alone",
        line="bench-api",
        model_name="made-up",
        start_seconds=0.0,
    )
    return worker, process


def _columns(model: type[models.Model], *without: str) -> list[str]:
    return [f'"{field.column}"' for field in model._meta.concrete_fields if field.column not in ("id", *without)]


def _copied_runs() -> str:
    """The template as often as is wanted, an hour apart in time, with labels of some branches."""
    names = _columns(RunRecord, "created_at", "ran_at", "labels")
    kept = ", ".join(f"old.{name}" for name in names)
    return (
        f"INSERT INTO runs_run (created_at, ran_at, labels, {', '.join(names)}) "  # noqa: S608  # names of our own columns
        "SELECT now() - number * interval '1 hour', now() - number * interval '1 hour', "
        f"jsonb_build_object('branch', 'b' || number %% %s), {kept} "
        "FROM runs_run old, generate_series(1, %s) number WHERE old.id = %s ORDER BY number DESC"
    )


def _copied(
    model: type[models.Model], parent: str, new: str, beside: str, where: str, *, of: str = "old.run_id"
) -> str:
    """INSERT that gives every new parent what the template's has."""
    names = _columns(model, parent)
    kept = ", ".join(f"old.{name}" for name in names)
    table = model._meta.db_table
    return (
        f"INSERT INTO {table} ({parent}, {', '.join(names)}) "  # noqa: S608  # names of our own tables and columns
        f"SELECT {new}, {kept} FROM {table} old, {beside} WHERE {where} AND {of} = %s"
    )


def n_stored() -> dict[str, Any]:
    return {"runs": RunRecord.objects.count(), "responses": ResponseRecord.objects.count()}

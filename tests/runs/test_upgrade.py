"""A database that version 0.1 wrote, brought to the present version: nothing is lost, and REST answers as it did.

tests/data/version_0.1 holds its rows (of something of everything) at migration 0016, and what version 0.1 answered on
them, by address: [status, body]. Both were recorded with that version's own code.
"""

import csv
import gzip
import importlib
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from evalboard.core.verdict import VERDICT_RULES
from runs.models import Event, Run
from tests import build
from tests.api.conftest import SCOPES, Api
from tests.recorded import DATA

VERSION = DATA / "version_0.1"
LAST_MIGRATION = "0016_scopes_at_birth"
CHANGES_BY_ITSELF = ("request_id", "eta_seconds")  # what no version answers twice alike
RULES_OF_0_1 = "verdict 1.6"
# Fields that later versions answer beside those of 0.1.
ADDED: tuple[str, ...] = (
    "ahead",
    "api",
    "at_flip",
    "at_flip_text",
    "auth",
    "backend",
    "base_url",
    "broken_by_chance",
    "bypass",
    "calls_per_minute",
    "capped_from",
    "chance",
    "chosen",
    "computation",
    "concurrency",
    "control",
    "extra_body",
    "fixed_by_chance",
    "headers",
    "hop",
    "is_beyond_chance",
    "is_in_turn",
    "is_restarted",
    "is_shuffled",
    "is_truncated",
    "leak",
    "length",
    "marks",
    "metric",
    "metrics",
    "metrics_left_out",
    "n_chosen",
    "n_reasoning_tokens",
    "noise_share",
    "order",
    "parts",
    "priority",
    "probe",
    "production",
    "reasoning",
    "reference",
    "rescores",
    "rest_reason",
    "rests_until",
    "sets",
    "settle_targeted",
    "settling_chance",
    "shown",
    "split",
    "start",
    "strays",
    "targeted",
    "targeted_settling",
)

# What rules of today judge where a comparison or a verdict is made again. Scores, counts and outcomes last.
JUDGED = ("cause", "clusters", "evidence", "ledger", "larger_shifts", "noise", "numeric", "series", "summary", "text")


@pytest.fixture(scope="module")
def upgraded(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """The database of an installation after `migrate`, beside the one that other tests use."""
    own = connection.settings_dict["NAME"]
    name = f"{own}_upgraded"
    with django_db_blocker.unblock():
        _execute(f'DROP DATABASE IF EXISTS "{name}"', f'CREATE DATABASE "{name}"')
        _connect_to(name)
        try:
            others = sorted(app.label for app in apps.get_app_configs() if app.label != "runs")
            call_command("migrate", "runs", LAST_MIGRATION, verbosity=0)
            for label in others:
                if label in MigrationExecutor(connection).loader.migrated_apps:
                    call_command("migrate", label, verbosity=0)
            rows = gzip.decompress((VERSION / "rows.sql.gz").read_bytes()).decode()
            _execute("SET session_replication_role = replica", rows, "SET session_replication_role = DEFAULT")
            call_command("migrate", verbosity=0)
            yield
        finally:
            _connect_to(own)
            _execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def _connect_to(name: str) -> None:
    connection.close()
    connection.settings_dict["NAME"] = name


def _execute(*statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@pytest.fixture
def answers() -> dict[str, Any]:
    """What version 0.1 answered, by address below /api/v1."""
    return json.loads(gzip.decompress((VERSION / "answers.json.gz").read_bytes()))  # type: ignore[no-any-return]


def test_rest_answers_as_version_0_1_did(upgraded: None, answers: dict[str, Any], settings: Any) -> None:
    settings.RATES = dict.fromkeys(settings.RATES, 0)
    api = Api(build.token(User.objects.get(username="admin"), *SCOPES))
    differing = {}
    for address, (status, body) in answers.items():
        response = api.get(address)
        content = b"".join(response.streaming_content) if response.streaming else response.content
        now: Any = content.decode() if isinstance(body, str) else json.loads(content)
        if isinstance(body, str) and (".csv" in address or ".jsonl" in address):  # by column: later versions add some
            body, now = _read_table(address, body), _read_table(address, now)
        is_made_again = address.startswith("/compare/")  # a comparison of another method is, when somebody asks
        if address.startswith("/compare/?"):
            body["finished_at"] = now["finished_at"]
        if VERDICT_RULES != RULES_OF_0_1 and address.startswith("/releases/") and "input_digest" in now:
            body |= {name: now[name] for name in ("input_digest", "decided_at")}  # so is a verdict of other rules
            now["warnings"] = [warning for warning in now["warnings"] if warning["code"] != "earlier_rules"]
            is_made_again = True
        before, after = (_lasting(each, is_made_again=is_made_again) for each in (body, now))
        if (response.status_code, after) != (status, before):
            differing[address] = _first_difference(before, after)
    assert differing == {}


PLACED = {
    "Repeat 2, cases 12–23: given back by node-1: why.": "given back by node-1: why.",
    "Repeat 2, cases 12–23, attempt 3 by node-1: The engine died: see here.": "The engine died: see here.",
    "Repeat 2, cases 12–23, attempt 3: worker node-1 lost.": "worker node-1 lost.",
    "Case case-003: No answer: none within 600 s.": "No answer: none within 600 s.",
    "The run ended: finished.": "",
}


def test_lines_of_old_histories_learn_what_they_say_of_their_cases(upgraded: None) -> None:
    """What an upgraded database shows of equal lines is one line, as before."""
    run = Run.objects.earliest("pk")
    lines = [Event.objects.create(run=run, code="old", text=text) for text in PLACED]
    migration = importlib.import_module("runs.migrations.0018_event_what")
    _execute(migration.SHARDS, migration.CASES)
    found = dict(Event.objects.filter(pk__in=[line.pk for line in lines]).values_list("text", "what"))
    assert found == PLACED
    known = Event.objects.filter(code="timeout").values_list("what", flat=True)
    assert {line.partition(" within")[0] for line in known} == {"No answer"}


def _read_table(address: str, text: str) -> list[Any]:
    if ".csv" in address:
        return list(csv.DictReader(io.StringIO(text, newline="")))
    return [json.loads(line) for line in text.splitlines()]


def _lasting(body: Any, *, is_made_again: bool) -> Any:
    passing = (*CHANGES_BY_ITSELF, *ADDED, *(JUDGED if is_made_again else ()))
    if isinstance(body, dict):
        return {
            name: _lasting(value, is_made_again=is_made_again) for name, value in body.items() if name not in passing
        }
    return [_lasting(each, is_made_again=is_made_again) for each in body] if isinstance(body, list) else body


def _first_difference(before: Any, now: Any, path: str = "") -> str:
    """Return where two answers part, and what stands there in each."""
    if isinstance(before, dict) and isinstance(now, dict) and before.keys() == now.keys():
        return next(
            _first_difference(before[key], now[key], f"{path}.{key}") for key in before if before[key] != now[key]
        )
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        at = next(at for at, (one, other) in enumerate(zip(before, now, strict=True)) if one != other)
        return _first_difference(before[at], now[at], f"{path}[{at}]")
    if isinstance(before, dict) and isinstance(now, dict):
        return f"{path}: fields {sorted(before.keys() ^ now.keys())}"
    return f"{path}: {before!r} became {now!r}"

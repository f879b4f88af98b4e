"""`evalboard endpoint`, against a server that is really there."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from django.conf import settings as site
from django.db.models.functions import Now

from evalboard.cli.endpoint import render_check
from evalboard.client.answers import parse
from evalboard.contract.probe import Probe
from evalboard.wording.probe_states import DAILY_CHECK_COST
from runs.models import EndpointRecord, ProbeRecord
from tests import build

Call = Callable[..., "CompletedProcess[str]"]
SECRET = "sk-proj-Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MA"
ADD = ("endpoint", "add", "mini", "--base-url", "https://api.example.com/v1", "--model", "gpt-mini")


@pytest.fixture(autouse=True)
def hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "ENDPOINT_HOSTS", frozenset(("*",)))


@pytest.fixture
def as_admin(transactional_db: None) -> dict[str, str]:
    return {"EVALBOARD_TOKEN": build.token(build.user("root", "admin"), "read", "run", "admin")}


def test_one_is_added_with_every_option_and_listed(evalboard: Call, as_admin: dict[str, str], tmp_path: Path) -> None:
    body = tmp_path / "body.json"
    body.write_text('{"provider": {"allow_fallbacks": false}}')
    more = ("--key-env", "MINI_API_KEY", "--header", "x-team: evals", "--header-env", "x-org: ORG_API_KEY")
    more += (
        "--extra-body",
        f"@{body}",
        "--concurrency",
        "2",
        "--line",
        "mini",
        "--api",
        "completions",
        "--rescore",
        "--daily-check",
    )
    added = evalboard(*ADD, *more, **as_admin)
    assert (added.returncode, added.stderr) == (0, "")
    assert "gpt-mini at https://api.example.com/v1, the key is read from MINI_API_KEY on the worker." in added.stdout
    words = "Pool default has no worker, so it was not checked. See what it honours: "
    assert f"{words}evalboard endpoint check mini --wait" in added.stdout
    assert f"It is checked daily from its first run or probe on. {DAILY_CHECK_COST}" in added.stdout
    row = EndpointRecord.objects.get()
    assert (row.auth, row.concurrency, row.line, row.api, row.rescores) == (
        "MINI_API_KEY",
        2,
        "mini",
        "completions",
        True,
    )
    assert row.headers == {"x-team": "evals", "x-org": {"env": "ORG_API_KEY"}}
    assert row.extra_body == {"provider": {"allow_fallbacks": False}}
    listed = evalboard("endpoint", "list")
    assert listed.stdout.split() == ["mini", "openai", "gpt-mini", "https://api.example.com/v1", "pool", "default"]
    [row_as_json] = json.loads(evalboard("endpoint", "list", "--json").stdout)
    assert row_as_json["auth"] == "MINI_API_KEY"


def test_a_model_that_workers_load_is_added_with_its_adapter(evalboard: Call, as_admin: dict[str, str]) -> None:
    base, adapter = (str(site.MODEL_ROOTS[0] / name) for name in ("paint-1b", "tone-v2"))
    own = ("endpoint", "add", "tone", "--model", base, "--adapter", adapter, "--dtype", "bfloat16")
    added = evalboard(*own, "--max-model-len", "4096", "--pipeline-parallel-size", "2", **as_admin)
    words = "Endpoint tone is there: adapter tone-v2 on paint-1b, bfloat16, loaded by the workers of pool default.\n"
    assert (added.returncode, added.stdout) == (0, words)
    row = EndpointRecord.objects.get()
    assert (row.line, row.max_model_len, row.sizes) == ("paint-1b", 4096, (1, 2))
    refused = evalboard(*own[:2], "mixed", *own[3:], "--base-url", "https://api.example.com/v1", **as_admin)
    assert (refused.returncode, "model.adapter" in refused.stderr) == (64, True)


def test_one_is_told_what_its_answers_mean(evalboard: Call, as_admin: dict[str, str]) -> None:
    evalboard(*ADD, **as_admin)
    assert (
        "no worker" not in evalboard(*(part.replace("mini", "tiny") for part in ADD), "--no-check", **as_admin).stdout
    )
    priced = evalboard("endpoint", "set", "mini", "--price", "input=2.50,output=10,cached=1.25", **as_admin)
    assert priced.stdout == "Endpoint mini: input 2.50, cached 1.25, output 10 USD for a million tokens.\n"
    assert EndpointRecord.objects.get(slug="mini").price["cached"] == "1.25"
    assert "the price is not known" in evalboard("endpoint", "set", "mini", "--price", "none", **as_admin).stdout
    refused = evalboard("endpoint", "set", "mini", "--price", "input=2.50", **as_admin)
    assert (refused.returncode, "Give input, output and currency" in refused.stderr) == (64, True)
    told = evalboard("endpoint", "set", "mini", "--ending", "done=complete", "--ignore-fingerprint", **as_admin)
    assert told.stdout == "Endpoint mini: done means complete, fingerprints are ignored.\n"
    assert EndpointRecord.objects.get(slug="mini").ignores_fingerprint
    assert "fingerprints are read" in evalboard("endpoint", "set", "mini", "--read-fingerprint", **as_admin).stdout
    assert not EndpointRecord.objects.get(slug="mini").ignores_fingerprint
    EndpointRecord.objects.filter(slug="mini").update(rests_until=Now() + timedelta(minutes=5))
    assert evalboard("endpoint", "try", "mini").stdout.startswith("The next call of mini goes at once. If it fails, ")
    assert EndpointRecord.objects.get(slug="mini").rests_until is None
    nothing = evalboard("endpoint", "set", "mini", **as_admin)
    assert (nothing.returncode, "Give what to set" in nothing.stderr) == (64, True)


def test_an_empty_list_says_how_to_begin(evalboard: Call, secret: str) -> None:
    assert evalboard("endpoint", "list").stdout == "There is no endpoint yet; evalboard endpoint add makes one.\n"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--key-env", SECRET), "never the key itself"),
        (("--key-env", "MINI_API_KEY", "--key-file", "/run/secrets/mini"), "one of the two"),
        (("--header", SECRET), "Name: value"),
        (("--header", f"Authorization: Bearer {SECRET}"), "headers.Authorization"),
        (("--extra-body", "[1]"), "Must be an object"),
        (("--extra-body", "{"), "not valid JSON"),
        (("--extra-body", "@/nowhere/body.json"), "cannot be read"),
        (("--api", "embeddings"), "api"),
        (("--bypass", "nobody"), "bypass"),
    ],
)
def test_what_is_no_endpoint_is_refused_and_no_key_repeated(
    evalboard: Call, as_admin: dict[str, str], more: tuple[str, ...], words: str
) -> None:
    refused = evalboard(*ADD, *more, **as_admin)
    assert refused.returncode == 64
    assert words in refused.stderr
    assert SECRET not in refused.stderr + refused.stdout
    assert not EndpointRecord.objects.exists()


def test_whoever_is_no_admin_adds_none(evalboard: Call, secret: str) -> None:
    assert evalboard(*ADD).returncode == 64
    assert not EndpointRecord.objects.exists()


def test_a_check_is_started_and_said_where_it_is(evalboard: Call, as_admin: dict[str, str]) -> None:
    build.profile("pinned")
    assert evalboard(*ADD, **as_admin).returncode == 0
    started = evalboard("endpoint", "check", "mini")
    [probe] = ProbeRecord.objects.all()
    assert (probe.kind, started.returncode) == ("capability", 0)
    assert started.stdout.startswith(f"Check {probe.pk} of mini, profile pinned: queued. http")


def test_an_ended_check_is_a_table() -> None:
    rows: list[dict[str, Any]] = [
        {"parameter": "seed", "asked": 7, "state": "ignored", "detail": {}},
        {"parameter": "top_k", "asked": 1, "state": "refused", "detail": {"words": "no such field"}},
    ]
    answer = {
        **{"id": "7", "endpoint": "mini", "kind": "capability", "profile": "pinned", "profile_version": 1},
        **{"status": "finished", "created_by": None, "created_at": "2026-11-20T00:00:00Z", "finished_at": None},
        **{"url": "https://board.example/probes/7/", "parameters": {}, "progress": {"n_done": 9, "n_total": 9}},
        **{"error": None, "workers": [], "waits_for": [], "sets": []},
        **{"expected_cost": None},
        "cost": {"amount": "0.00119", "currency": "USD", "n_calls": 9, "n_uncounted": 0, "text": "0.0012 USD"},
        "finding": {"state": "ignores", "sentence": "Silently ignored: seed.", "numbers": {"rows": rows}},
    }
    rows.append({"parameter": "logprobs", "asked": 20, "state": "refused", "detail": {"words": "not allowed"}})
    title, sentence, first, second, _, cost, advice, following = render_check(parse(Probe, answer, url="")).splitlines()
    assert cost == "It cost 0.0012 USD."
    assert advice.startswith("It does not take logprobs: use --profile hosted, which asks for none.")
    assert following.endswith("evalboard run sample --endpoint mini --profile hosted --wait")
    assert title == "Check 7 of mini, profile pinned: finished. https://board.example/probes/7/"
    assert sentence == "Silently ignored: seed."
    assert first.split()[:2] == ["seed", "ignored"]
    assert second.split()[:2] == ["top_k", "refused"]
    assert "no such field" in second

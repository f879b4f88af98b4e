"""A number made of two buckets says that it is pooled: at every address, in every command, export and message.

The pooled score of a run that two buckets served is 53.1, between the 70.0 of one and the 25.0 of the other. That of a
run that moved to another bucket for its last two repeats is 49.2. Both may stand where runs are shown, right after the
word. The difference of the first to a whole run would be 40.6, and a case of the second that was wrong in the last
repeat alone, 75.0: neither stands anywhere. Nothing that judges reads or shows one (docs/decisions/0029).
"""

import ast
import io
import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from html import unescape
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from typer.main import get_command
from typer.testing import CliRunner

from evalboard.cli.main import app
from evalboard.client import Client as Notebook
from evalboard.core.compare import CASE_PARTS
from evalboard.core.rollout_steps import measure_step
from evalboard.core.suite import read_suite_text
from runs import models
from runs.baselines import set_baseline
from runs.forced import create_forced
from runs.lab import plan_experiment
from runs.lab.run_figures import measure_run, whole_passes
from runs.labels import label_answers, next_answers
from runs.release import create_release
from runs.replays import create_replay
from runs.rollouts import log_step
from runs.schedules import create_schedule
from runs.suites import create_trial, rescore_run
from runs.webhooks import create_webhook
from runs.webhooks.webhooks import EVENTS
from tests import build, forced, judged, probes
from tests.api.conftest import SCOPES
from tests.core.test_rollout_steps import tensors
from tests.runs import logs

N = 32
CASES = [f"case-{number:02}" for number in range(N)]
# Of 32 cases 20 were served by one bucket, which got 14 right, and 12 by the other, which got 3 right.
MIXED = ["blue"] * 14 + ["red"] * 6 + ["blue"] * 3 + ["red"] * 9
BEFORE, AFTER, LAST = (["blue"] * n + ["red"] * (N - n) for n in (21, 11, 10))
WHOLE = ["blue"] * 30 + ["red"] * 2
POOLED = re.compile(
    r"(?<![\d.])(?<!\d:)(?:"
    r"53\.1|53\.13|53\.125|0?\.531|0?\.5313|0?\.53125|"
    r"40\.6|40\.63|40\.625|0?\.406|0?\.4063|0?\.40625|"
    r"49\.2|49\.22|49\.21875|0?\.492|0?\.4922|0?\.4921875|"
    r"75\.0|0?\.75"
    r")(?!\.?\d|:| [kM]B\b)"  # the size of a file, which moves with the digits of row ids, is no score
)
MARKED = re.compile(r'pooled(?:<[^>]*>|[\s":;])*$')  # before the number
# Where runs are shown. What judges is not among them: releases, baselines, badges, the board, limits, webhooks.
SHOW_POOLED = {
    *("run", "runs", "imports", "compare_chosen", "fingerprint"),
    *("api:run", "api:runs", "api:import", "api:imports"),
}
COMMANDS_THAT_SHOW = {"wait"}
# What shows a run or sums it up; nothing else in the product reads the number.
READ_POOLED = {"evalboard/wording/results.py"}

# Where a mark is drawn: no number that anybody reads.
DRAWN = re.compile(r' (?:x|y|x1|x2|y1|y2|cx|cy|dx|dy|d|width|height|transform)="[^"]*"')

SEARCHED = ("colours", "run: 1", "release: lenient", "case-10", "blue")

# How often the tests before asked for an address, which may be any number.
OWN_REQUESTS = re.compile(r"^evalboard_http_.*$", re.MULTILINE)
# What answers nothing that could be a score of a run.
WITHOUT_SCORES = {"login", "logout", "signin", "api:unknown"}
# `run` and `baseline` end with what `wait` and `release` print; the others say nothing of a run's score.
WITHOUT_REPORTS = {
    "diff",
    "trace",
    "verify-release",
    "up",
    "signin",
    "tour",
    "worker",
    "scheduler",
    "replay",
    "rerun",  # of runs that have just been queued
    "force",
    "on-policy",
    "rollouts",
    "verify",
    "probe",
    "vendors",
    "suite",
    "case",
    "import",
    "run",
    "baseline",
    "profile",
    "schedule",
    "settle",
    "follow",
    "scorer",
    "comment",
    "audit",
} | {"endpoint", "experiment", "bisect"}


@dataclass(frozen=True)
class Stored:
    """The runs, and for each name in an address the values that it may have."""

    runs: Mapping[str, models.RunRecord]
    releases: tuple[int, ...]
    known: Mapping[str, list[Any]]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Each run as a baseline of one and as a candidate of the other."""
        mixed, turned, whole = (self.runs[name].pk for name in ("mixed", "turned", "whole"))
        return [(whole, mixed), (mixed, turned), (turned, whole)]

    @property
    def queries(self) -> dict[str, list[str]]:
        """By route, where an address alone does not say what is asked for."""
        pairs = [f"?baseline={one}&candidate={other}" for one, other in self.pairs]
        mixed, turned = self.runs["mixed"].pk, self.runs["turned"].pk
        repeats = [f"?baseline={run}&candidate={run}&repeat=1,{last}" for run, last in ((mixed, 2), (turned, 4))]
        *_, control, numerics, _ = self.known["forced_id"]
        compared = ("comparison", "compared_cases", "compared_case", "pairs_csv", "pairs_jsonl")
        return {
            **{f"api:{name}": [*pairs, *repeats] for name in compared},
            "api:compared_outcomes": [f"{pair}&outcome={outcome}" for pair in pairs for outcome in CASE_PARTS],
            "api:forced_verification": [f"?control={control}&numerics={numerics}"],
            "api:run_estimate": ["?suite=colours&endpoint=local"],
            "vendors": ["?endpoints=local"],
            "api:vendors": ["?endpoints=local"],
            "compare_chosen": ["", *pairs],
            "compare": ["", "?repeat=1,2", "?part=cases", "?outcome=broken"],
            "find": ["", *(f"?q={text}" for text in SEARCHED), *(f"?part=list&q={text}" for text in SEARCHED)],
            "api:find": [f"?q={text}" for text in SEARCHED],
            "run": ["", "?part=progress", "?only=unstable"],
            "release_new": ["", *(f"?candidate={run.pk}" for run in self.runs.values())],
        }


@pytest.fixture
def stored(transactional_db: None) -> Stored:
    build.suite(case_ids=CASES)
    one, other = build.process(build.bucket("float32")), build.process(build.bucket("bfloat16"))
    person = build.user("root", "admin")
    create_webhook(url="https://example.com/told", events=list(EVENTS), user=person)
    judged.policy()
    mixed, turned = build.run(repeats=2), build.run(repeats=4)
    probe = {"endpoint": "local", "kind": "canary", "parameters": {}}
    create_schedule(slug="weekly", cron="0 4 * * 1", kind="probe", order=probe, user=person)
    for repeat in (1, 2):
        build.decode(mixed, repeat, MIXED, by=[one] * 20 + [other] * 12)
        build.decode(turned, repeat, BEFORE, by=one)
    build.decode(turned, 3, AFTER, by=other)
    build.decode(turned, 4, LAST, by=other)
    whole = build.finished_run(WHOLE, WHOLE, by=one)
    rescore_run(run_id=mixed.pk, scorer={"kind": "contains"})
    for run in (mixed, turned, whole):
        _label(run, person)
    baseline = set_baseline(suite="colours", run=whole.pk, reason="As shipped.", user=person)
    judged_pairs = [(whole, mixed), (mixed, whole), (whole, turned), (turned, mixed)]
    releases = tuple(_released(*pair) for pair in judged_pairs)
    runs = {"mixed": mixed, "turned": turned, "whole": whole, "logged": _logged()}
    prints = list(models.FingerprintRecord.objects.order_by("id").values_list("id", flat=True))
    known = {
        "digest": [],  # of an image: no case here has one
        "run_id": [run.pk for run in runs.values()],
        "endpoint": list(models.EndpointRecord.objects.values_list("slug", flat=True)),
        "slug": list(models.Suite.objects.values_list("slug", flat=True)),
        "number": [1],
        "repeat": [1],
        "scorer_id": list(
            models.RepeatScore.objects.filter(repeat__run=mixed).values_list("scorer", flat=True).distinct()
        ),
        "case": [CASES[10]],
        "baseline_id": [baseline.pk],
        "release_id": list(releases),
        "fingerprint_id": prints[:1],
        "rule_id": [models.RetentionRuleRecord.objects.create(what="traces", days=30).pk],
        "import_id": [runs["logged"].source_id],
        "reading_id": [models.ImportReadingRecord.objects.create(options={}, names=["a.jsonl"], n_bytes=9).pk],
        "probe_id": [_probed()],
        "forced_id": [
            *(_scored(run) for run in (mixed, turned, build.finished_run(WHOLE, by=one), whole)),
            _scored(turned, repeats=[1, 2]),  # of one bucket, as the two before it are
            create_forced(run_id=mixed.pk, endpoint="local").pk,
        ],
        "replay_id": [create_replay(run_id=mixed.pk, case_id=CASES[10]).pk],
        "webhook_id": [models.WebhookRecord.objects.get().pk],
        "schedule_id": [models.ScheduleRecord.objects.get().pk],
        "experiment_id": [_experimented(turned, mixed)],
        "upload_id": [],
        "trial_id": [_tried()],
        "series": [_logged_step(person)],
        "follow_id": [],
        "stop_link": [],
        "offset": [0],
        "token_id": [],
        "name": ["root"],
        "session": [],
        "comment_id": [],
        "same_model_id": [],
        "other": [*prints[1:2], _probed()],
    }
    return Stored(runs, releases, known)


def _released(baseline: models.RunRecord, candidate: models.RunRecord) -> int:
    gate = {"suite": "colours", "baseline": baseline.pk, "candidate": candidate.pk, "tier": "critical"}
    return int(create_release(gates=[gate], policy="lenient").pk)


def _logged_step(person: Any) -> str:
    figures = measure_step(tensors("verl")).to_json()
    step, _ = log_step(series="grpo", step=1, figures=figures, max_kl=0.001, user=person)
    return step.series.name


def _label(run: models.RunRecord, person: Any) -> None:
    """Label a page of answers, so that each scorer has figures."""
    page = next_answers(run.pk, user=person)
    said = [{"case": each.case, "repeat": each.repeat, "is_right": each.answer == "blue"} for each in page]
    label_answers(run_id=run.pk, labels=said, user=person)


def _logged() -> models.RunRecord:
    """The mixed run once more, as a gateway's log has it."""
    by = [logs.FLOAT32] * 20 + [logs.BFLOAT16] * 12
    answers = [
        logs.response(case, text=text, score=float(text == "blue"), served_by=served)
        for case, text, served in zip(CASES, MIXED, by, strict=True)
    ]
    return logs.stored(logs.log(*answers, slug="logged", cases=tuple(map(logs.case, CASES))))


def _experimented(*runs: models.RunRecord) -> int:
    """An experiment whose control moved to another bucket, and whose order of cases two buckets served."""
    sent = {"suite": "colours", "endpoint": runs[0].endpoint.slug, "profile": runs[0].profile.slug}
    experiment = plan_experiment(**sent, runs=5, sources=["order"], user=None)
    for arm, run in zip(experiment.arms.order_by("position"), runs, strict=True):
        arm.run, arm.status, arm.figures = run, "finished", asdict(measure_run(run, whole_passes(runs[0])[0]))
        arm.save()
    models.ExperimentRecord.objects.filter(pk=experiment.pk).update(status="finished")
    return int(experiment.pk)


def _scored(run: models.RunRecord, **chosen: Any) -> int:
    """A forced scoring in which no logprob reads like a pooled score."""
    return int(forced.scored(create_forced(run_id=run.pk, endpoint="local", **chosen), shift=0.125).pk)


def _tried() -> int:
    read = read_suite_text("prompt,target\nSay it.,blue\n", slug="sheet", scorer={"kind": "exact"})
    return int(create_trial(read=read, endpoint="local").pk)


def _probed() -> int:
    probes.ask("batch", parameters={"prompts": 1, "copies": 4})
    return int(probes.served(probes.honoured).pk)


def pooled(where: str, text: str, marked: set[str] | None = None, name: str = "") -> Iterator[str]:
    """Every pooled number in a text that does not say so, with the place and what stands around it.

    marked: gets the name of a place where one says so. Without it no number may stand there at all.
    """
    readable = DRAWN.sub("", unescape(text))
    for found in POOLED.finditer(readable):
        if marked is not None and MARKED.search(readable[max(found.start() - 60, 0) : found.start()]):
            marked.add(name)
            continue
        around = readable[max(found.start() - 60, 0) : found.end() + 20]
        yield f"{where}: {' '.join(around.split())}"


def routes() -> Iterator[tuple[str, list[str]]]:
    """The name and the parameters of every address there is."""

    def within(found: URLResolver, space: str) -> Iterator[tuple[str, list[str]]]:
        for each in found.url_patterns:
            if isinstance(each, URLResolver):
                yield from within(each, f"{each.namespace}:" if each.namespace else space)
            elif isinstance(each, URLPattern):
                yield f"{space}{each.name}", list(each.pattern.converters)

    yield from within(get_resolver(), "")


def addresses(stored: Stored, name: str, parameters: list[str]) -> Iterator[str]:
    if parameters[:2] == ["baseline", "candidate"]:
        mixed, turned = stored.runs["mixed"].pk, stored.runs["turned"].pk
        sides = [*stored.pairs, (mixed, mixed), (turned, turned)]
        values = [{"baseline": one, "candidate": other} for one, other in sides]
    else:
        values = [{}]
    rest = [each for each in parameters if each not in ("baseline", "candidate")]
    for sides, given in product(values, product(*(stored.known[each] for each in rest))):
        path = reverse(name, kwargs={**sides, **dict(zip(rest, given, strict=True))})
        yield from (f"{path}{query}" for query in stored.queries.get(name, [""]))


def text_of(answer: Any) -> str:
    """What an answer says, an archive's readable members among it."""
    content = b"".join(answer.streaming_content) if answer.streaming else answer.content
    if answer.headers["Content-Type"] != "application/zip":
        return content.decode()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        readable = [name for name in archive.namelist() if name.endswith((".json", ".jsonl"))]
        assert readable
        return "\n".join(archive.read(name).decode() for name in readable)


@pytest.mark.nightly
def test_no_address_answers_one_and_no_message_tells_one(stored: Stored) -> None:
    told = list(models.OutboxMessage.objects.values_list("event", "payload"))
    assert {event for event, _ in told} == {"run.finished", "release.decided"}
    found = [each for event, payload in told for each in pooled(event, json.dumps(payload))]
    client = Client(headers={"authorization": f"Bearer {build.token(build.user('reader', 'admin'), *SCOPES)}"})
    marked: set[str] = set()
    pages = Client()
    pages.force_login(models.WebhookRecord.objects.get().created_by)
    for name, parameters in routes():
        if name in WITHOUT_SCORES:
            continue
        statuses = set()
        for address in addresses(stored, name, parameters):
            answer = (client if name.startswith(("api", "metrics")) else pages).get(address)
            statuses.add(answer.status_code)
            if answer.status_code == 200:
                found += pooled(address, OWN_REQUESTS.sub("", text_of(answer)), marked, name)
        assert statuses & {200, 302} or statuses <= {405, 404}, f"{name} answers {statuses}: tell the walk about it"
    assert not found, "\n".join(found)
    assert marked == SHOW_POOLED


def test_nothing_that_judges_reads_a_pooled_number() -> None:
    """The walk sees what is shown; this sees what is read: verdicts, ranges, the board's order, limits, exit codes."""
    readers = set()
    for path in (each for root in ("evalboard", "runs", "frontend", "worker") for each in Path(root).rglob("*.py")):
        if "pooled" not in (text := path.read_text()):
            continue
        for node in ast.walk(ast.parse(text)):
            is_read = isinstance(node, ast.Attribute) and node.attr == "pooled"
            if is_read or (isinstance(node, ast.Subscript) and ast.unparse(node.slice) == "'pooled'"):
                readers.add(str(path))
    assert readers == READ_POOLED


@pytest.mark.nightly
def test_no_command_prints_one(stored: Stored, live_server: Any, tmp_path: Path) -> None:
    secret = build.token(build.user("ci", "release manager"), "read", "run", "sign")
    place = {"EVALBOARD_URL": live_server.url, "EVALBOARD_TOKEN": secret}
    run = {name: str(each.pk) for name, each in stored.runs.items()}
    said: dict[str, list[list[str]]] = {"wait": [], "export": [], "compare": [], "release": [], "labels": []}
    reports = ["--junit", str(tmp_path / "junit.xml"), "--summary", str(tmp_path / "summary.md")]
    reports += ["--comment", str(tmp_path / "comment.md")]
    for name in ("mixed", "turned", "logged"):
        said["wait"] += [[run[name], *reports], [run[name], "--json"]]
        said["labels"] += [[run[name]], [run[name], "--json"]]
        said["export"].append([run[name], "--cases", "csv", "--to", str(tmp_path / "cases.csv")])
    for baseline, candidate in (("whole", "mixed"), ("turned", "whole")):
        said["compare"] += [[run[baseline], run[candidate]], [run[baseline], run[candidate], "--json"]]
        pairs = ["--compare", run[baseline], run[candidate], "--cases", "csv", "--to", str(tmp_path / "pairs.csv")]
        said["export"].append(pairs)
        judge = [run[candidate], "--baseline", run[baseline], "--policy", "lenient"]
        said["release"] += [[*judge, *reports], [*judge, "--json"]]
    assert get_command(app).commands.keys() == said.keys() | WITHOUT_REPORTS, "tell the walk about it"  # type: ignore[attr-defined]
    found: list[str] = []
    marked: set[str] = set()
    for command, calls in said.items():
        for arguments in calls:
            done = CliRunner().invoke(app, [command, *arguments], env=place)
            words = f"evalboard {command} {' '.join(arguments)}"
            assert done.output, words
            found += pooled(words, done.output, marked, command)
            for file in tmp_path.iterdir():
                found += pooled(f"{words}, {file.name}", file.read_text(), marked, command)
                file.unlink()
    assert not found, "\n".join(found)
    assert marked == COMMANDS_THAT_SHOW


@pytest.mark.nightly
def test_no_notebook_shows_one(stored: Stored, live_server: Any) -> None:
    found: list[str] = []
    with Notebook(live_server.url, build.token(build.user("mara", "viewer"), "read")) as client:
        shown: list[Any] = [client.runs(), client.releases()]
        for run in stored.runs.values():
            shown += [client.run(run.pk), client.run(run.pk).repeats, client.cases(run.pk), client.responses(run.pk)]
        for baseline, candidate in stored.pairs:
            shown += [client.compare(baseline, candidate), client.compared_cases(baseline, candidate)]
        shown += [client.release(release) for release in stored.releases]
        for each in shown:
            frame = each.to_pandas()
            texts = [frame.drop(columns="pooled", errors="ignore").to_csv()]
            texts += [] if "pooled" in frame else [repr(each), each._repr_html_()]  # else a column says it
            for text in texts:
                found += pooled(repr(each), text, set())
    assert not found, "\n".join(found)

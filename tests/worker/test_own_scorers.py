"""Teams' own scorers: programs and packages that a worker runs, and what runs and imports make of them."""

import json
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from evalboard.core.errors import InvalidInput
from evalboard.core.scoring import ScorerReply, check_spec
from evalboard.core.suite import read_suite_text
from evalboard.core.trace import unpack_reasons, unpack_scores
from runs.compare import compare
from runs.models import EndpointRecord, RepeatScore, RunRecord, ScoringRecord
from runs.run import cancel_run, create_run, run_report
from runs.suites import create_trial, own_scorers, push_suite, rescore_run, trial_row
from runs.sweep import reconcile
from runs.work import ToScore
from tests import build
from tests.nightly import few
from tests.runs import logs
from tests.scripted import Received, Reply, ScriptedServer, hang, ok, status
from tests.waiting import wait_until
from tests.worker.test_remote_runs import no_engine
from worker.jobs import WorkInterrupted
from worker.runner import Runner
from worker.scorers import PlanScorer, find_scorers

pytestmark = pytest.mark.django_db(transaction=True)


def answer(text: str) -> Any:
    return ok(choices=[{"index": 0, "message": {"content": text}, "finish_reason": "stop"}])


CASES = [{"id": f"case-{n}", "prompt": f"Question {n}?", "target": "Oslo"} for n in range(3)]
READ = "import json, sys\nfor line in sys.stdin:\n    asked = json.loads(line)\n"
GOOD = 'print(json.dumps({"id": asked["id"], "value": 1}), flush=True)'
FOLDED = """
text, target = asked["response"]["text"], asked["case"]["target"]
reply = {"id": asked["id"], "value": float(text.strip().lower() == target.lower()), "reason": f"read {text!r}"}
print(json.dumps(reply), flush=True)
"""


@pytest.fixture
def server(settings: Any) -> Iterator[ScriptedServer]:
    settings.ENDPOINT_HOSTS = frozenset({"127.0.0.1"})
    with ScriptedServer(answer(" oslo")) as started:
        build.profile()
        named = {"slug": "hosted", "engine": "openai", "model_repo": "lab/paint", "dtype": "", "max_model_len": None}
        EndpointRecord.objects.create(**named, base_url=started.base_url)
        yield started


@pytest.fixture
def programs(settings: Any, tmp_path: Path) -> Callable[..., Path]:
    """Write a program into the worker's folder of scorers. body: what it does with each line that is asked."""
    settings.SCORERS_DIR = tmp_path / "scorers"
    settings.SCORERS_DIR.mkdir()

    def write(name: str, body: str) -> Path:
        path = Path(settings.SCORERS_DIR / name)
        path.write_text(f"#!{sys.executable}\n{READ}{textwrap.indent(body, '    ')}")
        path.chmod(0o755)
        return path

    return write


@pytest.fixture
def worker() -> Iterator[Callable[[], Runner]]:
    started: list[Runner] = []

    def start() -> Runner:
        started.append(Runner(pool="default", hardware={"kind": "none"}, make_engine=no_engine))
        return started[-1]

    yield start
    for each in started:
        each.stop()
        each.run_forever()


def to_score(number: int) -> ToScore:
    return ToScore(
        number, f"case-{number}", (), "Oslo", None, (), "oslo", None, is_truncated=None, finish_reason="stop"
    )


def push(**scorer: Any) -> None:
    push_suite(document={"slug": "towns", "scorer": {"kind": "command", "name": "folded", **scorer}, "cases": CASES})


def started(**fields: Any) -> RunRecord:
    return create_run(suite="towns", endpoint="hosted", profile="pinned", repeats=2, **fields)


def points(run: RunRecord) -> list[float | None]:
    own = RepeatScore.objects.filter(repeat__run=run, scorer=run.suite_version.scorer_id)
    return list(own.order_by("repeat").values_list("points", flat=True))


def test_a_run_ends_with_the_scores_of_a_teams_program(
    server: ScriptedServer, programs: Callable[..., Path], worker: Callable[[], Runner]
) -> None:
    programs("folded", FOLDED)
    here = worker()
    push()
    run = started()
    here.work()
    run.refresh_from_db()
    assert (run.status, points(run)) == ("finished", [100.0, 100.0])
    assert set(ScoringRecord.objects.values_list("status", "n_done")) == {("finished", 3)}


def test_a_response_that_the_scorer_cannot_score_is_unscored_in_its_words(
    server: ScriptedServer, programs: Callable[..., Path], worker: Callable[[], Runner]
) -> None:
    programs("folded", 'if asked["case"]["id"] == "case-1":\n    raise ValueError("no digits")\n' + FOLDED)
    here = worker()
    push()
    run = started()
    here.work()
    run.refresh_from_db()
    assert run.status == "finished"
    (first, _) = RepeatScore.objects.filter(repeat__run=run).order_by("repeat")
    assert unpack_scores(bytes(first.scores))[[0, 2]].tolist() == [1.0, 1.0]
    reason = unpack_reasons(bytes(first.reasons))[1]
    assert reason == "Unscored: The scorer folded ended. It wrote: ValueError: no digits"


def test_a_scorer_that_answers_out_of_step_scores_nothing_wrongly(
    server: ScriptedServer, programs: Callable[..., Path], worker: Callable[[], Runner]
) -> None:
    """A second line for one response would be taken as the next one's score."""
    programs("folded", FOLDED + 'print(json.dumps({"id": asked["id"], "value": 0.0}), flush=True)\n')
    here = worker()
    push()
    run = started()
    here.work()
    (first, _) = RepeatScore.objects.filter(repeat__run=run).order_by("repeat")
    scores = unpack_scores(bytes(first.scores)).tolist()
    assert 0.0 not in scores
    assert any('no JSON object with "id"' in (reason or "") for reason in unpack_reasons(bytes(first.reasons)))


@pytest.mark.nightly
def test_each_of_several_scores_has_a_history_of_its_own(
    server: ScriptedServer, programs: Callable[..., Path], worker: Callable[[], Runner]
) -> None:
    programs("graded", 'print(json.dumps({"id": asked["id"], "scores": {"fact": 1.0, "style": 0.5}}), flush=True)\n')
    here = worker()
    push(name="graded", weights={"fact": 3, "style": 1})
    run = started()
    here.work()
    run.refresh_from_db()
    assert (run.status, points(run)) == ("finished", [87.5, 87.5])
    others = RepeatScore.objects.filter(repeat__run=run).exclude(scorer=run.suite_version.scorer_id)
    by_name = {(row.scorer.spec["default"]["decides"], row.points) for row in others.select_related("scorer")}
    assert by_name == {("fact", 100.0), ("style", 50.0)}
    rescore_run(run_id=run.pk, scorer={"kind": "command", "name": "graded", "decides": "style", "pass_at": 0.6})
    here.work()
    strict = RepeatScore.objects.filter(repeat__run=run, scorer__spec__default__pass_at=0.6)
    assert [row.points for row in strict] == [0.0, 0.0]


@pytest.mark.nightly
def test_another_parser_under_the_same_name_is_another_scorer(
    server: ScriptedServer, programs: Callable[..., Path], worker: Callable[[], Runner]
) -> None:
    programs("folded", FOLDED)
    before = worker()
    push()
    run = started()
    before.work()
    path = programs("folded", FOLDED.replace(".strip()", ""))  # the parser trips on whitespace now
    later = started()
    before.work()  # it looks again at what it has, before it scores
    later.refresh_from_db()
    assert later.status == "running"
    assert [each.digest for each in own_scorers()] != [run.suite_version.scorer.spec["default"]["digest"]]
    push()
    newest = started()
    before.work()
    newest.refresh_from_db()
    assert (newest.suite_version.number, points(newest)) == (2, [0.0, 0.0])
    path.write_text(path.read_text().replace("text.lower()", "text.strip().lower()"))
    worker().work()  # the first parser is back, to the byte
    later.refresh_from_db()
    assert (later.status, points(later)) == ("finished", [100.0, 100.0])


def test_what_no_worker_has_is_refused_with_what_there_is(
    server: ScriptedServer, programs: Callable[..., Path], worker: Callable[[], Runner]
) -> None:
    programs("folded", FOLDED)
    worker()
    with pytest.raises(InvalidInput) as refused:
        push(name="loose")
    assert refused.value.fields == {"scorer.name": "is a scorer that no worker has; they have: folded"}
    with pytest.raises(InvalidInput) as refused:
        push(pass_at=2, weights={"a": 0}, seconds=0)
    assert set(refused.value.fields) == {"scorer.pass_at", "scorer.weights.a", "scorer.seconds"}


@pytest.mark.nightly
def test_a_cancelled_run_does_not_wait_for_its_scorer(
    server: ScriptedServer, programs: Callable[..., Path], worker: Callable[[], Runner]
) -> None:
    path = programs("folded", FOLDED)
    here = worker()
    push()
    path.unlink()
    run = started()
    here.work()
    run.refresh_from_db()
    assert run.status == "running"
    cancel_run(run_id=run.pk)
    run.refresh_from_db()
    assert (run.status, points(run)) == ("cancelled", [])
    assert not ScoringRecord.objects.exists()


@pytest.mark.nightly
def test_a_scoring_whose_worker_ends_again_and_again_leaves_its_run_unscored_and_ended(
    server: ScriptedServer, programs: Callable[..., Path], worker: Callable[[], Runner], monkeypatch: pytest.MonkeyPatch
) -> None:
    programs("folded", FOLDED)
    here = worker()
    push()

    def break_down(*_: Any) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr("worker.scoring.read_to_score", break_down)
    server.script = lambda received: status(400) if "Question 2?" in received.prompt else answer(" oslo")
    run = started()
    for _ in range(4):
        here.work()
    reconcile()
    run.refresh_from_db()
    assert run.status == "incomplete"
    (first, _) = RepeatScore.objects.filter(repeat__run=run).order_by("repeat")
    assert (first.points, first.n_scored) == (None, 0)
    reasons = unpack_reasons(bytes(first.reasons))
    assert ["begun 3 times" in (reason or "") for reason in reasons] == [True, True, False]
    assert (reasons[2], first.n_missing) == (None, 1)  # no scorer is to blame for a missing response


@pytest.mark.nightly
def test_an_imported_run_ends_with_the_scores_of_its_suites_own_scorer(
    server: ScriptedServer, programs: Callable[..., Path], worker: Callable[[], Runner]
) -> None:
    body = 'print(json.dumps({"id": asked["id"], "value": 0.25, "answer": asked["response"]["text"]}), flush=True)\n'
    programs("quarter", body)
    here = worker()
    prompts = [{"id": case, "prompt": f"Which colour has {case}?", "target": "blue"} for case in logs.CASES]
    push_suite(document={"slug": "colours", "scorer": {"kind": "command", "name": "quarter"}, "cases": prompts})
    run = logs.stored(logs.log(), suite="colours")
    assert (run.status, run.finished_at) == ("running", None)
    here.work()
    run.refresh_from_db()
    assert (run.status, points(run)) == ("finished", [25.0, 25.0])
    assert run.finished_at == run.repeats.get(index=1).finished_at
    kept = {(line.scorer.is_own, line.repeats) for line in run_report(run.pk).scores}
    assert kept == {(True, (25.0, 25.0)), (False, (100.0, 100.0))}


PACKAGE = """
from evalboard.scorers import Case, Response, Score


def score(case: Case, response: Response, options: dict) -> Score:
    print("a scorer may print")
    text = response.text.strip() if options.get("strip") else response.text
    return Score(float(text.lower() == case.target.lower()), f"read {text!r}", answer=text.strip().lower())


def plain(case: Case, response: Response) -> bool:
    return case.target.lower() in response.text
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a distribution as pip would lay it out, on the path of this process and of those that it starts."""
    site = tmp_path / "site"
    info = site / "acme_scorers-1.2.dist-info"
    info.mkdir(parents=True)
    (site / "acme_scorers.py").write_text(PACKAGE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-scorers\nVersion: 1.2\n")
    names = "[evalboard.scorers]\nacme-exact = acme_scorers:score\nacme-in = acme_scorers:plain\n"
    (info / "entry_points.txt").write_text(names)
    monkeypatch.syspath_prepend(str(site))
    return site


@pytest.mark.nightly
def test_a_package_scores_with_options_and_its_answers_are_compared(
    server: ScriptedServer, package: Path, worker: Callable[[], Runner]
) -> None:
    here = worker()
    facts = {each.name: each for each in own_scorers()}
    assert set(facts) == {"acme-exact", "acme-in"}
    assert facts["acme-in"].workers[0].version == "1.2"
    info = next(package.glob("*.dist-info")) / "entry_points.txt"
    info.write_text(f"{info.read_text()}acme-editable = acme_editable:score\n")
    [editable] = [each for each in find_scorers() if each.name == "acme-editable"]
    assert editable.problem == "its module acme_editable is not there: install it by pip, not as editable (-e)"
    push(kind="python", name="acme-exact")
    run = started()
    here.work()
    assert points(run) == [0.0, 0.0]
    rescore_run(run_id=run.pk, scorer={"kind": "python", "name": "acme-exact", "options": {"strip": True}})
    rescore_run(run_id=run.pk, scorer={"kind": "python", "name": "acme-in"})
    here.work()
    others = RepeatScore.objects.filter(repeat__run=run).exclude(scorer=run.suite_version.scorer_id)
    assert {row.points for row in others} == {100.0}
    assert {row.answers is None for row in others.filter(scorer__spec__default__name="acme-in")} == {True}
    assert {row.answers is None for row in others.filter(scorer__spec__default__name="acme-exact")} == {False}


def test_another_version_of_a_declared_package_is_another_scorer(package: Path) -> None:
    def digest() -> str:
        return next(each.digest for each in find_scorers() if each.name == "acme-in")

    info, other = next(package.glob("*.dist-info")), package / "acme_rules-2.0.dist-info"
    alone = digest()
    (info / "METADATA").write_text(f"{(info / 'METADATA').read_text()}Requires-Dist: acme-rules>=1\n")
    absent = digest()
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-rules\nVersion: 2.0\n")
    older = digest()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-rules\nVersion: 2.1\n")
    assert len({alone, absent, older, digest()}) == 4


def test_one_case_is_tried_by_a_teams_scorer_before_the_suite_is_stored(
    server: ScriptedServer, package: Path, worker: Callable[[], Runner]
) -> None:
    here = worker()
    spec = {"kind": "python", "name": "acme-exact"}
    read = read_suite_text("id,prompt,target\ntown,Capital of Norway?,Oslo\n", slug="towns", scorer=spec)
    trial = create_trial(read=read, endpoint="hosted")
    here.work()
    tried = trial_row(trial.pk).answer
    assert tried is not None
    assert (tried.score, tried.reason) == (0.0, "read ' oslo'")


@pytest.mark.nightly
def test_a_new_parser_judges_both_sides_and_is_blamed_for_exactly_its_points(
    server: ScriptedServer, programs: Callable[..., Path], worker: Callable[[], Runner]
) -> None:
    """The baseline's answers are scored by the new parser too, as a team does before it adopts one."""
    programs("folded", FOLDED)
    here = worker()
    push()
    before = started()
    here.work()
    here.stop()
    here.run_forever()  # two living workers with two parsers of one name would have to be told apart
    programs("folded", FOLDED.replace(".strip()", ""))
    again = worker()
    rescore_run(run_id=before.pk, scorer={"kind": "command", "name": "folded"})
    again.work()
    push()
    server.script = answer("oslo")
    after = started()
    again.work()
    assert (points(before), points(after)) == ([100.0, 100.0], [100.0, 100.0])
    summary = compare(baseline=before.pk, candidate=after.pk).summary
    assert (summary["score"]["baseline"], summary["score"]["difference"]) == (0.0, pytest.approx(100))
    [shared] = [block["text"] for block in summary["blocks"] if block["code"] == "scorer_shared"]
    assert "It moves the baseline's score by −100.0 points over 3 cases." in shared
    [row] = summary["ledger"]  # what the texts moved, under the new parser
    assert (row["cause"] != "scorer", row["points"]) == (True, pytest.approx(100))


@pytest.mark.nightly
def test_a_service_scores_with_a_key_that_no_scorer_sees_and_another_version_is_another_scorer(
    server: ScriptedServer, settings: Any, tmp_path: Path, worker: Callable[[], Runner], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_API_KEY", "sk-service-1")
    settings.SCORERS_DIR = tmp_path
    facts = {"version": "v1"}
    failed: list[Any] = []

    def judge(received: Received) -> Reply:
        assert received.headers["authorization"] == "Bearer sk-service-1"
        if received.number % 5 == 0 and received.body not in failed:  # each once: a service is asked three times
            failed.append(received.body)
            return status(503, {"Retry-After": "0"})
        text, target = received.body["response"]["text"], received.body["case"]["target"]
        value = float(target.lower() in text.lower())
        return Reply(json.dumps({"id": received.body["id"], "value": value, **facts}).encode())

    with ScriptedServer(judge) as service:
        (tmp_path / "house-judge.toml").write_text(f'url = "{service.origin}/v1/responses"\nauth = "JUDGE_API_KEY"\n')
        here = worker()
        push(kind="http", name="house-judge")
        run = started()
        here.work()
        run.refresh_from_db()
        assert (run.status, points(run)) == ("finished", [100.0, 100.0])
        facts["version"] = "v2"
        later = started()
        here.work()
        later.refresh_from_db()
        assert later.status == "running"
        service.script = status(500)
        [own] = find_scorers(asks_again=True)
        assert "status 500, 3 times in a row" in own.problem
        assert "sk-service-1" not in str(own)


HOSTILE = {
    "endless loop": "while True: pass",
    "silence": "pass",
    "flood": "while True: sys.stdout.write('x' * 1_000_000)",
    "noise": "while True: sys.stderr.write('x' * 1_000_000)",
    "fork bomb": "import os\nwhile True: os.fork()",
    "memory": "x = b'1' * (2 << 30)",
    "write": "open(sys.argv[0] + '.left', 'w')",
    "secret": "print(open('/etc/shadow').read())",
    "exception": "print(json.dumps({'id': asked['id'], 'error': 'ValueError: x'}), flush=True)",
    "no number": 'print(json.dumps({"id": asked["id"], "value": 7}), flush=True)',
    "no score": "print('[[[[', flush=True)",
}


@pytest.mark.parametrize("attack", few(HOSTILE, 4))
def test_a_hostile_scorer_costs_its_own_responses_only(
    attack: str, programs: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.scorers.START_SECONDS", 1.0)
    programs("hostile", f'if asked["id"] == 1:\n{textwrap.indent(HOSTILE[attack], "    ")}\nelse:\n    {GOOD}')
    [own] = find_scorers()
    spec = check_spec({"kind": "command", "name": "hostile", "digest": own.digest, "seconds": 2})
    with PlanScorer({"default": spec, "cases": {}}, check=lambda: None) as scorer:
        given = dict(scorer.score_all([to_score(number) for number in range(4)]))
    assert [given[number].value for number in (0, 2, 3)] == [1.0] * 3
    assert given[1].value is None
    assert given[1].reason.startswith(("Unscored: The scorer hostile ", "Unscored: ValueError: x"))
    assert [path.name for path in Path(own.place).parent.iterdir()] == ["hostile"]


def test_a_scorer_that_never_answers_is_not_asked_for_ever(
    programs: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.scorers.START_SECONDS", 0.2)
    programs("silent", "pass\n")
    [own] = find_scorers()
    spec = check_spec({"kind": "command", "name": "silent", "digest": own.digest, "seconds": 0.1})
    with PlanScorer({"default": spec, "cases": {}}, check=lambda: None) as scorer:
        given = dict(scorer.score_all([to_score(number) for number in range(500)]))
    assert {reply.value for reply in given.values()} == {None}
    assert "It must flush each line that it writes. It was so 2 times in a row" in given[499].reason


def test_a_slow_service_delays_no_look_at_the_other_scorers_and_is_known_once_it_has_answered(
    programs: Callable[..., Path], settings: Any
) -> None:
    may_answer, is_called = threading.Event(), threading.Event()

    def judge(received: Received) -> Reply:
        is_called.set()
        assert may_answer.wait(60)
        return Reply(json.dumps({"id": received.body["id"], "value": 1}).encode())

    programs("folded", FOLDED)
    with ScriptedServer(judge) as service:
        (settings.SCORERS_DIR / "slow.toml").write_text(f'url = "{service.origin}/v1/responses"\n')
        try:
            problems = {each.name: each.problem for each in find_scorers()}
            assert is_called.wait(60)
        finally:
            may_answer.set()
        assert problems == {"folded": "", "slow": "it has yet to answer the probes"}
        wait_until(lambda: {each.name: each.problem for each in find_scorers()} == {"folded": "", "slow": ""})


def test_a_call_of_a_service_ends_at_once_where_the_work_must_end(settings: Any, tmp_path: Path) -> None:
    settings.SCORERS_DIR = tmp_path
    is_called = threading.Event()

    def judge(received: Received) -> Reply:
        if str(received.body["case"]["id"]).startswith("probe"):
            return Reply(json.dumps({"id": received.body["id"], "value": 1}).encode())
        is_called.set()
        return hang()

    def check() -> None:
        if is_called.is_set():
            raise WorkInterrupted

    with ScriptedServer(judge) as service:
        (tmp_path / "slow.toml").write_text(f'url = "{service.origin}/v1/responses"\n')
        [own] = find_scorers(asks_again=True)
        spec = check_spec({"kind": "http", "name": "slow", "digest": own.digest, "seconds": 600})
        with PlanScorer({"default": spec, "cases": {}}, check=check) as scorer, pytest.raises(WorkInterrupted):
            dict(scorer.score_all([to_score(number) for number in range(20)]))


@pytest.mark.nightly
def test_a_scorer_that_is_changed_while_it_scores_gives_no_scores_under_its_old_name(
    server: ScriptedServer, programs: Callable[..., Path], worker: Callable[[], Runner], monkeypatch: pytest.MonkeyPatch
) -> None:
    programs("folded", FOLDED)
    here = worker()
    push()
    run = started()

    def change(self: PlanScorer, responses: Sequence[ToScore]) -> Iterator[tuple[int, ScorerReply]]:
        scored = list(score_all(self, responses))
        programs("folded", FOLDED.replace(".strip()", ""))
        return iter(scored)

    score_all = PlanScorer.score_all
    monkeypatch.setattr(PlanScorer, "score_all", change)
    here.work()
    run.refresh_from_db()
    assert (run.status, RepeatScore.objects.filter(repeat__run=run).count()) == ("running", 0)
    waiting = run_report(run.pk).waiting
    assert waiting is not None
    assert "No worker that runs has the scorer folded (" in waiting
    monkeypatch.undo()
    programs("folded", FOLDED)
    worker().work()
    run.refresh_from_db()
    assert (run.status, points(run)) == ("finished", [100.0, 100.0])


def test_without_confinement_no_worker_scores_unless_its_operator_says_so(
    server: ScriptedServer,
    programs: Callable[..., Path],
    settings: Any,
    worker: Callable[[], Runner],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("worker.scorers._find_gap", lambda: "Scorers need Landlock.")
    programs("folded", FOLDED)
    here = worker()
    push()
    run = started()
    here.work()
    run.refresh_from_db()
    assert (run.status, own_scorers()[0].workers[0].problem) == ("running", "Scorers need Landlock.")
    settings.UNCONFINED_SCORERS = True
    worker().work()
    run.refresh_from_db()
    assert (run.status, points(run)) == ("finished", [100.0, 100.0])
    (first, _) = RepeatScore.objects.filter(repeat__run=run).order_by("repeat")
    assert unpack_reasons(bytes(first.reasons))[0] == "[not confined] read ' oslo'"


def test_a_scorer_that_cannot_be_read_or_reached_is_named_and_stops_no_worker(
    server: ScriptedServer, programs: Callable[..., Path], settings: Any, worker: Callable[[], Runner]
) -> None:
    programs("folded", FOLDED)
    (settings.SCORERS_DIR / "gone.toml").symlink_to(settings.SCORERS_DIR / "nothing.toml")
    (settings.SCORERS_DIR / "wrong.toml").write_text("url = 5")
    (settings.SCORERS_DIR / "broken.toml").write_text("url = ")
    programs("copied", FOLDED).chmod(0o644)
    programs("a b", FOLDED)
    (settings.SCORERS_DIR / "README").write_text("What is here.")
    (settings.SCORERS_DIR / "key.toml").write_text('url = "http://127.0.0.1:9"\nauth = 5')
    worker()
    facts = {each.name: (each.digest != "", each.workers[0].problem) for each in own_scorers()}
    assert facts["folded"] == (True, None)
    assert "No such file" in str(facts["gone"][1])
    assert "must have url" in str(facts["wrong"][1])
    assert "broken.toml is no TOML file" in str(facts["broken"][1])
    assert "cannot be executed: chmod +x" in str(facts["copied"][1])
    assert "name must be 1 to 80 letters" in str(facts["a b"][1])
    assert "README" not in facts
    assert "must have url" in str(facts["key"][1])
    with pytest.raises(InvalidInput) as refused:
        push(kind="http", name="wrong")
    assert "must have url" in refused.value.fields["scorer.name"]


@pytest.mark.nightly
def test_what_ended_in_an_unknown_way_is_shown_to_no_scorer_and_says_so(
    server: ScriptedServer, programs: Callable[..., Path], worker: Callable[[], Runner]
) -> None:
    programs("folded", FOLDED)
    here = worker()
    push()
    good, odd = ({"index": 0, "message": {"content": "Oslo"}, "finish_reason": word} for word in ("stop", "mystery"))
    server.script = lambda call: ok(choices=[odd if call.prompt == "Question 1?" else good])
    run = started()
    here.work()
    run.refresh_from_db()
    (first, _) = RepeatScore.objects.filter(repeat__run=run).order_by("repeat")
    assert (run.status, unpack_scores(bytes(first.scores))[[0, 2]].tolist()) == ("finished", [1.0, 1.0])
    reason = "Unscored: it ended with 'mystery', which is an unknown ending."
    assert unpack_reasons(bytes(first.reasons))[1] == reason

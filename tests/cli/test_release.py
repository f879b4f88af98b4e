"""`evalboard release` and `evalboard baseline set`, against a server that is really there."""

import json
from collections.abc import Callable
from subprocess import CompletedProcess
from typing import Any

import pytest

from runs.catalogue import store_default_policies
from runs.models import BaselineRecord, ReleaseRecord, RunRecord, SuiteVersionRecord, Verdict
from runs.run import add_repeats
from tests import build, judged
from tests.cli.conftest import ctrl_c
from tests.judged import N_CASES
from tests.nightly import few

Call = Callable[..., "CompletedProcess[str]"]


@pytest.fixture
def baseline(transactional_db: None) -> RunRecord:
    judged.policy()
    return judged.run()


@pytest.fixture
def pair(transactional_db: None) -> tuple[RunRecord, RunRecord]:
    """Two small runs that could be judged, for commands that are refused."""
    store_default_policies()
    return build.finished_run(), build.finished_run()


@pytest.fixture
def manager(transactional_db: None) -> str:
    return build.token(build.user("mara", "release manager"), "read", "sign")


def against(baseline: RunRecord, *more: str) -> tuple[str, ...]:
    return ("--baseline", str(baseline.pk), "--policy", "lenient", *more)


@pytest.mark.parametrize(
    ("n_right", "dtype", "policy", "code", "word", "computation"),
    [
        pytest.param(N_CASES, "float32", "lenient", 0, "ship", "Logprobs agree to the bit", id="ship"),
        pytest.param(
            N_CASES // 2,
            "float32",
            "lenient",
            3,
            "not comparable",
            "The sides differ in",
            id="one bucket",
            marks=pytest.mark.nightly,
        ),
        pytest.param(N_CASES, "float32", "strict", 2, "inconclusive", "Logprobs agree to the bit", id="inconclusive"),
        pytest.param(N_CASES, "bfloat16", "lenient", 3, "not comparable", "", id="not comparable"),
    ],
)
def test_the_exit_code_is_the_verdict(
    evalboard: Call, baseline: RunRecord, n_right: int, dtype: str, policy: str, code: int, word: str, computation: str
) -> None:
    candidate = judged.run(n_right, by=build.process(build.bucket(dtype)))
    done = evalboard("release", str(candidate.pk), "--baseline", str(baseline.pk), "--policy", policy)
    release = ReleaseRecord.objects.select_related("verdict", "created_by").get()
    assert release.verdict is not None
    assert (done.returncode, release.policy.slug) == (code, policy)
    first, sentence, *rest = done.stdout.splitlines()
    assert first.startswith(f"Release {release.pk}: {word}. http://")
    assert first.endswith(f"/releases/{release.pk}/")
    assert sentence == release.verdict.document["summary"]
    causes, rest = rest[:5], rest[5:]
    assert [line.partition(":")[0] for line in causes] == ["server", "prompts", "noise", "missing", "identity"]
    assert causes[0].startswith(f"server: {'no' if code == 3 else 'ok'}. ")
    assert [line[: len(computation)] for line in rest if not line.startswith("next: ")] == [computation] * bool(
        computation
    )
    assert "Traceback" not in done.stderr


@pytest.mark.nightly
def test_the_current_baseline_and_the_suites_own_policy_are_the_defaults(
    evalboard: Call, baseline: RunRecord, manager: str
) -> None:
    done = evalboard("baseline", "set", str(baseline.pk), "--reason", "As shipped.", EVALBOARD_TOKEN=manager)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(
        f"Run {baseline.pk} is the baseline of colours for paint under pinned: 100.0 points. http"
    )
    made = BaselineRecord.objects.get()
    assert (made.run_id, made.reason, made.set_by.get_username()) == (baseline.pk, "As shipped.", "mara")  # type: ignore[union-attr]
    candidate = judged.run()
    done = evalboard("release", str(candidate.pk), "--label", "commit=1f3a")
    release = ReleaseRecord.objects.get()
    assert (done.returncode, release.policy.slug, release.labels) == (2, "strict", {"commit": "1f3a"})
    assert release.gates.get().baseline == made


@pytest.mark.nightly
def test_a_changed_stack_is_judged_where_it_is_the_treatment(evalboard: Call, baseline: RunRecord) -> None:
    candidate = judged.run(by=build.process(build.bucket("bfloat16")))
    done = evalboard("release", str(candidate.pk), *against(baseline, "--treatment", "stack"))
    assert (done.returncode, ReleaseRecord.objects.get().treatment) == (0, "stack")
    assert not ReleaseRecord.objects.get().nothing_caches


@pytest.mark.nightly
def test_a_persons_word_that_nothing_caches_is_kept_with_the_release(evalboard: Call, baseline: RunRecord) -> None:
    evalboard("release", str(judged.run().pk), *against(baseline, "--nothing-caches"))
    assert ReleaseRecord.objects.get().nothing_caches


def test_json_is_the_release_and_nothing_else(evalboard: Call, baseline: RunRecord) -> None:
    done = evalboard("release", str(judged.run(N_CASES // 2).pk), *against(baseline, "--json"))
    body: dict[str, Any] = json.loads(done.stdout)
    assert (done.returncode, body["verdict"], done.stderr) == (1, "no_ship", "")
    again = evalboard("release", "--show", body["id"], "--json")
    assert (again.returncode, json.loads(again.stdout)) == (1, body)
    assert ReleaseRecord.objects.count() == 1


@pytest.mark.nightly
def test_several_gates_are_a_table_and_an_advisory_one_does_not_decide(evalboard: Call, baseline: RunRecord) -> None:
    shapes = judged.suite("shapes")
    theirs, mine = judged.run(version=shapes), judged.run(N_CASES // 2, version=shapes)
    other = build.process(build.bucket(weights="e" * 64))
    colours = f"colours:{judged.run(by=other).pk}:{judged.run(by=other).pk}"
    gates = ("--gate", colours, "--advisory", f"shapes:{mine.pk}:{theirs.pk}", "--policy", "lenient")
    done = evalboard("release", *gates)
    assert done.returncode == 0
    table = [line for line in done.stdout.splitlines() if line.startswith("  ")]
    assert [line.split()[:3] for line in table] == [["colours", "critical", "ship"], ["shapes", "advisory", "no-ship"]]
    assert "−50.0 [−" in table[1]
    assert "\ncolours: Logprobs agree to the bit" in done.stdout
    both = evalboard("release", "--gate", colours, "--gate", f"shapes:{mine.pk}:{theirs.pk}", "--policy", "lenient")
    assert both.returncode == 1


@pytest.mark.nightly
def test_it_waits_for_a_candidate_that_is_still_at_work(evalboard: Call, baseline: RunRecord) -> None:
    candidate = build.run(SuiteVersionRecord.objects.get(), repeats=5)

    def decode() -> None:
        assert not ReleaseRecord.objects.exists()
        served_by = build.process()
        for repeat in range(1, 6):
            build.decode(candidate, repeat, judged.answers(N_CASES), by=served_by)

    first_line = f"run {candidate.pk}: queued, 0 of {5 * N_CASES} responses\n"
    done = evalboard("release", str(candidate.pk), *against(baseline, "--wait"), meanwhile=[(first_line, decode)])
    assert done.returncode == 0
    assert done.stdout.startswith(f"Release {ReleaseRecord.objects.get().pk}: ship. http")


@pytest.mark.parametrize("status", few(["failed", "cancelled"], 1))
def test_waiting_for_a_run_that_comes_to_nothing_is_4(
    evalboard: Call, pair: tuple[RunRecord, RunRecord], status: str
) -> None:
    candidate = build.run()
    RunRecord.objects.filter(pk=candidate.pk).update(status=status)
    done = evalboard("release", str(candidate.pk), "--baseline", str(pair[0].pk), "--wait")
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith(f"evalboard: Run {candidate.pk} is {status}: there is nothing to judge. http")
    assert not ReleaseRecord.objects.exists()


@pytest.mark.nightly
def test_ctrl_c_leaves_the_runs_going_and_says_how_to_come_back(
    evalboard: Call, pair: tuple[RunRecord, RunRecord]
) -> None:
    candidate = build.run()
    asked = ("release", str(candidate.pk), "--baseline", str(pair[0].pk), "--wait")
    done = evalboard(*asked, meanwhile=[("queued", ctrl_c)])
    assert done.returncode == 130
    _, come_back = done.stderr.splitlines()
    assert come_back == f"The runs go on. Come back with: evalboard {' '.join(asked)}"
    candidate.refresh_from_db()
    assert (candidate.status, ReleaseRecord.objects.exists()) == ("queued", False)


@pytest.mark.nightly
def test_a_release_is_shown_again_after_further_repeats(evalboard: Call, baseline: RunRecord) -> None:
    candidate = judged.open_run()
    assert evalboard("release", str(candidate.pk), *against(baseline)).returncode == 2
    release = ReleaseRecord.objects.get()
    add_repeats(run_id=baseline.pk, n=5)
    add_repeats(run_id=candidate.pk, n=5)
    for run in (baseline, candidate):
        served_by = build.process(run.bucket)
        for repeat in range(6, 11):
            build.decode(run, repeat, judged.answers(N_CASES), by=served_by)
    done = evalboard("release", "--show", str(release.pk))
    assert (done.returncode, done.stdout.startswith(f"Release {release.pk}: ship. ")) == (0, True)


def test_a_server_that_does_not_answer_is_4(evalboard: Call) -> None:
    done = evalboard("release", "--show", "1", EVALBOARD_URL="http://127.0.0.1:9")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (4, "", 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("release",), "The id is missing"),
        (("release", "newest"), "newest is no id"),
        (("release", "1", "--baseline", "newest"), "newest is no id"),
        (("release", "1", "--treatment", "weather"), "Must be one of: model, stack, service"),
        (("release", "1", "--label", "commit"), "commit is not KEY=VALUE"),
        (("release", "--gate", "colours"), "is not SUITE:CANDIDATE"),
        (("release", "--gate", "colours:x"), "x is no id"),
        (("release", "--gate", "a:1:2:3"), "is not SUITE:CANDIDATE"),
        (("release", "1", "--gate", "colours:1"), "It already names what is judged; leave out the rest"),
        (("release", "1", "--show", "2"), "It already names what is judged; leave out the rest"),
        (("release", "--show", "x"), "x is no id"),
        (("baseline", "set", "x", "--reason", "y"), "x is no id"),
        (("baseline", "set", "1"), "Missing option '--reason'"),
    ],
)
def test_wrong_use_is_one_sentence_and_64_before_anybody_is_asked(
    evalboard: Call, arguments: tuple[str, ...], words: str
) -> None:
    done = evalboard(*arguments, EVALBOARD_URL="http://127.0.0.1:9")
    assert (done.returncode, done.stdout) == (64, "")
    assert words in done.stderr
    assert (done.stderr.startswith("evalboard: "), done.stderr.count("\n")) == (True, 1)


def test_what_the_server_refuses_is_one_sentence_and_64(evalboard: Call, pair: tuple[RunRecord, RunRecord]) -> None:
    first, second = (str(run.pk) for run in pair)
    at_work = build.run()
    for arguments, words in {
        ("release", second): "Suite colours has no baseline for model line paint under profile pinned",
        ("release", second, "--baseline", second): "is not judged against itself",
        ("release", second, "--baseline", "999999"): "There is no run 999999",
        ("release", "999999"): "There is no run 999999",
        ("release", second, "--baseline", first, "--policy", "nothing"): "There is no policy nothing",
        ("release", second, "--baseline", first, "--suite", "shapes"): "Must be a run of suite shapes",
        ("release", str(at_work.pk), "--baseline", first): "is queued; a release judges runs that have ended",
        ("release", "--show", "999999"): "There is no release 999999",
        ("baseline", "set", first, "--reason", "Mine."): "needs the scope sign",
    }.items():
        done = evalboard(*arguments)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (64, "", 1), done.stderr
        assert words in done.stderr
    assert not ReleaseRecord.objects.exists()
    assert not BaselineRecord.objects.exists()


def test_no_exit_code_says_ship_of_a_verdict_written_into_the_database(
    evalboard: Call, baseline: RunRecord, settings: Any
) -> None:
    settings.VERDICT_KEYS = ("0123456789" * 5,)
    candidate = judged.run(N_CASES, by=build.process(build.bucket("float32")))
    first = evalboard("release", str(candidate.pk), "--baseline", str(baseline.pk), "--policy", "strict")
    assert first.returncode == 2, first.stderr
    Verdict.objects.update(word="ship")
    refused = evalboard("release", "--show", str(ReleaseRecord.objects.get().pk))
    assert refused.returncode not in (0, 1, 2, 3)
    assert "was changed in the database" in refused.stderr

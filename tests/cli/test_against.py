"""`evalboard run --wait --against`, as CI calls it: verdicts, leans, reports, and what goes wrong."""

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from evalboard.cli.main import main
from runs.baselines import set_baseline
from runs.catalogue import create_policy
from runs.models import BaselineRecord, BucketRecord, ReleaseRecord, RunRecord
from tests import build, judged
from tests.cli.conftest import ctrl_c
from tests.cli.decoding import Decoding
from tests.judged import N_CASES, answers

Call = Callable[..., "CompletedProcess[str]"]

ASKED = ("run", "colours", "--endpoint", "local", "--wait")
PINNED = (*ASKED, "--profile", "pinned")
FAST = (*ASKED, "--profile", "fast", "--repeats", "1")
RIGHT, HALF, WRONG = answers(N_CASES), answers(N_CASES // 2), answers(0)
OTHER_WEIGHTS = {"weights": judged.WORSE}


@pytest.fixture
def baseline(transactional_db: None) -> RunRecord:
    """A run that is the current baseline; the policy of suites that carry none is as lenient as `lenient`."""
    judged.policy()
    run = judged.run()
    set_baseline(suite="colours", run=run.pk, reason="As shipped.", user=build.user("mara", "release manager"))
    return run


@pytest.fixture
def mixed(transactional_db: None) -> BucketRecord:
    judged.suite()
    build.endpoint()
    build.profile("fast")
    judged.policy()
    create_policy(slug="rough", title="", settings={"rule": "paired", "tolerance_points": 30.0})
    return build.bucket(batch_class="mixed")


@pytest.fixture
def rough(mixed: BucketRecord) -> RunRecord:
    """The current baseline of the profile that batches cases as they come; shuffled, so that equal repeats count."""
    version, by = judged.suite(), build.process(mixed)
    run = build.finished_run(*[RIGHT] * 5, version=version, by=by, under="fast", is_shuffled=True)
    set_baseline(suite="colours", run=run.pk, reason="As shipped.", user=build.user("mara", "release manager"))
    return run


@pytest.mark.parametrize(
    ("texts", "served", "policy", "code", "word"),
    [
        pytest.param(HALF, OTHER_WEIGHTS, "lenient", 1, "no-ship", id="no-ship"),
        pytest.param(
            HALF, {}, "lenient", 3, "not comparable", id="one bucket, two computations", marks=pytest.mark.nightly
        ),
        pytest.param(RIGHT, {}, "strict", 2, "inconclusive", id="inconclusive"),
        pytest.param(
            RIGHT, {"dtype": "bfloat16"}, "lenient", 3, "not comparable", id="not comparable", marks=pytest.mark.nightly
        ),
        pytest.param(
            (*RIGHT[1:], None),
            {},
            "lenient",
            2,
            "inconclusive",
            id="incomplete, and a verdict asked",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_the_exit_code_is_the_verdict(
    evalboard: Call, baseline: RunRecord, texts: Any, served: Any, policy: str, code: int, word: str
) -> None:
    with Decoding(texts, build.bucket(**served)):
        done = evalboard(*PINNED, "--against", str(baseline.pk), "--policy", policy)
    release = ReleaseRecord.objects.get()
    gate = release.gates.get()
    assert (done.returncode, gate.baseline_run, release.policy.slug) == (code, baseline, policy)
    end, verdict, sentence, *_ = done.stdout.splitlines()
    assert end.startswith(f"Run {gate.candidate_run_id} ")
    assert verdict.startswith(f"Release {release.pk}: {word}. http://")
    assert sentence == release.verdict.document["summary"]  # type: ignore[union-attr]


@pytest.mark.nightly
def test_both_sides_asked_for_in_turn_are_judged_by_each_other(evalboard: Call, transactional_db: None) -> None:
    judged.suite()
    judged.policy()
    build.profile()
    build.endpoint()
    with Decoding(RIGHT):
        done = evalboard(*PINNED, "--in-turn-with", "local", "--policy", "lenient")
    release = ReleaseRecord.objects.get()
    gate = release.gates.get()
    assert (done.returncode, gate.baseline_run_id < gate.candidate_run_id) == (0, True)
    assert done.stdout.splitlines()[1].startswith(f"Release {release.pk}: ship. http://")
    for run in (gate.baseline_run, gate.candidate_run):
        assert f"Run {run.pk}: http://" in done.stderr


def test_a_ship_against_the_current_baseline_is_0_and_leaves_every_report(
    evalboard: Call, baseline: RunRecord, tmp_path: Path
) -> None:
    junit, summary, comment = (tmp_path / name for name in ("out.xml", "summary.md", "comment.md"))
    summary.write_text("# What was there\n")
    files = ("--junit", str(junit), "--summary", str(summary), "--comment", str(comment))
    with Decoding(RIGHT):
        done = evalboard(*PINNED, "--against", "current", "--policy", "lenient", *files, "--label", "commit=1f3a")
    assert done.returncode == 0, done.stderr
    release = ReleaseRecord.objects.get()
    assert (release.labels, release.gates.get().candidate_run.labels) == ({"commit": "1f3a"}, {"commit": "1f3a"})
    assert release.gates.get().baseline == BaselineRecord.objects.get()
    [suite] = ElementTree.parse(junit).getroot()  # noqa: S314  our own
    assert (suite.get("name"), suite.get("tests"), suite.get("failures")) == ("colours", str(N_CASES), "0")
    said = summary.read_text()
    assert said.startswith("# What was there\n## ✔ Ship: colours\n")
    assert f"/releases/{release.pk}/)" in said
    assert comment.read_text().startswith("<!-- evalboard: colours -->\n## ✔ Ship: colours\n")


@pytest.mark.nightly
def test_what_the_candidate_broke_is_a_failure_with_its_reason(
    evalboard: Call, baseline: RunRecord, tmp_path: Path
) -> None:
    junit = tmp_path / "out.xml"
    with Decoding(HALF, build.bucket(**OTHER_WEIGHTS)):
        done = evalboard(*PINNED, "--against", "current", "--policy", "lenient", "--junit", str(junit), "--json")
    body = json.loads(done.stdout)
    assert (done.returncode, body["release"]["verdict"], body["run"]["status"]) == (1, "no_ship", "finished")
    assert body["lean"] is None
    root = ElementTree.parse(junit).getroot()  # noqa: S314  our own
    failed = {each.get("name"): each.find("failure") for each in root.iter("testcase") if len(each)}
    assert set(failed) == {f"case-{number:02}" for number in range(N_CASES // 2, N_CASES)}
    [first, *_] = failed.values()
    assert first is not None
    assert first.get("message") == "Fell to 0.0 points from 100.0 of the baseline."
    assert "red" in (first.text or "")


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("texts", "more", "code", "word"),
    [
        pytest.param(RIGHT, (), 0, "tendency: ship", id="ship"),
        pytest.param(WRONG, (), 0, "tendency: no-ship", id="no-ship"),
        pytest.param(WRONG, ("--fail-on-lean",), 5, "tendency: no-ship", id="no-ship, and that fails"),
    ],
)
def test_a_rough_profile_gives_a_lean_and_never_a_verdict(
    evalboard: Call, rough: RunRecord, texts: Any, more: tuple[str, ...], code: int, word: str
) -> None:
    with Decoding(texts, rough.bucket):
        done = evalboard(*FAST, "--against", "current", "--policy", "rough", *more)
    assert (done.returncode, done.stdout.splitlines()[1].split(". ")[0]) == (
        code,
        f"Release {ReleaseRecord.objects.get().pk}: {word}",
    )
    assert "A tendency, not a verdict" in done.stdout


@pytest.mark.nightly
def test_as_many_rough_repeats_as_a_verdict_takes_are_a_lean_all_the_same(evalboard: Call, rough: RunRecord) -> None:
    with Decoding(WRONG, rough.bucket):
        five = ("--repeats", "5", "--shuffle")
        done = evalboard(*FAST, *five, "--against", "current", "--policy", "rough", "--json")
    body = json.loads(done.stdout)
    assert (done.returncode, body["release"]["verdict"], body["lean"]) == (0, "no_ship", "no_ship")


@pytest.mark.nightly
def test_a_rough_profile_without_a_baseline_is_0_and_says_how_to_make_one(
    evalboard: Call, mixed: BucketRecord, tmp_path: Path
) -> None:
    with Decoding(WRONG, mixed):
        done = evalboard(*FAST, "--against", "current", "--fail-on-lean", "--comment", str(tmp_path / "comment.md"))
    run = RunRecord.objects.get()
    assert (done.returncode, ReleaseRecord.objects.exists()) == (0, False)
    assert f'evalboard baseline set {run.pk} --reason "…"' in done.stdout
    assert "no lean is given" in (tmp_path / "comment.md").read_text()


def test_a_verdict_that_cannot_be_is_refused_before_anything_is_decoded(evalboard: Call, mixed: BucketRecord) -> None:
    build.profile("pinned")
    other = judged.run(version=judged.suite("shapes"))
    pinned = (*ASKED, "--profile", "pinned")
    for arguments, words in {
        (*pinned, "--against", "current"): "has no baseline for model line paint under profile pinned",
        (*pinned, "--against", "999999"): "There is no run 999999",
        (*pinned, "--against", str(other.pk)): f"Run {other.pk} is of suite shapes, not of colours",
        (*pinned, "--against", "current", "--policy", "nothing"): "There is no policy nothing",
    }.items():
        done = evalboard(*arguments)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (64, "", 1), done.stderr
        assert words in done.stderr
    assert not RunRecord.objects.exclude(pk=other.pk).exists()


@pytest.mark.nightly
def test_a_run_that_is_cancelled_is_4_and_its_reports_say_so(
    evalboard: Call, baseline: RunRecord, tmp_path: Path
) -> None:
    junit, summary = tmp_path / "out.xml", tmp_path / "summary.md"
    with Decoding((), cancels=True):
        done = evalboard(*PINNED, "--against", "current", "--junit", str(junit), "--summary", str(summary))
    assert (done.returncode, "is cancelled: 0 of 40 responses, no score." in done.stdout) == (4, True)
    [suite] = ElementTree.parse(junit).getroot()  # noqa: S314  our own
    assert suite.get("errors") == str(N_CASES)
    assert "cancelled" in summary.read_text()
    assert not ReleaseRecord.objects.exists()


def test_ctrl_c_leaves_the_run_going_and_says_how_to_come_to_its_verdict(evalboard: Call, baseline: RunRecord) -> None:
    done = evalboard(*PINNED, "--against", "current", meanwhile=[("queued", ctrl_c)])
    run = RunRecord.objects.exclude(pk=baseline.pk).get()
    address, queued, last = done.stderr.splitlines()
    assert ("http://" in address, "queued" in queued) == (True, True)
    come_back = f"evalboard release {run.pk} --baseline current --wait"
    assert (done.returncode, last) == (130, f"Run {run.pk} goes on. Come back with: {come_back}")
    assert run.status == "queued"


@pytest.mark.nightly
def test_the_ci_says_which_commit_it_was(evalboard: Call, baseline: RunRecord) -> None:
    github = {"GITHUB_ACTIONS": "true", "GITHUB_SHA": "0f3a", "GITHUB_REF": "refs/pull/12/merge"}
    named = ("--repeats", "1", "--label", "branch=mine")
    assert evalboard(*[each for each in PINNED if each != "--wait"], *named, **github).returncode == 0
    labels = RunRecord.objects.exclude(pk=baseline.pk).get().labels
    assert labels == {"commit": "0f3a", "branch": "mine", "pull_request": "12"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "a", "--endpoint", "b", "--profile", "c", "--against", "current"), "--against: It needs --wait"),
        (("run", "a", "--endpoint", "b", "--profile", "c", "--junit", "x.xml"), "--junit: It needs --wait"),
        ((*PINNED, "--fail-on-lean"), "--fail-on-lean: It needs --against"),
        ((*PINNED, "--policy", "strict"), "--policy: It needs --against"),
        ((*PINNED, "--treatment", "stack"), "--treatment: It needs --against"),
        ((*PINNED, "--against", "newest"), "newest is no id"),
        ((*PINNED, "--against", "1", "--treatment", "weather"), "Must be one of: model, stack, service"),
        ((*PINNED, "--junit", "no/such/folder/out.xml"), "no/such/folder/out.xml cannot be written"),
        (("wait", "1", "--summary", "."), ". cannot be written"),
        (("release", "1", "--comment", "no/such/folder/x.md"), "cannot be written"),
        (("compare", "1", "x"), "x is no id"),
    ],
)
def test_wrong_use_is_64_before_anybody_is_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    monkeypatch.setenv("EVALBOARD_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("EVALBOARD_TOKEN", "evb_none")
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    out, err = capsys.readouterr()
    assert (ended.value.code, out, err.count("\n")) == (64, "", 1)
    assert words in err

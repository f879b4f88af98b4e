"""The reports that `evalboard wait` and `evalboard release` leave, and what becomes of one that cannot be written."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from runs.models import ReleaseRecord
from tests import build, judged
from tests.judged import N_CASES

Call = Callable[..., "CompletedProcess[str]"]


def test_a_run_by_itself_lists_what_failed_and_what_is_missing(evalboard: Call, tmp_path: Path) -> None:
    run = build.finished_run(("blue", "red", None), ("blue", "blue", "blue"))
    junit, summary = tmp_path / "out.xml", tmp_path / "summary.md"
    done = evalboard("wait", str(run.pk), "--junit", str(junit), "--summary", str(summary), "--comment", "")
    assert done.returncode == 4, "it is incomplete"
    [suite] = ElementTree.parse(junit).getroot()  # noqa: S314  our own
    assert {name: suite.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "3",
        "failures": "1",
        "errors": "1",
    }
    found = [(each.get("name"), [part.get("message") for part in each]) for each in suite.iter("testcase")]
    assert found == [
        ("sea", ["Right in 1 of 2 repeats, 50.0 points."]),
        ("a/b c", ["1 of 2 responses are missing: prompt_too_long."]),
        ("sky", []),
    ]
    assert f"/runs/{run.pk}/repeats/1/cases/sea/)" in summary.read_text()


@pytest.mark.nightly
def test_a_release_has_a_testsuite_for_each_suite(evalboard: Call, transactional_db: None, tmp_path: Path) -> None:
    judged.policy()
    shapes = judged.suite("shapes")
    by = build.process(build.bucket(weights=judged.WORSE))
    pairs = {
        "colours": (judged.run(), judged.run(by=by)),
        "shapes": (judged.run(version=shapes), judged.run(4, by=by, version=shapes)),
    }
    gates = [f"{suite}:{candidate.pk}:{baseline.pk}" for suite, (baseline, candidate) in pairs.items()]
    junit, comment = tmp_path / "out.xml", tmp_path / "comment.md"
    files = ("--junit", str(junit), "--comment", str(comment))
    done = evalboard("release", "--gate", gates[0], "--advisory", gates[1], "--policy", "lenient", *files)
    assert done.returncode == 0, done.stderr
    suites = list(ElementTree.parse(junit).getroot())  # noqa: S314  our own
    assert [(each.get("name"), each.get("tests"), each.get("failures")) for each in suites] == [
        ("colours", str(N_CASES), "0"),
        ("shapes", str(N_CASES), "4"),
    ]
    assert comment.read_text().startswith("<!-- evalboard: colours shapes -->\n")


@pytest.mark.nightly
def test_a_report_that_cannot_be_written_hides_no_verdict(evalboard: Call, transactional_db: None) -> None:
    judged.policy()
    baseline, candidate = judged.run(), judged.run(N_CASES // 2)
    asked = ("release", str(candidate.pk), "--baseline", str(baseline.pk), "--policy", "lenient")
    done = evalboard(*asked, "--junit", "/dev/full")
    assert (done.returncode, "no-ship" in done.stdout) == (1, True)
    assert "evalboard: /dev/full cannot be written: No space left on device." in done.stderr
    shipped = evalboard("release", "--show", str(ReleaseRecord.objects.get().pk), "--summary", "/dev/full")
    assert shipped.returncode == 1
    good = evalboard("wait", str(candidate.pk), "--summary", "/dev/full")
    assert (good.returncode, "finished" in good.stdout) == (4, True)

"""The recipes of CONTRIBUTING.md, followed in a copy: a few files by hand, then the generators, and the tests pass.

And a wing is taken out of one.
"""

import ast
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.conftest import ROOT

MAX_FILES = 3  # by hand
NEEDED = (
    *("evalboard", "frontend", "runs", "worker", "bench", "tests", "tools", "docs", "requirements"),
    *("manage.py", "pyproject.toml"),
)
NOT_COPIED = shutil.ignore_patterns(
    "node_modules"
)  # what is compiled is copied too: a copy keeps the times of its files
Patch = dict[str, dict[str, str]]  # by file, what is put before what

ROWS, READ = "evalboard/wording/run_warnings.py", "runs/run/read.py"
GOLDEN = "tests/core/golden/run_warnings.py"
RUN_WARNING: Patch = {  # of a new fact
    ROWS: {
        "    n_total: int": "    n_throttled: int = 0\n",
        '@warns("info", must_act=None, subject="resolution")\ndef coarse_suite': (
            '@warns("warning", must_act="operator", subject="speed")\n'
            "def throttled(run: WarnedRun) -> Iterator[str]:\n"
            '    """the GPU was too hot to run at full speed"""\n'
            "    if run.n_throttled:\n"
            "        yield f\"{counted(run.n_throttled, 'response')} came slowly: cool the GPU.\"\n\n\n"
        ),
    },
    READ: {"        n_total=": "        n_throttled=facts.n_throttled,\n"},
    GOLDEN: {'    "A suite of 40 cases"': '    "A hot GPU": lambda: read_run_warnings(n_throttled=3),\n'},
}
RELEASE_WARNING: Patch = {
    "evalboard/wording/release_warnings.py": {
        '@warns("answers", must_act="operator", subject="pins")\ndef pins_broken': (
            '@warns("noise", must_act="author", subject="repeats")\n'
            "def uneven_repeats(facts: Facts) -> str:\n"
            '    """one side has more repeats than the other"""\n'
            "    return f\"{facts['n_baseline']} repeats against {facts['n_candidate']}.\"\n\n\n"
        ),
    },
    "evalboard/core/release/verdict.py": {
        "    if evidence.load is not None:\n": (
            "    if evidence.k_baseline != evidence.k_candidate:\n"
            '        facts = {"n_baseline": evidence.k_baseline, "n_candidate": evidence.k_candidate}\n'
            '        warnings.append(VerdictLine("uneven_repeats", facts))\n'
        ),
    },
    "tests/core/golden/releases.py": {
        '    "A pin is broken"': (
            '    "More repeats on one side": lambda: read_release(\n'
            '        ("critical", "colours", question(runs(*[9] * 5, n_cases=9), runs(*[9] * 6, n_cases=9)))\n'
            "    ),\n"
        ),
    },
}
FLIP: Patch = {
    "evalboard/core/compare/divergence.py": {
        "    shift_max: float | None = _evidence(None)\n": "    shift_squares: float | None = _evidence(None)\n",
        '        "shift_max": _spread(': (
            '        "shift_squares": _spread(known.squares[pairs].tolist(), pairs, laid),\n'
        ),
    },
    "frontend/compare/pair_words.py": {
        "def _margins(": (
            "def _squares(facts: CauseFacts) -> str:\n"
            '    squares = facts.get("shift_squares")\n'
            '    return "" if squares is None else f"{numbers.fixed(squares, 2)} in all"\n\n\n'
        ),
        '    "margins at the flip": _margins': '    "squares of the shift": _squares,\n',
        '    "near",\n    "ulp",': '    "shift_squares",\n',
    },
    "runs/compare/inputs.py": {'"\nMODEL_TERMS = ': "0"},  # METHOD, raised
}
GATE: Patch = {
    "evalboard/core/release/gate_verdict.py": {
        '"p_no_ship", "is_worth_a_look"}]}': '"width", ',
        "    p_change: float | None = None\n": "    width: float | None = None\n",
        '            "alpha": change.alpha,\n': '            "width": change.high - change.low,\n',
        '"\nFIRST_VERDICT_RULES': "0",  # VERDICT_RULES, raised
    },
    "evalboard/contract/release.py": {
        "    look: Number | None\n    targeted:": (
            '    width: Annotated[float | None, says(description="of the interval, in points")] = optional\n'
        ),
    },
    "frontend/release/templates/release/_gates.html": {
        '</td>\n          <td class="number resolves">': (
            '{% if gate.width is not None %} <span class="quiet">{{ gate.width|points }} wide</span>{% endif %}'
        ),
    },
}
# What `python -m tests.core.golden --write` does, and the tests of its page.
WRITE_AND_TEST = """
from tests.core.golden import corpus, test_sentences
read = corpus.read_all()
corpus.PAGE.write_text(corpus.render(read))
for test in [each for name, each in vars(test_sentences).items() if name.startswith("test_")]:
    test(read)
"""
SHOW_FLIP = """
import django
django.setup()
from dataclasses import replace
from evalboard.core.compare.cause import find_cause
from evalboard.core.compare.known_pair import Pair
from frontend.compare.pair_words import list_evidence
from tests.core.test_cause import ASSUMED, SIDE
from tests.core.test_divergence import CORPUS, as_written
[pair] = [pair for pair in CORPUS if pair.wanted.get("shift_max") == 0.11]
parting = as_written(pair)
assert parting.shift_squares == parting.n_usable * parting.shift_rms**2, parting
cause = find_cause(Pair(SIDE, replace(SIDE, text="another")), parting, ASSUMED)
assert cause.evidence["shift_squares"] == parting.shift_squares, cause
assert ("squares of the shift", "0.01 in all") in list_evidence(cause.evidence), list_evidence(cause.evidence)
"""
SHOW_GATE = """
import django
django.setup()
from django.template.loader import render_to_string
from evalboard.contract.release import Gate
from evalboard.core.release import verdict
from evalboard.core.release.gate_verdict import GateInput
from evalboard.wording.release import write_verdict
from frontend.release import page
from tests.core import test_verdict_of_gates
from tests.core.questions import STRICT, pinned
from tests.frontend import release_stage
test_verdict_of_gates.test_the_document_has_the_shape_that_is_kept()
judged = verdict.judge_gate(pinned(n_broken=8), STRICT)
[document] = write_verdict(verdict.decide_from_gates([GateInput("critical", "colours", judged)]))["gates"]
gate = Gate.from_stored(release_stage.gate().to_stored() | {"width": document["width"]})
assert gate.to_json()["width"] == judged.high - judged.low, gate
shown = page.context(release_stage.report(gate), buckets={}, changes={}, comparison=None, between=None)
html = render_to_string("release/_gates.html", shown)
assert f"{gate.width:.1f} wide" in html, html
"""

WINGS = "evalboard/wings.py"
# Of the tests that stay: a sample that starts every command, goes through each list that wings register in, and renders
# each page that links to one or has parts of one.
STAYING = (
    "tests/api/test_imports.py::test_a_log_is_read_once",
    "tests/api/test_probes.py::test_a_probe_is_asked_for_and_followed_to_its_finding",
    "tests/cli/test_start.py",
    "tests/faults/test_sweeps.py::test_sweeps_at_once_take_each_lost_shard_back_once",
    "tests/frontend/test_board.py::test_a_run_under_way_says_what_it_waits_for",
    "tests/frontend/test_compare.py::test_the_first_sentence_says_why_and_the_banner_names_what_moved",
    "tests/frontend/test_compare_choice.py",
    "tests/frontend/test_imported_runs.py::test_every_page_of_an_imported_run_opens",
    "tests/frontend/test_trace_diff.py::test_two_answers_are_compared_word_by_word",
    "tests/frontend/test_workers.py::test_a_worker_says_how_many_seats_its_engine_got",
    "tests/runs/test_run_estimates.py",
    "tests/worker/test_jobs.py::test_work_that_ends_needs_nothing_more",
)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A folder with the product and its tests."""
    for name in NEEDED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=NOT_COPIED)
        else:
            shutil.copy2(ROOT / name, tmp_path / name)
    return tmp_path


def follow(root: Path, patch: Patch) -> None:
    """Change a few files of a copy by hand."""
    assert len(patch) <= MAX_FILES
    for name, parts in patch.items():
        text = (root / name).read_text()
        for place, new in parts.items():
            assert text.count(place) == 1, f"{name} has {place!r} {text.count(place)} times"
            text = text.replace(place, new + place)
        (root / name).write_text(text)


def run(root: Path, *words: str) -> str:
    """Run Python there; return what it printed, "" where it passed."""
    own = {"PYTHONPATH": str(root), "DJANGO_SETTINGS_MODULE": "evalboard.settings"}
    ended = subprocess.run([sys.executable, *words], cwd=root, env=os.environ | own, capture_output=True, text=True)
    return "" if ended.returncode == 0 else ended.stdout + ended.stderr


def write_fields(root: Path) -> None:
    assert run(root, "tools/api_fields.py", "--write") == ""


def list_filled(source: Path) -> set[str]:
    """Return the facts that the database's side gives a run that is warned of."""
    calls = (node for node in ast.walk(ast.parse(source.read_text())) if isinstance(node, ast.Call))
    [call] = [call for call in calls if ast.unparse(call.func) == "WarnedRun"]
    return {str(keyword.arg) for keyword in call.keywords}


def list_facts(source: Path) -> set[str]:
    """Return the facts that warnings are made of."""
    classes = (node for node in ast.walk(ast.parse(source.read_text())) if isinstance(node, ast.ClassDef))
    [of] = [node for node in classes if node.name == "WarnedRun"]
    return {node.target.id for node in of.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)}


@pytest.mark.nightly
def test_a_warning_is_added_to_a_run(copied: Path) -> None:
    follow(copied, RUN_WARNING)
    assert list_filled(copied / READ) == list_facts(copied / ROWS)
    assert "--write" in run(copied, "tools/api_fields.py"), "it says that it has to write"
    write_fields(copied)
    assert run(copied, "-c", WRITE_AND_TEST) == ""
    assert "| `throttled` | warning | operator | the GPU was too hot" in (copied / "docs/api-reference.md").read_text()
    said = (copied / "tests/core/golden/sentences.md").read_text()
    assert "**A hot GPU**\n\n- run warning `throttled`: 3 responses came slowly: cool the GPU.\n" in said


@pytest.mark.nightly
def test_a_warning_is_added_to_a_release(copied: Path) -> None:
    follow(copied, RELEASE_WARNING)
    write_fields(copied)
    assert run(copied, "-c", WRITE_AND_TEST) == ""
    row = "| `uneven_repeats` | warning where noise could change the verdict | author | one side has more repeats"
    assert row in (copied / "docs/releases.md").read_text()
    said = (copied / "tests/core/golden/sentences.md").read_text()
    assert "- warning `uneven_repeats`: 5 repeats against 6.\n" in said


@pytest.mark.nightly
def test_a_number_is_added_to_a_flip(copied: Path) -> None:
    follow(copied, FLIP)
    assert run(copied, "-c", SHOW_FLIP) == ""
    assert run(copied, "tools/api_fields.py") == ""  # REST has any number in `evidence`


@pytest.mark.nightly
def test_a_number_is_added_to_a_gate(copied: Path) -> None:
    follow(copied, GATE)
    write_fields(copied)
    assert run(copied, "-c", SHOW_GATE) == ""
    assert "| `gates.width` | of the interval, in points |" in (copied / "docs/api-reference.md").read_text()


@pytest.mark.nightly
@pytest.mark.timeout(1200)  # tests of its own, in a cluster of their own
@pytest.mark.parametrize("taken", [("lab",), ("forced",), ("forced", "lab")], ids="+".join)
def test_a_wing_is_taken_out(taken: Sequence[str], copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the import contract protects is deleted, with the name that registers it. The rest works without."""
    contracts = tomllib.loads((copied / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    own = {f"runs.{name}" for name in taken}
    wings = [each for each in contracts if each["name"].startswith("A wing") and own & {*each["protected_modules"]}]
    assert len(wings) == len(taken)
    for module in (module for wing in wings for module in wing["protected_modules"]):
        place = copied / module.replace(".", "/")
        shutil.rmtree(place) if place.is_dir() else place.with_suffix(".py").unlink()
    registered = (copied / WINGS).read_text()
    [line] = [line for line in registered.splitlines() if line.startswith("WINGS = ")]
    names = ast.literal_eval(line.removeprefix("WINGS = "))
    left = tuple(name for name in names if name not in taken)
    assert len(left) == len(names) - len(taken)
    (copied / WINGS).write_text(registered.replace(line, f"WINGS = {left}"))
    monkeypatch.delenv("DATABASE_URL", raising=False)  # a cluster of its own: this session's database is in use
    assert run(copied, "manage.py", "check") == ""
    options = ("-n0", "-q", "-p", "no:cacheprovider")
    assert run(copied, "-m", "pytest", *options, *STAYING) == ""

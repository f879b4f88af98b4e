"""docs/suites.md says what the code does: every kind, option, default and limit, and its examples hold."""

import json
import re
from pathlib import Path

import pytest

from evalboard.contract import suite_limits as limits
from evalboard.core.errors import InvalidInput
from evalboard.core.scoring import EXAMPLES, EXTERNAL, KINDS, PASSES, score
from evalboard.core.scoring.kind import REQUIRED
from evalboard.core.scoring.normalise import NORMALISE_OPTIONS
from evalboard.core.scoring.plan import READS
from evalboard.core.suite import DEFAULT_MAX_TOKENS, parse_suite, read_suite_jsonl
from evalboard.core.suite.mapping import CONVERSIONS, map_rows, parse_mapping

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "suites.md").read_text()
SECTIONS = dict(re.findall(r"^#{2,3} (.+?)\n(.*?)(?=^#{2,3} |\Z)", PAGE, re.MULTILINE | re.DOTALL))


def rows(section):
    """Return {first cell: second cell} of the tables in a section, without their backticks."""
    found = re.findall(r"^\| `([^`]+)` \| (.+?) \|", SECTIONS[section], re.MULTILINE)
    return {name: cell.strip("`") for name, cell in found}


def examples(section):
    return [
        json.loads(block) for block in re.findall(r"^```json\n(.*?)^```$", SECTIONS[section], re.MULTILINE | re.DOTALL)
    ]


def test_every_kind_is_there_with_its_version():
    assert rows("Scorers") == {name: str(kind.version) for name, kind in KINDS.items()}
    found = re.findall(r"^\| `(\w+)` \| \d+ \| (.+?) \|", SECTIONS["Scorers"], re.MULTILINE)
    assert dict(found) == PASSES


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_option_is_there_with_its_default(kind):
    described = rows("python, command and http" if kind in EXTERNAL else kind)
    options = KINDS[kind].options
    missing = {"memory_mb", "processes", "scratch_mb"} - set(options) if kind in EXTERNAL else set()
    assert [name for name in described if name not in missing] == list(options)
    for name, option in options.items():
        if name == "normalise":
            continue
        wanted = "required" if option.default is REQUIRED else json.dumps(option.default)
        assert described[name] == wanted, name


def test_every_step_of_normalisation_is_there_with_its_default():
    assert rows("Normalisation") == {name: json.dumps(option.default) for name, option in NORMALISE_OPTIONS.items()}
    for kind in KINDS.values():
        how = kind.options["normalise"].default if "normalise" in kind.options else {}
        keeps = kind.name in ("json", "tool_calls")
        changed = {name: value for name, value in how.items() if value != NORMALISE_OPTIONS[name].default}
        assert changed == ({"unicode": "keep", "whitespace": "keep"} if keeps else {})


def test_what_a_scorer_may_read_is_there_and_its_example_holds():
    assert rows("Thinking") == {name: json.dumps(option.default) for name, option in READS.items()}
    (example,) = examples("Thinking")
    spec, texts = example["scorer"], {"target": example["target"], "text": example["right"]}
    assert score(spec, **texts, thinking=example["thinking"]).value == 1
    assert score(spec, **{**texts, "text": example["wrong"]}, thinking="").value == 0


@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if kind.scores_here])
def test_the_example_of_every_kind_holds(kind):
    (example,) = examples(kind)
    assert example == EXAMPLES[kind]  # which the form that makes a suite shows
    assert example["scorer"]["kind"] == kind
    assert score(example["scorer"], text=example["right"], target=example["target"]).value == 1
    assert score(example["scorer"], text=example["wrong"], target=example["target"]).value == 0


def test_the_example_suites_are_accepted_and_every_field_is_described():
    (document,) = examples("A suite document")
    parse_suite(document)
    described = rows("A suite document")
    used = document.keys() | {name for case in document["cases"] for name in case}
    assert used | {"tools", "input", "completion"} == described.keys()


def test_the_jsonl_example_is_accepted():
    text = re.findall(r"^```json\n(.*?)^```$", SECTIONS["JSONL"], re.MULTILINE | re.DOTALL)[0]
    assert parse_suite(read_suite_jsonl(text, slug="towns")).max_tokens == 24


def test_the_example_file_is_accepted_and_the_readme_shows_it_as_it_is():
    text = (ROOT / "docs" / "examples" / "my-suite.jsonl").read_text()
    document = parse_suite(read_suite_jsonl(text, slug="my-suite"))
    assert [case.id for case in document.cases] == ["norway", "sum"]
    readme = (ROOT / "README.md").read_text()
    assert f"```json\n{text}```" in readme
    assert "suite push docs/examples/my-suite.jsonl --slug my-suite" in readme


def test_a_missing_scorer_is_refused_once_with_the_kinds_and_an_example():
    cases = [{"id": name, "prompt": "What is it?", "target": "blue"} for name in ("a", "b")]
    with pytest.raises(InvalidInput) as refused:
        parse_suite({"slug": "colours", "cases": cases})
    first, second = refused.value.fields.values()
    assert first.endswith(f'one, such as {{"kind": "exact"}}: the kinds are {", ".join(KINDS)}')
    assert second == "is missing, and the suite has no default scorer"


def test_the_limits_are_those_of_the_code():
    for limit in (
        limits.MAX_CASES, limits.MAX_ID_CHARS, limits.MAX_TEXT_CHARS, limits.MAX_CASE_CHARS, limits.MAX_MESSAGES,
        limits.MAX_TOOLS, limits.MAX_TAGS, limits.MAX_STOPS, limits.MAX_TOKENS, DEFAULT_MAX_TOKENS,
    ):  # fmt: skip
        assert re.search(rf"(?<![\d,]){limit:,}(?!,?\d)", SECTIONS["A suite document"]), limit


def test_the_example_mapping_holds_and_every_conversion_is_described():
    (document,) = examples("Mappings")
    row = {"doc": {"id": "1"}, "question": "?", "gold": "1,200", "metric": "num", "subset": "s", "author": "a"}
    parsed = parse_suite(map_rows([row], parse_mapping(document), slug="short"))
    assert parsed.cases[0].target == 1200
    assert rows("Mappings").keys() - {'{"field": "a.b.0"}'} >= CONVERSIONS.keys()


def test_the_sample_suites_figures_are_its_own():
    cases = json.loads((Path(__file__).resolve().parents[2] / "runs" / "samples" / "sample.json").read_text())["cases"]
    assert f"has {len(cases)} short cases" in SECTIONS["The sample suite"]
    assert f"one of its cases is {100 / len(cases):.1f} points" in SECTIONS["The sample suite"]

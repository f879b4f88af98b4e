"""Suite documents: what is accepted, what is refused by which path, and what a digest covers."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalboard.core.document import MAX_PROBLEMS, text_problem
from evalboard.core.errors import InvalidInput
from evalboard.core.suite import parse_suite, read_suite_json, read_suite_jsonl

EXACT = {"kind": "exact"}


def case(**changes):
    return {"id": "c1", "prompt": "Which town?", "target": "Oslo", **changes}


def suite(*cases, **changes):
    return {"slug": "towns", "title": "Towns", "scorer": EXACT, "cases": list(cases) or [case()], **changes}


def refused_fields(document):
    with pytest.raises(InvalidInput) as refused:
        parse_suite(document)
    return refused.value.fields


def test_a_full_document_comes_back_whole():
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Which town?"}]
    own = {"kind": "contains", "words": True}
    full = {
        "id": "towns/øst-1", "messages": messages, "tools": tools, "target": ["Oslo", "Kristiania"], "scorer": own,
        "tags": ["north"], "group": "g", "reference": True,
    }  # fmt: skip
    parsed = parse_suite(suite(full, max_tokens=24, stop=["\n"]))
    assert (parsed.slug, parsed.title, parsed.max_tokens, parsed.stop) == ("towns", "Towns", 24, ("\n",))
    assert parsed.scorer is not None
    assert parsed.scorer["normalise"]["whitespace"] == "strip"
    found = parsed.cases[0]
    assert (found.index, found.id, found.messages, found.tools) == (0, "towns/øst-1", tuple(messages), tools)
    assert (found.target, found.tags, found.group, found.is_reference) == (
        ["Oslo", "Kristiania"],
        ("north",),
        "g",
        True,
    )
    assert found.scorer is not None
    assert found.scorer["words"] is True


def test_what_is_left_out_has_defaults():
    parsed = parse_suite({"slug": "towns", "scorer": EXACT, "cases": [case()]})
    assert (parsed.title, parsed.max_tokens, parsed.stop) == ("towns", 256, ())
    found = parsed.cases[0]
    assert found.messages == ({"role": "user", "content": "Which town?"},)
    assert (found.tools, found.scorer, found.tags, found.group, found.is_reference) == (None, None, (), "", False)


@pytest.mark.parametrize(
    ("document", "field"),
    [
        (suite(colour="red"), "colour"),
        (suite(slug="To wns"), "slug"),
        (suite(slug="towns\n"), "slug"),
        (suite(slug="a" * 81), "slug"),
        (suite(title=""), "title"),
        (suite(title="a\0b"), "title"),
        (suite(max_tokens=0), "max_tokens"),
        (suite(max_tokens=32769), "max_tokens"),
        (suite(max_tokens=True), "max_tokens"),
        (suite(max_tokens=24.0), "max_tokens"),
        (suite(stop="x"), "stop"),
        (suite(stop=["x", ""]), "stop[1]"),
        (suite(scorer={"kind": "exact", "part": "middle"}), "scorer.part"),
        (suite(case(completion="The town is")), "cases[0].prompt"),
        (suite({"id": "c1", "completion": "", "target": "Oslo"}), "cases[0].completion"),
        (suite({"id": "c1", "completion": "x", "target": "Oslo", "tools": []}), "cases[0].tools"),
        (suite(case(messages=[{"role": "completion", "content": "x"}])), "cases[0].prompt"),
        (
            suite({"id": "c1", "messages": [{"role": "completion", "content": "x"}], "target": "Oslo"}),
            "cases[0].messages[0].role",
        ),
        (suite(cases=[]), "cases"),
        (suite(cases={}), "cases"),
        (suite(cases=[{}] * 200_001), "cases"),
        (suite(3), "cases[0]"),
        (suite(case(colour="red")), "cases[0].colour"),
        (suite(case(id="")), "cases[0].id"),
        (suite(case(id=7)), "cases[0].id"),
        (suite(case(id="x" * 201)), "cases[0].id"),
        (suite(case(id="a\tb")), "cases[0].id"),
        (suite(case(id="a\u2028b")), "cases[0].id"),
        (suite(case(), case(prompt="again")), "cases[1].id"),
        (suite(case(messages=[{"role": "user", "content": "x"}])), "cases[0].prompt"),
        (suite({"id": "a", "target": "b"}), "cases[0].prompt"),
        (suite({"id": "a", "target": "b", "messages": []}), "cases[0].messages"),
        (suite({"id": "a", "target": "b", "messages": [3]}), "cases[0].messages[0]"),
        (suite({"id": "a", "target": "b", "messages": [{"role": "bot", "content": "x"}]}), "cases[0].messages[0].role"),
        (suite({"id": "a", "target": "b", "messages": [{"role": "user"}]}), "cases[0].messages[0].content"),
        (
            suite({"id": "a", "target": "b", "messages": [{"role": "user", "content": "x", "mood": 1}]}),
            "cases[0].messages[0].mood",
        ),
        (suite(case(prompt="x" * 1_000_001)), "cases[0].prompt"),
        (suite(case(prompt="a\0b")), "cases[0].prompt"),
        (suite(case(prompt="a\ud800b")), "cases[0].prompt"),
        (suite(case(target={"a": ["\0"]})), "cases[0].target.a[0]"),
        (suite(case(target={"a\0": 1})), "cases[0].target"),
        (suite(case(target=float("nan"), scorer={"kind": "number"})), "cases[0].target"),
        (suite(case(target=[1.5, float("inf")], scorer={"kind": "number"})), "cases[0].target[1]"),
        (suite(case(tools=[])), "cases[0].tools"),
        (suite(case(tools=[{"type": "function", "function": {}}])), "cases[0].tools[0]"),
        (suite(case(tags="x")), "cases[0].tags"),
        (suite(case(tags=["x", 1])), "cases[0].tags[1]"),
        (suite(case(group=None)), "cases[0].group"),
        (suite(case(reference=1)), "cases[0].reference"),
        (suite(case(), scorer=None), "cases[0].scorer"),
        (suite(case(scorer={"kind": "exakt"})), "cases[0].scorer.kind"),
        (suite(case(target=3)), "cases[0].target"),
        (suite(case(target=["a", 3])), "cases[0].target[1]"),
        (suite(case(target=[])), "cases[0].target"),
        (suite({"id": "a", "prompt": "b"}), "cases[0].target"),
    ],
)
def test_what_is_wrong_is_refused_by_its_path(document, field):
    assert list(refused_fields(document)) == [field]


def test_a_target_nested_without_end_is_refused():
    target: list[object] = []
    for _ in range(5000):
        target = [target]
    fields = refused_fields(suite(case(target=target, scorer={"kind": "json"})))
    assert "nested" in next(iter(fields.values()))


def test_all_problems_are_named_at_once_up_to_a_cap():
    cases = [case(id=f"c{n}", target=n) for n in range(50)]
    fields = refused_fields(suite(*cases, max_tokens=0))
    assert len(fields) == MAX_PROBLEMS
    assert list(fields)[:3] == ["max_tokens", "cases[0].target", "cases[1].target"]


def test_a_wrong_default_scorer_is_named_once_and_not_again_for_every_case():
    assert list(refused_fields(suite(case(), case(id="c2"), scorer={"kind": "none"}))) == ["scorer.kind"]


@pytest.mark.parametrize(
    "scorer", [{"kind": "json", "mode": "parse"}, {"kind": "regex", "pattern": "a"}], ids=lambda spec: spec["kind"]
)
def test_scorers_that_compare_with_nothing_need_no_target(scorer):
    parsed = parse_suite(suite({"id": "a", "prompt": "b", "scorer": scorer}))
    assert parsed.cases[0].target is None


def test_null_is_a_target_for_json_alone():
    assert parse_suite(suite(case(target=None, scorer={"kind": "json"}))).cases[0].target is None
    assert list(refused_fields(suite(case(target=None)))) == ["cases[0].target"]


@pytest.mark.parametrize("case_id", ["a/b", "日本語", "..", "a b", "ø" * 200, "%2F?#"])
def test_a_case_id_may_be_any_printed_text(case_id):
    assert parse_suite(suite(case(id=case_id))).cases[0].id == case_id


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(suite(case(prompt="Which city?")), id="prompt"),
        pytest.param(suite(case(target="Bergen")), id="target"),
        pytest.param(suite(case(id="c2")), id="id"),
        pytest.param(suite(case(tags=["x"])), id="tags"),
        pytest.param(suite(case(group="g")), id="group"),
        pytest.param(suite(case(reference=True)), id="reference"),
        pytest.param(suite(case(scorer={"kind": "contains"})), id="own scorer"),
        pytest.param(suite(scorer={"kind": "contains"}), id="default scorer"),
        pytest.param(suite(max_tokens=255), id="max_tokens"),
        pytest.param(suite(stop=["\n"]), id="stop"),
        pytest.param(suite(case(), case(id="c2")), id="another case"),
    ],
)
def test_any_change_of_content_changes_the_digest(changed):
    assert parse_suite(changed).digest != parse_suite(suite()).digest


@pytest.mark.parametrize(
    "same",
    [
        pytest.param(suite(slug="other", title="Another"), id="names are not content"),
        pytest.param(suite(max_tokens=256, stop=[]), id="defaults written out"),
        pytest.param(suite(scorer={"kind": "exact", "part": "all"}), id="scorer defaults written out"),
        pytest.param(suite(dict(reversed(case().items()))), id="order of fields"),
        pytest.param(
            suite({"id": "c1", "target": "Oslo", "messages": [{"role": "user", "content": "Which town?"}]}),
            id="a prompt is one user message",
        ),
    ],
)
def test_the_same_content_has_the_same_digest(same):
    assert parse_suite(same).digest == parse_suite(suite()).digest


def test_a_completion_is_another_question_than_a_prompt_of_the_same_text():
    parsed = parse_suite(suite({"id": "c1", "completion": "The town is", "target": "Oslo"}))
    assert parsed.cases[0].messages == ({"role": "completion", "content": "The town is"},)
    assert parsed.cases[0].own_input == "The town is"
    assert parsed.digest != parse_suite(suite(case(prompt="The town is"))).digest


def test_the_order_of_cases_is_content_but_not_part_of_a_cases_own_digest():
    one, two = case(), case(id="c2")
    forward, backward = parse_suite(suite(one, two)), parse_suite(suite(two, one))
    assert forward.digest != backward.digest
    assert forward.cases[0].digest == backward.cases[1].digest


def test_jsonl_gives_the_same_suite_as_json():
    cases = [case(id=f"c{n}", prompt="line\u2028separator\n") for n in range(3)]
    header = {"suite": {"title": "Towns", "scorer": EXACT, "max_tokens": 24}}
    lines = [json.dumps(row, ensure_ascii=False) for row in (header, *cases)]
    text = "\ufeff" + "\r\n\n".join(lines) + "\n"
    parsed = parse_suite(read_suite_jsonl(text, slug="towns"))
    assert parsed == parse_suite(suite(*cases, max_tokens=24))


def test_jsonl_without_a_header_takes_its_names_from_outside():
    text = json.dumps(case(scorer=EXACT))
    parsed = parse_suite(read_suite_jsonl(text, slug="towns", title="Towns"))
    assert (parsed.slug, parsed.title, len(parsed.cases)) == ("towns", "Towns", 1)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('{"id": 1}\n{"id": 2', "line 2"),
        ("[1]", "line 1"),
        ('{"id": NaN}', "line 1"),
        ('{"id": 1e999}', "line 1"),
        ('{"id": 1, "id": 2}', "line 1"),
        ('{"suite": {"slug": "x"}}', "suite.slug"),
        ('{"suite": 3}', "suite"),
        ("[" * 100_000, "line 1"),
    ],
)
def test_wrong_lines_are_named_by_number(text, field):
    with pytest.raises(InvalidInput) as refused:
        read_suite_jsonl(text, slug="towns")
    assert list(refused.value.fields) == [field]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "a value is missing"),
        ("{", "a name in double quotes is missing"),
        ('{"a": 1\n"b": 2}', "a comma is missing (line 2, column 1)"),
        ('{"a": NaN}', "NaN"),
        ('{"a": 1, "a": 2}', ""),
        ("[" * 100_000, ""),
    ],
)
def test_what_is_no_strict_json_is_refused_in_one_sentence(text, why):
    with pytest.raises(InvalidInput, match=f"not a JSON document.*{re.escape(why)}"):
        read_suite_json(text)


FIELDS = ["slug", "title", "cases", "id", "prompt", "messages", "target", "scorer", "kind", "role", "x\0", "\ud800"]
ROWS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5),
    max_leaves=20,
)


@given(row=ROWS)
def test_no_row_passes_without_an_id_and_every_path_can_be_shown(row):
    with pytest.raises(InvalidInput) as refused:
        parse_suite({"slug": "x", "scorer": EXACT, "cases": [row, {"prompt": "a case without an id"}]})
    assert refused.value.fields
    assert all(text_problem(path + text) is None for path, text in refused.value.fields.items())

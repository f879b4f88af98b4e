"""Scorer specs: strict, completed, digested; and plans of them."""

import dataclasses

import pytest

from evalboard.core.errors import InvalidInput
from evalboard.core.scoring import EXTERNAL, KINDS, check_spec, plan, plan_digest, reads_thinking, score, scorer_for
from evalboard.core.scoring.plan import KINDS as REGISTRY

ELSEWHERE = tuple(name for name, kind in KINDS.items() if not kind.scores_here)
SMALLEST = {name: {"kind": name, **({"name": "ours"} if name in EXTERNAL else {})} for name in KINDS} | {
    "regex": {"kind": "regex", "pattern": "a"},
    "recorded": {"kind": "recorded", "source": "a tool"},
    "judge": {
        "kind": "judge",
        "endpoint": "jury",
        "profile": "pinned",
        "template": "Is {{answer}} right?",
        "reads": {"choice": {"yes": 1, "no": 0}},
    },
}


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_completed_spec_holds_every_option_and_stays_as_it_is(kind):
    completed = check_spec(SMALLEST[kind])
    assert completed.keys() == {"kind", *KINDS[kind].options} - {"judging"}  # left out where it is the first
    assert check_spec(completed) == completed


@pytest.mark.parametrize("kind", list(KINDS))
def test_an_unknown_option_is_refused_by_its_path(kind):
    with pytest.raises(InvalidInput) as refused:
        check_spec({**SMALLEST[kind], "colour": "red"}, path="cases[3].scorer")
    assert list(refused.value.fields) == ["cases[3].scorer.colour"]


@pytest.mark.parametrize(("kind", "option"), [(kind, option) for kind in KINDS for option in KINDS[kind].options])
def test_no_option_takes_a_value_of_any_type(kind, option):
    with pytest.raises(InvalidInput) as refused:
        check_spec({**SMALLEST[kind], option: [object]})
    assert f"scorer.{option}" in refused.value.fields


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ELSEWHERE])
def test_every_kind_that_reads_responses_says_what_it_reads(kind):
    assert check_spec({**SMALLEST[kind], "reads": "answer"}) == check_spec(SMALLEST[kind])
    for reads in ("thinking", "whole"):
        completed = check_spec({**SMALLEST[kind], "reads": reads})
        assert completed == {**check_spec(SMALLEST[kind]), "reads": reads} == check_spec(completed)
        assert reads_thinking(plan(None, {"a": completed}))
    with pytest.raises(InvalidInput) as refused:
        check_spec({**SMALLEST[kind], "reads": "everything"})
    assert list(refused.value.fields) == ["scorer.reads"]


@pytest.mark.parametrize("kind", ELSEWHERE)  # a team's own is told both
def test_what_reads_nothing_or_all_cannot_choose_what_it_reads(kind):
    with pytest.raises(InvalidInput) as refused:
        check_spec({**SMALLEST[kind], "reads": "whole"})
    assert list(refused.value.fields) == ["scorer.reads"]


@pytest.mark.parametrize(
    ("reads", "thinking", "is_truncated", "expected"),
    [
        ("answer", "51", False, 0.0),
        ("thinking", "51", False, 1.0),
        ("whole", "51", False, 1.0),
        ("thinking", None, None, 0.0),
        ("whole", None, None, 0.0),
        ("thinking", "51", True, 1.0),
        ("whole", "51", True, 1.0),
        ("answer", "51", True, 0.0),
    ],
)
def test_a_scorer_sees_what_it_asks_for_and_nothing_else(reads, thinking, is_truncated, expected):
    spec = {"kind": "contains", "reads": reads}
    found = score(spec, text="seven", target="51", thinking=thinking, is_truncated=is_truncated)
    assert found.value == expected
    if thinking is None and reads == "thinking":
        assert "kept apart as thinking" in found.reason
    whole = score({"kind": "exact", "reads": "whole"}, text="7", target="51\n\n7", thinking="51")
    assert whole.value == 1.0


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        (None, ["scorer"]),
        ([], ["scorer"]),
        ({}, ["scorer.kind"]),
        ({"kind": "bleu"}, ["scorer.kind"]),
        ({"kind": ["exact"]}, ["scorer.kind"]),
        ({"kind": "exact", "normalise": {"case": "upper"}}, ["scorer.normalise.case"]),
        ({"kind": "exact", "normalise": {"colour": "red"}}, ["scorer.normalise.colour"]),
        ({"kind": "exact", "normalise": None}, ["scorer.normalise"]),
        ({"kind": "number", "absolute": -1, "relative": float("nan")}, ["scorer.absolute", "scorer.relative"]),
        ({"kind": "number", "absolute": 10**400}, ["scorer.absolute"]),
        ({"kind": "number", "absolute": True}, ["scorer.absolute"]),
    ],
)
def test_every_wrong_field_is_named(spec, fields):
    with pytest.raises(InvalidInput) as refused:
        check_spec(spec)
    assert list(refused.value.fields) == fields


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"kind": "exact"}, {"kind": "exact", "part": "all", "normalise": {}}),
        ({"kind": "exact"}, {"normalise": {"whitespace": "strip"}, "kind": "exact"}),
        ({"kind": "number", "absolute": 1}, {"kind": "number", "absolute": 1.0}),
        ({"kind": "choice", "letters": "CAB"}, {"kind": "choice", "letters": "ABC"}),
        ({"kind": "exact", "normalise": {"remove": "-_-"}}, {"kind": "exact", "normalise": {"remove": "_-"}}),
        (
            {"kind": "json", "schema": {"type": "object", "minProperties": 1}},
            {"kind": "json", "schema": {"minProperties": 1, "type": "object"}},
        ),
    ],
)
def test_specs_that_mean_the_same_have_one_digest(left, right):
    assert plan_digest(plan(left, {})) == plan_digest(plan(right, {}))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"kind": "exact"}, {"kind": "contains"}),
        ({"kind": "exact"}, {"kind": "exact", "normalise": {"case": "fold"}}),
        ({"kind": "number"}, {"kind": "number", "absolute": 0.5}),
    ],
)
def test_specs_that_differ_have_different_digests(left, right):
    assert plan_digest(plan(left, {})) != plan_digest(plan(right, {}))


def test_a_case_whose_own_scorer_is_the_default_adds_nothing_to_the_plan():
    own = plan({"kind": "exact"}, {"a": {"kind": "exact", "part": "all"}, "b": {"kind": "number"}})
    assert list(own["cases"]) == ["b"]
    assert scorer_for(own, "a")["kind"] == "exact"
    assert scorer_for(own, "b")["kind"] == "number"


def test_a_plan_without_a_scorer_for_a_case_says_so():
    with pytest.raises(InvalidInput, match="no scorer for the case 'b'"):
        scorer_for(plan(None, {"a": {"kind": "exact"}}), "b")


def test_a_wrong_scorer_in_a_plan_names_its_case():
    with pytest.raises(InvalidInput) as refused:
        plan(None, {"word-1": {"kind": "exact", "part": "middle"}})
    assert list(refused.value.fields) == ["scorer of word-1.part"]


def test_new_code_of_a_kind_changes_the_digest_of_plans_that_use_it(monkeypatch):
    uses, does_not = plan({"kind": "exact"}, {}), plan({"kind": "number"}, {})
    before = plan_digest(uses), plan_digest(does_not)
    newer = dataclasses.replace(REGISTRY["exact"], version=REGISTRY["exact"].version + 1)
    monkeypatch.setitem(REGISTRY, "exact", newer)
    assert plan_digest(uses) != before[0]
    assert plan_digest(does_not) == before[1]


def test_an_incomplete_spec_scores_like_its_completed_form():
    short = {"kind": "exact", "normalise": {"case": "fold"}}
    assert score(short, text=" OSLO", target="oslo") == score(check_spec(short), text=" OSLO", target="oslo")

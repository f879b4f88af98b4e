"""The scorer `judge`: what it is asked, and how its answer is read."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalboard.core.document import text_problem
from evalboard.core.errors import InvalidInput
from evalboard.core.scoring import (
    capped,
    check_spec,
    is_judged,
    judge_spec,
    plan,
    read_judgement,
    render_judgement,
    score,
    scores_here,
)

CHOICE = {"choice": {"Yes": 1, "no": 0, "partly": 0.5}}
NUMBER = {"number": {"least": 1, "most": 10}}
FIELD = {"field": "score", "least": 0, "most": 4}


def spec(reads: Any = CHOICE, **options: Any) -> dict[str, Any]:
    given = {"endpoint": "jury", "profile": "pinned", "template": "{{answer}}", "reads": reads, **options}
    return check_spec({"kind": "judge", **given})


@pytest.mark.parametrize(
    ("reads", "text", "value"),
    [
        (CHOICE, "Yes", 1.0),
        (CHOICE, "**YES**, it is right.", 1.0),
        (CHOICE, "I would say no.", 0.0),
        (CHOICE, "partly", 0.5),
        (CHOICE, "Yes and yes!", 1.0),
        (NUMBER, "Score: 10", 1.0),
        (NUMBER, "I give 5.5 of 10", 0.5),
        (FIELD, '{"why": "short", "score": 3}', 0.75),
        (FIELD, '```json\n{"score": 0}\n```', 0.0),
    ],
)
def test_a_judges_answer_is_read(reads: Any, text: str, value: float) -> None:
    assert read_judgement(spec(reads), text) == value


@pytest.mark.parametrize(
    ("reads", "text", "reason"),
    [
        (CHOICE, "  ", "The judge answered nothing."),
        (CHOICE, "It is a yes I think", "The judge neither began nor ended with"),
        (CHOICE, "yes or no", 'The judge began with "yes" and ended with "no": "yes or no".'),
        (NUMBER, "ten", 'The judge gave no number: "ten".'),
        (NUMBER, "11", "The judge gave 11.0, which is not from 1 to 10."),
        (FIELD, "3", "The judge's JSON lacks the key"),
        (FIELD, "score: 3", "The judge gave no JSON."),
        (FIELD, '{"score": true}', "The judge's score is no number: true."),
    ],
)
def test_an_answer_that_cannot_be_read_says_why(reads: Any, text: str, reason: str) -> None:
    read = read_judgement(spec(reads), text)
    assert isinstance(read, str)
    assert read.startswith(reason)


@given(text=st.text(st.characters(), max_size=60), reads=st.sampled_from([CHOICE, NUMBER, FIELD]))
def test_every_answer_is_a_value_or_a_reason(text: str, reads: Any) -> None:
    read = read_judgement(spec(reads), text)
    if isinstance(read, float):
        assert 0 <= read <= 1
    else:
        assert read
        assert text_problem(capped(read)) is None


def test_places_are_filled_once() -> None:
    """What a model wrote is not read as a template."""
    template = "{{prompt}}|{{ target }}|{{tags}}|{{answer}}|{{messages}}"
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Where?"}]
    asked = render_judgement(
        spec(template=template, system="You judge."),
        messages=messages,
        target=["Oslo"],
        tags=["a", "b"],
        answer="{{target}}",
    )
    assert asked == [
        {"role": "system", "content": "You judge."},
        {"role": "user", "content": 'Where?|["Oslo"]|a, b|{{target}}|system: Be brief.\n\nuser: Where?'},
    ]


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"template": "{{answer}} {{response}}"}, "scorer.template"),
        ({"template": "Is it right?"}, "scorer.template"),
        ({"template": "{{" + " " * 99_000}, "scorer.template"),  # a pattern that tries every split takes weeks
        ({"reads": {"choice": {"yes": 1}}}, "scorer.reads.choice"),
        ({"reads": {"choice": {"yes": 1, "YES": 0}}}, "scorer.reads.choice.YES"),
        ({"reads": {"choice": {"yes": 2, "no": 0}}}, "scorer.reads.choice.yes"),
        ({"reads": {"number": {"least": 5, "most": 5}}}, "scorer.reads.number"),
        ({"reads": {"words": ["yes"]}}, "scorer.reads"),
        ({"draws": 2}, "scorer.draws"),
        ({"anchor_draws": 1}, "scorer.anchor_draws"),
    ],
)
def test_what_no_judge_can_do_is_refused(options: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        spec(**{"reads": CHOICE, **options})
    assert list(refused.value.fields) == [place]


def test_a_plan_has_one_judge_and_rules_of_ours_beside_it() -> None:
    judged = plan(spec(), {"a": {"kind": "exact"}})
    assert is_judged(judged)
    assert judge_spec(judged) == spec()
    assert not scores_here(judged)
    for other in (spec(draws=3), {"kind": "recorded", "source": "a tool"}, {"kind": "command", "name": "ours"}):
        with pytest.raises(InvalidInput) as refused:
            plan(spec(), {"a": other})
        assert list(refused.value.fields) == ["scorer of a"]
    with pytest.raises(InvalidInput, match="a run of its own"):
        score(spec(), text="yes", target=None)

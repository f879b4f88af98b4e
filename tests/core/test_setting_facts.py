"""What is known of a setting: from our own engine, a log, and a server that refuses, drops or takes it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from evalboard.contract.facts import FactSource, FactState, SettingCheck, SettingsSeen
from evalboard.contract.run import Draws
from evalboard.core.profile import (
    WHERE_HONOURED,
    find_temperature,
    is_same_model_name,
    list_reshaping,
    list_setting_facts,
    select_compared,
)

GREEDY = {"temperature": 0.0, "top_p": 1.0, "seed": 42, "logprobs": 2}
TAKEN = SettingsSeen(n_answers=40, n_left_out={}, checked={})
REFUSED = SettingsSeen(n_answers=40, n_left_out={"temperature": 39, "top_p": 40, "logprobs": 40}, checked={})


def check(state: str) -> SettingsSeen:
    found = SettingCheck(state=state, probe="7", at=datetime(2026, 3, 1, tzinfo=UTC))
    return SettingsSeen(n_answers=40, n_left_out={}, checked={"temperature": found})


def temperature_fact(**known: Any) -> tuple[FactState, FactSource, float | None]:
    given = {"is_external": True, "is_logged": False, "seen": TAKEN, "wanted": GREEDY} | known
    [fact] = [fact for fact in list_setting_facts(given.pop("wanted"), **given) if fact.name == "temperature"]
    return fact.state, fact.source, fact.value


@pytest.mark.parametrize(
    ("known", "fact"),
    [
        ({"is_external": False, "seen": None}, (FactState.KNOWN, FactSource.ENGINE, 0.0)),
        ({}, (FactState.KNOWN, FactSource.REQUEST, 0.0)),
        ({"seen": None}, (FactState.KNOWN, FactSource.REQUEST, 0.0)),
        ({"seen": REFUSED}, (FactState.UNKNOWN, FactSource.REFUSAL, None)),
        ({"seen": check("ignored")}, (FactState.CONTRADICTED, FactSource.CHECK, None)),
        ({"seen": check("honoured")}, (FactState.KNOWN, FactSource.REQUEST, 0.0)),
        ({"seen": check("unclear")}, (FactState.KNOWN, FactSource.REQUEST, 0.0)),
        ({"wanted": GREEDY | {"temperature": "default"}}, (FactState.UNKNOWN, FactSource.REQUEST, None)),
        ({"wanted": {"temperature": "default"}, "seen": None}, (FactState.UNKNOWN, FactSource.REQUEST, None)),
        ({"is_logged": True, "seen": None}, (FactState.KNOWN, FactSource.LOG, 0.0)),
        ({"is_logged": True, "seen": None, "wanted": {}}, (FactState.UNKNOWN, FactSource.LOG, None)),
    ],
)
def test_a_temperature_is_known_where_something_says_that_it_held(known: dict[str, Any], fact: Any) -> None:
    assert temperature_fact(**known) == fact


def test_a_check_is_named_by_what_rests_on_it() -> None:
    facts = list_setting_facts(GREEDY, is_external=True, is_logged=False, seen=check("ignored"))
    assert [(fact.name, fact.probe) for fact in facts if fact.probe] == [("temperature", "7")]


@pytest.mark.parametrize(("state", "sent", "is_known"), [("honoured", 2, "known"), ("refused", None, "unknown")])
def test_logprobs_that_a_check_decides_are_sent_where_it_saw_them_honoured(
    state: str, sent: int | None, is_known: str
) -> None:
    seen = check(state).model_copy(update={"checked": {"logprobs": check(state).checked["temperature"]}})
    facts = list_setting_facts({"logprobs": WHERE_HONOURED}, is_external=True, is_logged=False, seen=seen)
    assert (facts[-1].wanted, facts[-1].sent, facts[-1].state, facts[-1].probe) == (WHERE_HONOURED, sent, is_known, "7")
    assert select_compared(facts) == {}


def test_what_is_not_known_is_not_compared_and_a_neutral_value_asks_for_nothing() -> None:
    facts = list_setting_facts(GREEDY, is_external=True, is_logged=False, seen=REFUSED)
    assert select_compared(facts) == {"top_p": 1.0}
    assert find_temperature(facts) is None
    narrowed = list_setting_facts({**GREEDY, "top_p": 0.5}, is_external=True, is_logged=False, seen=REFUSED)
    assert select_compared(narrowed) == {}


def test_a_setting_that_a_server_ignores_matters_only_where_something_is_wanted() -> None:
    ignored = SettingCheck(state="ignored", probe="7", at=datetime(2026, 3, 1, tzinfo=UTC))
    seen = SettingsSeen(n_answers=40, n_left_out={}, checked=dict.fromkeys(("ignore_eos", "min_tokens"), ignored))
    for is_wanted in (False, True):
        wanted = {"ignore_eos": is_wanted, "min_tokens": 8 * is_wanted}
        facts = list_setting_facts(wanted, is_external=True, is_logged=False, seen=seen)
        assert select_compared(facts) == ({} if is_wanted else wanted)


@pytest.mark.parametrize(
    ("wanted", "reshaping"),
    [
        ({"temperature": 1.0, "top_p": 1.0}, ()),
        ({"temperature": 1.0, "top_p": 0.5}, ("top_p",)),  # refused, so nobody knows that nothing was cut off
        ({"temperature": 0.7}, ("temperature",)),
        ({}, ()),
    ],
)
def test_what_was_asked_for_and_is_not_known_reshapes_too(wanted: dict[str, Any], reshaping: tuple[str, ...]) -> None:
    assert list_reshaping(list_setting_facts(wanted, is_external=True, is_logged=False, seen=REFUSED)) == reshaping


def test_seeds_and_logprobs_make_no_other_distribution() -> None:
    ours, theirs = (
        select_compared(list_setting_facts({**GREEDY, **other}, is_external=False, is_logged=False, seen=None))
        for other in ({}, {"seed": 7, "logprobs": 5})
    )
    assert ours == theirs == {"temperature": 0.0, "top_p": 1.0}


def test_repeats_at_an_unknown_temperature_are_judged_as_draws_and_no_token_is_called_drawn() -> None:
    unknown = Draws(None, 42, is_external=True)
    assert (unknown.may_sample, unknown.is_sampled, unknown.words) == (True, False, "temperature not known")
    assert (Draws(0.0).may_sample, Draws(0.7).may_sample) == (False, True)


@pytest.mark.parametrize(
    ("asked", "answered", "is_one"),
    [
        ("gpt-4o", "gpt-4o-2024-08-06", True),
        ("gpt-4o-2024-08-06", "gpt-4o", True),
        ("gpt-4o-2024-08-06", "gpt-4o-2024-05-13", False),
        ("gpt-4", "gpt-4-0613", True),
        ("gpt-4-turbo", "gpt-3.5-turbo-0125", False),
        ("gpt-4o", "gpt-4o-mini", False),
        ("org/Paint-1B", "paint-1b", True),
        ("paint-7b", "paint-70b", False),
        ("claude-sonnet-latest", "claude-sonnet-20250219", True),
        ("org/paint-1b:free", "org/paint-1b", True),
        ("paint:7b", "paint:70b", False),
        ("gemini-pro", "gemini-pro-002", True),
    ],
)
def test_a_model_name_is_another_one_beyond_path_variant_and_date(asked: str, answered: str, is_one: bool) -> None:
    assert is_same_model_name(asked, answered) is is_one

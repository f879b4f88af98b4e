"""A release's verdict from its gates: which word wins, the document that is kept, and every sentence of it."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalboard.core.compare import comparability
from evalboard.core.release import gate_verdict, verdict
from evalboard.core.release.gate import GateQuestion
from evalboard.core.release.gate_verdict import GateInput, GateVerdict
from evalboard.core.release.serving import DecodedSide
from evalboard.wording.release import write_verdict
from evalboard.wording.release_names import verdict_name
from tests.core.questions import (
    FIVE,
    NEWER,
    PAIRED,
    STRICT,
    judged,
    pinned,
    question,
    reasons,
    runs,
    served,
    steps,
    warnings,
)

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "verdict.md").read_text()


def decided(*gates: tuple[str, GateVerdict], names: Sequence[str] = "abcdefgh") -> dict[str, Any]:
    """The document as it is kept."""
    inputs = [GateInput(tier, name, judged) for (tier, judged), name in zip(gates, names, strict=False)]
    return write_verdict(verdict.decide_from_gates(inputs))


def test_every_critical_gate_must_ship_and_the_gravest_word_wins() -> None:
    good, worse = verdict.judge_gate(pinned(), STRICT), verdict.judge_gate(pinned(n_broken=80), STRICT)
    opened = verdict.judge_gate(pinned(n_broken=8), STRICT)
    apart = verdict.judge_gate(replace(pinned(), setup_candidate=served(**NEWER)), STRICT)
    for gates, word, headline in (
        ((good,), "ship", 0),
        ((good, good), "ship", 0),
        ((good, opened), "inconclusive", 1),
        ((opened, apart), "not_comparable", 1),
        ((apart, opened, worse, good), "no_ship", 2),
    ):
        found = decided(*(("critical", each) for each in gates))
        assert (found["verdict"], found["headline_gate"]) == (word, headline)
        assert all(line["gate"] == headline or word == "ship" for line in found["reasons"])


def test_an_advisory_gate_decides_nothing_and_is_pointed_out() -> None:
    found = decided(
        ("critical", verdict.judge_gate(pinned(), STRICT)), ("advisory", verdict.judge_gate(pinned(80), STRICT))
    )
    assert (found["verdict"], found["headline_gate"]) == ("ship", 0)
    assert [gate["is_worth_a_look"] for gate in found["gates"]] == [False, True]
    assert "worth_a_look" in [line["code"] for line in found["warnings"] if line["gate"] == 1]
    with pytest.raises(ValueError, match="critical"):
        decided(("advisory", verdict.judge_gate(pinned(), STRICT)))


def test_what_is_a_reason_is_no_warning_as_well() -> None:
    certificate = {"side": "candidate", "hosts": ["a"], "endpoint": "local", "profile": "invariant"}
    side = DecodedSide(
        run=1,
        n_repeats=5,
        n_left_out=0,
        n_unvouched=0,
        n_truncated=0,
        n_processes=2,
        broken_pins=(),
        uncertified=(),
        strays=(),
        unsteady=(),
        is_log=False,
        is_reported=False,
        is_read=False,
    )
    for n_broken, code, is_warned in ((0, "uncertified", False), (80, "regression", True)):
        asked = replace(pinned(n_broken=n_broken), uncertified=[certificate])
        gate = verdict.GateEvidence(
            tier="critical",
            suite_name="colours",
            question=asked,
            baseline=side,
            candidate=replace(side, uncertified=("a",)),
        )
        found = verdict.judge_release([gate], STRICT)
        assert [line["code"] for line in found["reasons"]] == [code]
        assert ("uncertified" in [line["code"] for line in found["warnings"]]) is is_warned


def test_a_drop_found_among_many_gates_must_be_clear_enough_for_that() -> None:
    """Nine of 804 broke: −1.119 + 0.115 is barely below −1."""
    barely = verdict.judge_gate(pinned(n_broken=9, n_cases=804), STRICT)
    assert (barely.verdict, round(barely.high, 3)) == ("no_ship", -1.005)
    good = verdict.judge_gate(pinned(), STRICT)
    alone = decided(("critical", barely))
    among = decided(*[("critical", good)] * 3, ("critical", barely))
    assert (alone["verdict"], among["verdict"]) == ("no_ship", "inconclusive")
    gate = among["gates"][3]
    assert (gate["verdict"], gate["reasons"][0]["code"], gate["repeats_needed"]) == ("inconclusive", "not_settled", 5)
    longer = replace(pinned(n_broken=9, n_cases=804), candidate=pinned(n_broken=9, n_cases=804, k=7).candidate)
    uneven = decided(*[("critical", good)] * 3, ("critical", verdict.judge_gate(longer, STRICT)))
    assert uneven["gates"][3]["repeats_needed"] == 5  # of the shorter side
    text = gate["reasons"][0]["text"]
    change = "On these 804 cases the change is −1.119 points, in [−1.234, −1.005] (94 % interval). "
    assert text.startswith(f"{change}Alone, this suite would be no-ship. With 4 suites, one can look ")
    assert text.endswith(", a drop larger than the 1.0 point you accept is not proven.")  # and no claim of one
    by_judge = verdict.judge_gate(
        replace(pinned(n_broken=9, n_cases=804), setup_baseline=judged(), setup_candidate=judged()), STRICT
    )
    [step] = decided(*[("critical", good)] * 3, ("critical", by_judge))["gates"][3]["next"]
    assert step["text"].startswith("Run both sides again with 10 repeats each: a run that was judged takes no more.")
    clear = verdict.judge_gate(pinned(n_broken=16), STRICT)
    assert decided(*[("critical", good)] * 3, ("critical", clear))["verdict"] == "no_ship"


def test_the_document_has_the_shape_that_is_kept() -> None:
    documented = gate_verdict.__doc__ or ""
    found = decided(("critical", verdict.judge_gate(pinned(n_broken=8), STRICT)))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    for part in (found, found["gates"][0], found["gates"][0]["noise"]["baseline"], found["gates"][0]["reach"]):
        for name in part:
            assert f'"{name}"' in documented, name
    assert found["gates"][0]["cases_needed"] == {"5": 93, "10": 52, "20": 26}


def test_the_summary_is_what_a_release_manager_reads() -> None:
    found = decided(("critical", verdict.judge_gate(pinned(n_broken=4), STRICT)), names=("colours",))
    assert found["summary"] == (
        "colours fell from 50.0 (each of 5 repeats) to 49.5 (each). The change is −0.5 points, in [−0.6, −0.4] "
        "(94 % interval). The candidate is worse than the baseline, but the drop is smaller than the 1.0 point you "
        "accept."
    )
    two = decided(*[("critical", verdict.judge_gate(pinned(), STRICT))] * 2, names=("colours", "towns"))
    assert two["summary"].startswith("colours scored 50.0 (each of 5 repeats) against 50.0 (each of 5 repeats). The")
    assert two["summary"].endswith(
        "A drop larger than the 1.0 point you accept is ruled out. The other suite, towns, ships."
    )
    assert two["reasons"][1]["text"].startswith("towns: On these 800 cases")
    apart = verdict.judge_gate(replace(pinned(), setup_candidate=served(**NEWER)), STRICT)
    assert decided(("critical", apart))["summary"].startswith("The two runs of a cannot be compared. Both sides served")


EVERY = {
    "ship": (pinned(), STRICT),
    "lean": (replace(pinned(), candidate=pinned().candidate[:, :1]), STRICT),
    "one-run-each": (question(runs(651, n_cases=800), runs(637, n_cases=800)), STRICT),
    "on-the-line": (pinned(n_broken=8), STRICT),
    "barely": (pinned(n_broken=9, n_cases=804), STRICT),
    "too-small": (pinned(n_cases=30), STRICT),
    "noisy": (question(runs(*FIVE, n_cases=800), runs(630, 640, 650, 660, 670, n_cases=800)), STRICT),
    "noisy-and-paired": (question(runs(*FIVE, n_cases=800), runs(630, 640, 650, 660, 670, n_cases=800)), PAIRED),
    "regression": (pinned(n_broken=30), STRICT),
    "last-look": (pinned(n_broken=8, k=20), STRICT),
}


@pytest.mark.parametrize("name", EVERY)
def test_every_sentence_is_one(name: str) -> None:
    found = verdict.judge_gate(*EVERY[name])
    document = decided(("critical", found))
    texts = [*reasons(found), *warnings(found), *steps(found), document["summary"]]
    for text in texts:
        assert text.endswith(".")
        assert text[0].isupper() or text[0].isdigit() or text == document["summary"]
        assert not re.search(r"(?<!\w)-\d|−0\.0(?!\d)|None|nan|\.\.|  ", text), text


def test_the_summary_says_on_which_cases_the_scores_are_where_others_are_missing() -> None:
    half = pinned()
    half.candidate[400:] = np.nan
    found = decided(("critical", verdict.judge_gate(half, STRICT)))["summary"]
    assert (
        "on the 400 cases with a score on both sides. 400 of 800 cases (50.0 %) have no score on at least one side"
        in found
    )
    half.candidate[:] = np.nan
    assert "with a score" not in decided(("critical", verdict.judge_gate(half, STRICT)))["summary"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        pytest.param(pinned(), "A drop larger than the 1.0 point you accept is ruled out.", id="ship"),
        pytest.param(pinned(n_fixed=8), "the change is +1.0 points, in", id="better"),
        pytest.param(pinned(n_broken=30), "the change is −3.8 points, in", id="no-ship"),
        pytest.param(pinned(n_broken=8), "It is open whether there is a drop larger than the", id="open"),
        pytest.param(pinned(n_broken=8, k=10), "(96.6 % interval)", id="a-later-look"),
        pytest.param(pinned(n_cases=30), "With 5 repeats, 30 cases are too few", id="few"),
        pytest.param(pinned(n_cases=1), "With 5 repeats, 1 case is too few", id="one"),
        pytest.param(
            pinned(n_broken=1, n_cases=2),
            "1 case broke in every repeat (mean score over repeats fell by 0.6 or more) and none was fixed.",
            id="one-lost",
        ),
    ],
)
def test_a_claim_is_held_against_what_people_accept(asked: GateQuestion, said: str) -> None:
    text = reasons(verdict.judge_gate(asked, STRICT))[0]
    assert said in text
    assert "tolerance" not in text


def test_two_points_are_accepted_and_one_point_is() -> None:
    two = replace(STRICT, tolerance_points=2.0)
    assert "A drop larger than the 2.0 points you accept is ruled out." in reasons(verdict.judge_gate(pinned(), two))[0]


def test_no_interval_leaves_what_a_difference_can_be() -> None:
    """Three cases that all broke, on runs that hardly repeat: the formula would go beyond 100 points."""
    found = verdict.judge_gate(question(runs(3, 3, 3, 2, 3, n_cases=3), runs(0, 1, 0, 0, 0, n_cases=3)), PAIRED)
    assert (found.low, found.high) == (-100.0, pytest.approx(-55.95, abs=0.01))
    swapped = verdict.judge_gate(question(runs(0, 1, 0, 0, 0, n_cases=3), runs(3, 3, 3, 2, 3, n_cases=3)), PAIRED)
    assert swapped.high == 100.0


def test_every_verdict_is_spelled_one_way() -> None:
    assert [verdict_name(word) for word in verdict.VERDICT_ORDER] == [
        "no-ship",
        "not comparable",
        "inconclusive",
        "ship",
    ]


def test_an_end_that_is_not_on_the_tolerance_does_not_read_as_if_it_were() -> None:
    found = verdict.judge_gate(pinned(n_broken=9, n_cases=804), STRICT)
    assert "[−1.23, −1.00]" not in reasons(found)[0]
    assert "−1.005]" in reasons(found)[0]


def test_the_codes_are_those_of_the_page() -> None:
    """Warnings have their table in docs/releases.md, which is written from their rows."""
    codes = {*comparability.BLOCK_ORDER} - comparability.BLOCK_WARNINGS
    for asked, settings in EVERY.values():
        found = verdict.judge_gate(asked, settings)
        codes |= {line.code for line in (*found.reasons, *found.next)}
    assert [code for code in sorted(codes) if f"`{code}`" not in PAGE] == []

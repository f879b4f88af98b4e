"""One serving stack answers, or several, or another one than last time; what is not known is never equal."""

import json
import random

import pytest

from evalboard.core.probes import routing_probe
from evalboard.core.probes.call import ProbeExchange, ProbeResult
from evalboard.wording.probe import describe_finding


def sentence(finding: ProbeResult) -> str:
    return describe_finding("routing", finding.state, {**finding.numbers, "stacks": STACKS})


A, B = "a" * 64, "b" * 64
STACKS = {letter * 64: f"backend {letter.upper()}" for letter in "abcdef"}


def calls(worker: int, *fingerprints: str) -> list[ProbeExchange]:
    return [
        ProbeExchange(prompt=0, group="ask", round=index, worker=worker, token_ids=(1,), fingerprint=fingerprint)
        for index, fingerprint in enumerate(fingerprints)
    ]


@pytest.mark.parametrize(
    ("asked", "last", "state"),
    [
        pytest.param([*calls(1, A, A), *calls(2, A, A)], None, "one", id="first-probe"),
        pytest.param([*calls(1, A, A), *calls(2, A, A)], A, "one", id="as-before"),
        pytest.param(calls(1, A, A), B, "rotated", id="rotated"),
        pytest.param([*calls(1, A, A), *calls(2, B, B)], A, "several", id="a-worker-each"),
        pytest.param(calls(1, A, B), B, "several", id="restarted-between"),
        pytest.param([*calls(1, A, A), *calls(2, B, "")], A, "several", id="several-and-unknown"),
        pytest.param([*calls(1, A, A), *calls(2, "", "")], A, "unknown", id="unknown-is-not-equal"),
        pytest.param(calls(1, "", ""), None, "unknown", id="all-unknown"),
        pytest.param([], A, "incomplete", id="nothing"),
        pytest.param(
            [ProbeExchange(prompt=0, group="ask", worker=1, error="gone")] * 3, A, "incomplete", id="all-failed"
        ),
    ],
)
def test_the_fingerprints_decide(asked: list[ProbeExchange], last: str | None, state: str) -> None:
    finding = routing_probe.judge_routing_probe(asked, last_fingerprint=last)
    assert finding.state == state
    json.dumps(finding.numbers, allow_nan=False)
    random.Random(1).shuffle(asked)
    assert routing_probe.judge_routing_probe(asked, last_fingerprint=last) == finding


def test_shares_are_counted_by_fingerprint_and_by_worker() -> None:
    finding = routing_probe.judge_routing_probe([*calls(1, A, A, A), *calls(2, A, B, B, B, B)])
    assert finding.numbers["fingerprints"] == [
        {"fingerprint": A, "n": 4, "share": 0.5, "workers": [1, 2]},
        {"fingerprint": B, "n": 4, "share": 0.5, "workers": [2]},
    ]
    assert finding.numbers["workers"][1] == {
        "worker": 2,
        "n_answered": 5,
        "n_failed": 0,
        "fingerprints": [
            {"fingerprint": A, "n": 1, "share": 0.2},
            {"fingerprint": B, "n": 4, "share": 0.8},
        ],
    }
    assert sentence(finding) == (
        "2 serving stacks answer: 8 answers of 2 workers came from backend A (50 %) and backend B (50 %). "
        "A run across them is not one measurement."
    )


def test_a_worker_that_gave_no_answer_is_told_and_decides_nothing() -> None:
    gone = ProbeExchange(prompt=0, group="ask", worker=2, error="The worker went away.")
    finding = routing_probe.judge_routing_probe([*calls(1, A, A), gone])
    assert finding.state == "one"
    assert finding.numbers["n_workers_silent"] == 1
    assert sentence(finding) == (
        "One serving stack: 2 answers of 1 worker came from backend A. 2 answers rule out a second "
        "backend with over 78 % of the requests (95 % confidence). 1 worker gave no answer. "
        "1 call failed and is left out."
    )


def test_a_rotation_names_both_fingerprints() -> None:
    finding = routing_probe.judge_routing_probe(calls(1, A), last_fingerprint=B)
    assert "came from backend A, earlier ones from backend B" in sentence(finding)

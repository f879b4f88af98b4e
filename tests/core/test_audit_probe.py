"""The same input must give the same bits on every worker and since the audit before; anything else is an incident."""

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from evalboard.core.probes import complete_parameters, judge_audit_probe, list_prompt_texts, plan_calls
from evalboard.core.probes.call import ProbeExchange, ProbeResult, dump_call, parse_call
from evalboard.wording.probe import describe_finding

AT = "2026-11-23T14:02:11.000+00:00"
TEXTS = {"blue": (5, 6, 7), "blew": (5, 9, 7), "blu": (5, 6)}


def calls(worker: int, *words: str, bucket: int = 1, trace: str = "aa", logprob: float = -0.5) -> list[ProbeExchange]:
    """A worker's answers, one to each prompt; `trace` is that of the last one."""
    asked = [
        ProbeExchange(
            prompt=index,
            group="ask",
            round=index,
            token_ids=TEXTS[word],
            text=word,
            trace_digest=word,
            logprobs=(-0.25,) * len(TEXTS[word]),
            worker=worker,
            engine_process=worker,
            bucket=bucket,
            fingerprint=str(bucket) * 64,
            at=AT,
        )
        for index, word in enumerate(words)
    ]
    logprobs = (*asked[-1].logprobs[:-1], logprob)
    return [*asked[:-1], replace(asked[-1], trace_digest=asked[-1].trace_digest + trace, logprobs=logprobs)]


def say(finding: ProbeResult) -> str:
    return describe_finding("audit", finding.state, finding.numbers)


BLUE = ("blue", "blue")


@pytest.mark.parametrize(
    ("now", "earlier", "state"),
    [
        pytest.param([*calls(1, *BLUE), *calls(2, *BLUE)], [], "identical", id="two-workers"),
        pytest.param(calls(1, *BLUE), calls(1, *BLUE), "identical", id="as-before"),
        pytest.param(calls(1, *BLUE), [], "nothing_held", id="first-of-one-worker"),
        pytest.param(calls(1, *BLUE), calls(1, *BLUE, bucket=2), "nothing_held", id="engine-updated-since"),
        pytest.param([*calls(1, *BLUE), *calls(2, "blue", "blew")], [], "differs", id="another-token"),
        pytest.param([*calls(1, *BLUE), *calls(2, *BLUE, trace="bb", logprob=-0.7)], [], "differs", id="another-bit"),
        pytest.param([*calls(1, *BLUE), *calls(2, "blue", "blu")], [], "differs", id="shorter"),
        pytest.param(calls(1, *BLUE), calls(1, "blew", "blue"), "differs", id="not-as-before"),
        pytest.param(
            [*calls(1, *BLUE), *calls(2, "blue", "blew", bucket=2)], [], "stacks_differ", id="two-stacks-unlike"
        ),
        pytest.param([*calls(1, *BLUE), *calls(2, *BLUE, bucket=2)], [], "identical", id="two-stacks-alike"),
        pytest.param([], [], "incomplete", id="nothing"),
    ],
)
def test_any_difference_decides(now: list[ProbeExchange], earlier: list[ProbeExchange], state: str) -> None:
    finding = judge_audit_probe(now, earlier)
    assert finding.state == state
    assert say(finding)
    stored = [parse_call(json.loads(json.dumps(dump_call(call)))) for call in now]
    random.Random(2).shuffle(stored)
    assert judge_audit_probe(stored, earlier) == finding
    json.dumps(finding.numbers, allow_nan=False)


def test_an_incident_says_who_when_and_the_first_token() -> None:
    """Two of three agree, so the third is the odd one; its first other token is told."""
    finding = judge_audit_probe([*calls(1, *BLUE), *calls(2, "blew", "blue"), *calls(3, *BLUE)])
    [row] = finding.numbers["incidents"]
    assert (row["worker"], row["at"], row["prompt"]) == (2, AT, 0)
    assert (row["what"], row["position"], row["token"], row["token_against"]) == ("tokens", 1, 9, 6)
    assert (row["against"]["worker"], row["against"]["is_earlier"], row["is_same_stack"]) == (1, False, True)
    assert "worker 2 (2026-11-23 14:02 UTC) answered prompt 1 differently than worker 1" in say(finding)
    assert [each["n_incidents"] for each in finding.numbers["workers"]] == [0, 1, 0]


def test_a_logprob_that_moved_is_found_where_no_token_did() -> None:
    finding = judge_audit_probe([*calls(1, *BLUE), *calls(2, *BLUE, trace="bb", logprob=-0.7)])
    [row] = finding.numbers["incidents"]
    assert (row["what"], row["prompt"], row["position"]) == ("bits", 1, 2)
    assert "by logprobs alone, from token 2 on" in say(finding)


def test_what_was_established_before_counts_more_than_how_many_say_otherwise_now() -> None:
    """A pool that was changed as a whole agrees with itself, and not with the audit before."""
    finding = judge_audit_probe([*calls(1, "blew", "blue"), *calls(2, "blew", "blue")], calls(1, *BLUE))
    assert (finding.state, finding.numbers["n_incidents"], finding.numbers["n_held_earlier"]) == ("differs", 2, 4)
    assert all(row["against"]["is_earlier"] for row in finding.numbers["incidents"])


def test_what_so_many_comparisons_rule_out_is_said_only_where_nothing_differs() -> None:
    same = judge_audit_probe([*calls(1, *BLUE), *calls(2, *BLUE)], calls(1, *BLUE))
    assert same.numbers["n_held"] == 4
    assert same.numbers["certificate"] == pytest.approx(1 - 0.05 ** (1 / 4))
    assert judge_audit_probe([*calls(1, *BLUE), *calls(2, "blue", "blew")]).numbers["certificate"] is None


def test_a_worker_that_was_gone_before_its_turn_is_no_incident() -> None:
    gone = ProbeExchange(prompt=0, group="ask", worker=3, error="It has stopped.")
    finding = judge_audit_probe([*calls(1, *BLUE), *calls(2, *BLUE), gone])
    assert (finding.state, finding.numbers["n_failed"], len(finding.numbers["workers"])) == ("identical", 0, 2)


def test_each_case_is_decoded_by_itself_in_one_order() -> None:
    parameters = complete_parameters("audit", {"prompts": 3})
    planned = plan_calls("audit", parameters, list_prompt_texts("audit", parameters) or ())
    assert [(call.prompt, call.round, call.group) for call in planned] == [(n, n, "ask") for n in range(3)]
    of_a_suite: dict[str, Any] = complete_parameters("audit", {"suite": "colours"})
    assert of_a_suite == {"suite": "colours", "max_tokens": 64}

"""promptfoo's outputs: texts and scores, a run for each provider and prompt."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalboard.core.errors import InvalidInput
from evalboard.importers import promptfoo
from evalboard.importers.files import LogFile
from evalboard.importers.records import LoggedRun, LoggedScore
from tests.importers.odd_rows import told_of
from tests.importers.openai_logs import sample, told, written

PROVIDER = {"id": "openai:chat:smol", "label": "one"}
CONFIG = {"apiBaseUrl": "http://host:1/v1", "apiKey": "s3cret", "temperature": 0, "passthrough": {"seed": 42}}


def result(index: int, text: Any = "Paris.", **fields: Any) -> dict[str, Any]:
    """One result; the test's metadata names its case."""
    return {
        "testIdx": index,
        "promptIdx": 0,
        "provider": PROVIDER,
        "prompt": {"raw": json.dumps([{"role": "user", "content": "Capital of France?"}]), "label": "facts"},
        "vars": {"country": "France"},
        "response": {"output": text, "cached": False, "logProbs": [-0.9], "tokenUsage": {"completion": 2, "prompt": 5}},
        "latencyMs": 1500,
        "success": True,
        "score": 1,
        "failureReason": 0,
        "gradingResult": {"reason": "All assertions passed", "componentResults": [{"pass": True}]},
        "testCase": {"metadata": {"sample_id": "fact-1"}, "assert": [{"type": "equals"}]},
        **fields,
    }


def output(*results: dict[str, Any], repeat: int | None = None, **config: Any) -> dict[str, Any]:
    providers = [{**PROVIDER, "config": CONFIG}]
    return {
        "evalId": "eval-1",
        "results": {"version": 3, "timestamp": "2026-11-21T02:10:17.939Z", "prompts": [], "results": list(results)},
        "config": {"providers": providers, "tags": {"suite": "Facts", "git_commit": "b945b4a"}, **config},
        "metadata": {"promptfooVersion": "0.121.20"},
        "runtimeOptions": {} if repeat is None else {"repeat": repeat},
    }


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., list[LoggedRun]]:
    def of(document: dict[str, Any]) -> list[LoggedRun]:
        log = written(tmp_path, "out.json", json.dumps(document, indent=2))
        assert promptfoo.recognises([log])
        return promptfoo.read([log])

    return of


Read = Callable[[dict[str, Any]], list[LoggedRun]]


def test_a_run_has_texts_scores_and_what_the_configuration_says(read: Read) -> None:
    (run,) = read(output(result(0)))
    assert (run.slug, run.model, run.tool, run.detail) == ("facts", "smol", "promptfoo 0.121.20", "text")
    assert (run.sampling, run.base_url) == ({"temperature": 0, "seed": 42}, "http://host:1/v1")
    assert (run.scorers, run.labels["git_commit"]) == (("pass", "score"), "b945b4a")
    (response,) = run.responses
    assert (response.text, response.seconds, response.n_tokens, response.positions) == ("Paris.", 1.5, 2, None)
    assert response.scores["pass"] == LoggedScore(1.0, "All assertions passed")
    assert list(run.cases[0].messages) == [{"role": "user", "content": "Capital of France?"}]
    assert any("Logprobs without tokens were not taken over (1 responses)" in note for note in run.notes)
    assert "s3cret" not in repr(run)


def test_an_output_on_one_line_that_breaks_off_is_no_json(tmp_path: Path) -> None:
    (path := tmp_path / "cut.json").write_text(json.dumps(output(result(1)))[:-20])
    with pytest.raises(InvalidInput, match=r"cut\.json: line 1: is not JSON"):
        promptfoo.read([LogFile("cut.json", path)])


def test_repeats_of_a_test_stand_side_by_side(read: Read) -> None:
    other = {"metadata": {"sample_id": "fact-2"}}
    results = [result(3, "d", testCase=other), result(1, "b"), result(0, "a"), result(2, "c", testCase=other)]
    (run,) = read(output(*results, repeat=2))
    assert told(run) == [("fact-2", 1, "c"), ("fact-2", 2, "d"), ("fact-1", 1, "a"), ("fact-1", 2, "b")]
    (counted,) = read(output(*results[1:3]))
    assert told(counted) == [("fact-1", 1, "b"), ("fact-1", 2, "a")]


def test_a_test_without_an_id_is_called_by_variables_and_prompt(read: Read) -> None:
    bare = [result(n, testCase={}, vars={"country": country}) for n, country in enumerate(["France", "France", "Chad"])]
    (run,) = read(output(*bare))
    assert Counter(case_id for case_id, _, _ in told(run)).most_common()[0][1] == 2
    assert all(case.id.startswith("prompt-") for case in run.cases)


def test_an_assertion_that_failed_is_a_score_and_an_error_is_missing(read: Read) -> None:
    """`error` holds the assertion's words too, so it alone says nothing."""
    failed = {"success": False, "failureReason": 1, "error": 'Expected output to contain "Rome"'}
    reason = {"reason": failed["error"], "componentResults": [{"pass": False}]}
    (run,) = read(
        output(
            result(0, score=0.5, gradingResult=reason, **failed),
            result(1, success=False, failureReason=2, error="API error: 500", score=0),
            result(2, response={"error": "timeout"}, failureReason=None),
        )
    )
    assert [one.error for one in run.responses] == ["", "API error: 500", "timeout"]
    assert run.responses[0].scores == {
        "pass": LoggedScore(0.0, 'Expected output to contain "Rome"'),
        "score": LoggedScore(0.5, 'Expected output to contain "Rome"'),
    }
    assert run.responses[1].scores == {}
    assert run.status == "incomplete"


def test_what_was_not_asserted_has_no_score_and_odd_scores_are_no_numbers(read: Read) -> None:
    (bare,) = read(output(result(0, gradingResult={"reason": "No assertions"}, testCase={})))
    assert (bare.scorers, bare.responses[0].scores) == ((), {})
    (odd,) = read(output(result(0, score=7, namedScores={"tone": 0.25, "words": 120})))
    assert {name: one.value for name, one in odd.responses[0].scores.items()} == {
        "pass": 1.0,
        "score": 7.0,
        "tone": 0.25,
        "words": 120.0,
    }


def test_a_metric_of_weighted_assertions_is_their_mean(read: Read) -> None:
    parts = [
        {"pass": True, "score": 1, "reason": "Right.", "assertion": {"type": "equals", "metric": "tone", "weight": 3}},
        {"pass": False, "score": 0, "reason": "Rude.", "assertion": {"type": "equals", "metric": "tone"}},
    ]
    graded = {"pass": False, "score": 0.75, "reason": "Rude.", "componentResults": parts}
    (run,) = read(output(result(0, score=0.75, namedScores={"tone": 3}, gradingResult=graded)))
    assert run.responses[0].scores["tone"] == LoggedScore(0.75, "Right.; Rude.")
    stated = graded | {"namedScoreWeights": {"tone": 6}}
    (run,) = read(output(result(0, score=0.75, namedScores={"tone": 3}, gradingResult=stated)))
    assert run.responses[0].scores["tone"].value == 0.5


def test_headers_give_the_backend_and_a_cached_answer_is_no_sample(read: Read) -> None:
    headers = {"x-litellm-model-api-base": "http://b:1/v1", "x-litellm-model-id": "m", "Set-Cookie": "s3cret"}
    usage = {"completion": 2, "prompt": 5, "cached": 7}
    response = {"output": "Paris.", "cached": True, "metadata": {"http": {"headers": headers}}, "tokenUsage": usage}
    (run,) = read(output(result(0, response=response), result(1)))
    cached, fresh = run.responses
    assert (cached.served_by.key, cached.served_by.key_from) == ("http://b:1/v1 m", "litellm")
    assert (fresh.served_by.key, fresh.served_by.key_from) == ("http://host:1/v1", "base_url")
    assert (cached.flags, fresh.flags, cached.seconds) == (("cached",), (), None)
    assert (cached.n_tokens, cached.n_prompt_tokens) == (None, None)
    assert any("cache" in note for note in run.notes)
    assert "s3cret" not in repr(run)


def test_providers_and_prompts_are_runs_of_their_own(read: Read) -> None:
    other = {"id": "file://own.py", "label": "two"}
    second = {"raw": "[Answer briefly] France?", "label": "brief"}
    runs = read(output(result(0), result(0, provider=other), result(0, promptIdx=1, prompt=second)))
    assert [(run.model, run.slug) for run in runs] == [
        ("smol", "facts-facts"),
        ("file://own.py", "facts-facts"),
        ("smol", "facts-brief"),
    ]
    assert runs[1].sampling == {}
    assert list(runs[2].cases[0].messages) == [{"role": "user", "content": "[Answer briefly] France?"}]


def test_an_output_that_is_an_object_is_its_json(read: Read) -> None:
    (run,) = read(output(result(0, {"b": 1, "a": [2]})))
    assert run.responses[0].text == '{"a":[2],"b":1}'


def test_json_lines_are_read_without_a_configuration(tmp_path: Path) -> None:
    log = written(tmp_path, "out.jsonl", [result(0, "a"), result(1, "b")])
    assert promptfoo.recognises([log])
    (run,) = promptfoo.read([log])
    assert (told(run), run.sampling) == ([("fact-1", 1, "a"), ("fact-1", 2, "b")], {})


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"evalId": "e", "results": {}}, "results.results is missing"),
        (output(), "holds no results"),
        (output(result(0, provider=3)), "provider must be an object"),
        (output(result(0), result(1, response=[])), "results[1]: response must be an object"),
        (output(result(0, vars={}, testCase={"metadata": {"id": "a\nb"}})), "results[0]: id must be 1 to 200"),
    ],
)
def test_what_is_no_output_is_refused_with_its_place(tmp_path: Path, document: dict[str, Any], words: str) -> None:
    assert words in told_of(promptfoo.read, [written(tmp_path, "out.json", json.dumps(document))])["out.json"]


WORDS = st.sampled_from(
    [b"{", b"}", b"[", b"]", b'"', b",", b"null", b"-1", b"1e999", b"NaN", b"\x00", b"\xff", b"\\ud800"]
)


@given(at=st.integers(0, 3000), n=st.integers(0, 40), word=WORDS)
def test_a_damaged_output_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, at: int, n: int, word: bytes
) -> None:
    whole = json.dumps(output(result(0), result(1), repeat=2)).encode()
    log = written(tmp_path_factory.getbasetemp(), "out.json", whole[:at] + word + whole[at + n :])
    promptfoo.recognises([log])
    assert outcome(log) in ("read", ["out.json"])


def outcome(log: LogFile) -> str | list[str]:
    """What comes of a log: "read", or the names of the files that were refused."""
    try:
        runs = promptfoo.read([log])
    except InvalidInput as refused:
        return list(refused.fields)
    return "read" if any(run.responses for run in runs) else "nothing"


def test_the_real_output() -> None:
    log = sample("promptfoo/out_fp32.json")
    assert promptfoo.recognises([log])
    (run,) = promptfoo.read([log])
    assert (len(run.cases), len(run.responses), run.status, run.slug) == (4, 12, "finished", "smol_facts")
    assert Counter(one.repeat for one in run.responses) == {1: 4, 2: 4, 3: 4}
    assert Counter(one.scores["pass"].value for one in run.responses) == {1.0: 6, 0.0: 6}
    assert run.scorers == ("pass", "score")
    assert {(one.served_by.key_from, one.flags) for one in run.responses} == {("base_url", ())}
    assert run.sampling == {"temperature": 0, "top_p": 1, "seed": 42, "max_tokens": 32}


CALL = {"name": "capital", "arguments": '{"city": "Oslo"}'}
CALLS = [{"id": "call_1", "type": "function", "function": CALL}]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"role": "assistant", "content": "Wait.", "tool_calls": CALLS}, {"content": "Wait.", "tool_calls": [CALL]}),
        ({"role": "assistant", "content": "Wait.", "function_call": CALL}, {"content": "Wait.", "tool_calls": [CALL]}),
        (CALLS, [CALL]),
        (CALL, [CALL]),
        ({"city": "Oslo"}, {"city": "Oslo"}),
    ],
)
def test_tool_calls_are_kept_as_everywhere(read: Read, given: Any, kept: Any) -> None:
    [response] = read(output(result(0, given)))[0].responses
    assert json.loads(response.text) == kept


def test_an_answer_that_ended_in_an_error_is_missing(read: Read) -> None:
    response = {"output": "The ca", "finishReason": "error"}
    [one] = read(output(result(0, response=response)))[0].responses
    assert (one.error, one.text, one.scores) == ("The server broke off the answer: it ended with 'error'.", "", {})


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("openai:chat:rain-1", "rain-1"),
        ("bedrock:us.acme.rain-v2:0", "us.acme.rain-v2:0"),
        ("openrouter:acme/rain:free", "acme/rain:free"),
        ("openai:rain-1", "rain-1"),
        ("echo", "echo"),
        ("python:rain.py", "python:rain.py"),
    ],
)
def test_a_model_is_all_that_follows_the_provider(provider: str, model: str) -> None:
    assert promptfoo._model(provider) == model

"""Logs of lm-evaluation-harness: a real one, and small ones written here for what it does not have."""

import copy
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalboard.core.errors import InvalidInput
from evalboard.importers import lm_eval
from evalboard.importers.files import LogFile
from tests.importers.odd_rows import told_of

Real = Callable[[str], LogFile]
Written = Callable[[str, bytes], LogFile]

TIME = "2026-11-21T02-09-11.104148"
CHAT = "lm_eval"


def line(doc_id: int = 0, *answers: str, through: str = "none", settings: Any = None, **facts: Any) -> dict[str, Any]:
    return {
        "doc_id": doc_id,
        "doc": {"question": "Capital of France?"},
        "target": "Paris",
        "arguments": {"gen_args_0": {"arg_0": "Q: Capital of France?\nA:", "arg_1": settings or {"until": ["\n"]}}},
        "resps": [list(answers) or ["Paris"]],
        "filtered_resps": ["Paris"],
        "filter": through,
        "metrics": ["exact_match"],
        "exact_match": 1.0,
        **facts,
    }


def ranking(*logprobs: str, continuations: tuple[str, ...] = (" Paris", " Rome"), **facts: Any) -> dict[str, Any]:
    arguments = {f"gen_args_{n}": {"arg_0": "Capital:", "arg_1": words} for n, words in enumerate(continuations)}
    resps = [[[logprob, "False"]] for logprob in logprobs]
    return line(**{"arguments": arguments, "resps": resps, "metrics": ["acc"], "acc": 1.0, **facts})


def results(**facts: Any) -> dict[str, Any]:
    return {
        "results": {"capitals": {"exact_match,none": 1.0}},
        "configs": {"capitals": {}},
        "versions": {"capitals": 2.0},
        "n-samples": {"capitals": {"original": 1, "effective": 1}},
        "config": {"model_args": "model=smol,base_url=http://gpu-7:8000/v1/completions,api_key=secret"},
        "model_source": "local-completions",
        "model_name": "smol",
        "lm_eval_version": "0.4.13",
        "git_hash": "v1-3-gabc",
        "date": 1795226938.5,
        "total_evaluation_time_seconds": "29.5",
        **facts,
    }


def lines(*found: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in found)


@pytest.fixture
def files(written: Written) -> Callable[..., list[LogFile]]:
    """Write samples and, if any are given, the results of the same time."""

    def write(*found: dict[str, Any], **facts: Any) -> list[LogFile]:
        samples = written(f"samples_capitals_{TIME}.jsonl", lines(*found))
        return [written(f"results_{TIME}.json", json.dumps(results(**facts)).encode()), samples]

    return write


Files = Callable[..., list[LogFile]]


def test_a_real_log(real: Real) -> None:
    log = [real(f"{CHAT}/results_{TIME}.json"), real(f"{CHAT}/samples_smol_facts_gen_{TIME}.jsonl")]
    assert lm_eval.recognises(log)
    [run] = lm_eval.read(log)
    assert (run.slug, run.tool, run.model, run.detail) == (
        "smol_facts_gen",
        "lm-evaluation-harness 0.4.13",
        "smol",
        "text",
    )
    assert (run.status, len(run.cases), len(run.responses), run.scorers) == ("finished", 20, 20, ("exact_match",))
    assert run.cases[0].id == "fact-001"
    asked = {"role": "user", "content": "Question: What is the capital of France?\nAnswer:"}
    assert run.cases[0].messages == (asked,)
    assert run.responses[0].text == "The capital of France is Paris."
    assert {one.scores["exact_match"].value for one in run.responses} == {0.0}
    assert run.sampling == {"temperature": 0.0, "seed": 42, "max_tokens": 32, "stop": ["\n\n"]}
    assert (run.base_url, run.labels["commit"]) == ("http://127.0.0.1:8101/v1", "a38c37f")
    assert {one.served_by.system_fingerprint for one in run.responses} == {""}


def test_what_the_results_say_of_the_samples(files: Files) -> None:
    [run] = lm_eval.read(files(line()))
    assert run.labels == {"commit": "v1-3-gabc", "task_version": "2.0", "model_source": "local-completions"}
    assert run.started_at is not None
    assert run.finished_at is not None
    assert (run.finished_at - run.started_at).total_seconds() == 29.5
    assert (run.model, run.base_url) == ("smol", "http://gpu-7:8000/v1")
    assert "secret" not in repr(run)


@pytest.mark.parametrize(
    ("sent", "facts", "wanted"),
    [
        ({}, {}, {"temperature": 0.0, "seed": 1234}),
        ({"seed": 7, "temperature": 0.7, "top_p": 0.9}, {}, {"temperature": 0.7, "top_p": 0.9, "seed": 7}),
        ({}, {"config": {"model_args": {"seed": 5}, "random_seed": 9}}, {"temperature": 0.0, "seed": 5}),
        ({}, {"config": {"model_args": "pretrained=a,seed=5"}}, {"temperature": 0.0, "seed": 5}),
        ({"max_gen_toks": 8}, {"model_source": "hf"}, {"max_tokens": 8}),
        ({"do_sample": False}, {"model_source": "hf"}, {"temperature": 0.0}),
    ],
)
def test_settings_are_the_requests_and_never_the_harnesss_own(
    files: Files, sent: dict[str, Any], facts: dict[str, Any], wanted: dict[str, Any]
) -> None:
    [run] = lm_eval.read(files(line(settings={"until": ["\n"], **sent}), **facts))
    assert run.sampling == {**wanted, "stop": ["\n"]}
    assert run.responses[0].seed == wanted.get("seed")


def test_each_filter_is_a_set_of_scores_over_the_same_texts(files: Files) -> None:
    strict, loose = line(through="strict"), line(through="maj3", exact_match=0.0, filtered_resps=[" Paris"])
    [run] = lm_eval.read(files(strict, loose))
    assert len(run.responses) == 1
    assert run.scorers == ("exact_match,strict", "exact_match,maj3")
    assert [run.responses[0].scores[name].value for name in run.scorers] == [1.0, 0.0]
    assert run.responses[0].scores["exact_match,maj3"].reason == "0.0:  Paris"


def test_a_score_over_several_answers_stands_with_the_first_and_its_equals(files: Files) -> None:
    [run] = lm_eval.read(files(line(0, "Paris", "Rome", "Paris")))
    assert [(one.repeat, one.text) for one in run.responses] == [(1, "Paris"), (2, "Rome"), (3, "Paris")]
    # A repeat with an answer that was not scored has no score, for it would be one of some documents alone.
    assert [{name: one.value for name, one in each.scores.items()} for each in run.responses] == [
        {"exact_match": 1.0},
        {},
        {"exact_match": 1.0},
    ]
    assert any("scores a document once" in note for note in run.notes)


def test_the_likeliest_continuation_is_the_response_of_a_ranking(files: Files) -> None:
    [run] = lm_eval.read(files(ranking("-4.5", "-inf")))
    assert (run.responses[0].text, run.sampling, run.responses[0].seed) == (" Paris", {}, None)
    assert any("ranks given continuations" in note for note in run.notes)


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (ranking("-4.5", "-1.5"), " Rome"),
        (ranking("-9", "-8", "-1", "-1", continuations=(" a", " b") * 2, metrics=["acc", "acc_mutual_info"]), " b"),
        (line(arguments={"g": {"arg_0": "Q", "arg_1": " A"}}, resps=[[["-1", "True"]]]), " A"),
        (line(arguments={"g": {"arg_0": "Q", "arg_1": " A"}}, resps=[[["-1", "False"]]]), ""),
        (line(arguments=[["Q", " A"], ["Q", " B"]], resps=[["-2", "False"], ["-1", "True"]]), " B"),
    ],
)
def test_rankings_of_every_kind(files: Files, found: dict[str, Any], text: str) -> None:
    [run] = lm_eval.read(files(found))
    assert (run.responses[0].text, run.responses[0].error) == (text, "")


def test_documents_are_called_by_their_own_ids_where_all_have_one(files: Files) -> None:
    named = [line(3, doc={"id": "x"}), line(4, doc={"id": "y"})]
    assert [case.id for case in lm_eval.read(files(*named))[0].cases] == ["x", "y"]
    twice = [line(3, doc={"id": "x"}), line(4, doc={"id": "x"})]
    assert [case.id for case in lm_eval.read(files(*twice))[0].cases] == ["3", "4"]
    some = [line(3, doc={"id": "x"}), line(4)]
    assert [case.id for case in lm_eval.read(files(*some))[0].cases] == ["3", "4"]


def test_several_tasks_are_several_runs(files: Files, written: Written) -> None:
    other = written(f"out/samples_rivers_{TIME}.jsonl", lines(line(), line(1)))
    capitals, rivers = lm_eval.read([*files(line()), other])
    assert (capitals.slug, len(capitals.responses)) == ("capitals", 1)
    assert (rivers.slug, len(rivers.responses), rivers.model) == ("rivers", 2, "smol")


def test_samples_alone_are_read_and_say_what_is_unknown(files: Files, written: Written) -> None:
    _, samples = files(line())
    [run] = lm_eval.read([samples])
    assert (run.status, run.model, run.base_url) == ("finished", "", "")
    assert any("No results file" in note for note in run.notes)
    older = written("results_2025-01-01T00-00-00.json", json.dumps(results()).encode())
    [apart] = lm_eval.read([samples, older])
    assert apart.model == ""
    assert "The results of 2025-01-01T00-00-00 have no samples and were left out." in apart.notes
    renamed = written("results.json", json.dumps(results()).encode())
    assert lm_eval.read([samples, renamed])[0].model == "smol"


def test_documents_that_are_not_there_make_a_run_incomplete(files: Files) -> None:
    planned = {"n-samples": {"capitals": {"effective": 5}}}
    [run] = lm_eval.read(files(line(), **planned))
    assert run.status == "incomplete"
    assert "The samples of 4 documents are missing." in run.notes


def test_a_document_without_an_answer_is_missing(files: Files) -> None:
    [run] = lm_eval.read(files(line(0), line(1, resps=[[]])))
    assert [(each.case_id, bool(each.error)) for each in run.responses] == [("0", False), ("1", True)]
    assert run.status == "incomplete"


def test_results_without_samples_say_what_to_do(files: Files) -> None:
    with pytest.raises(InvalidInput) as refused:
        lm_eval.read(files(line())[:1])
    assert "--log_samples" in refused.value.fields[f"results_{TIME}.json"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (lines(line(), line()), "line 2: document 0 stands twice in the file with the filter none"),
        (lines(line()) + b"{", "line 2: is not JSON"),
        (lines(line(resps=[])), "line 1: arguments and resps must hold the requests and what came back"),
        (lines(line(resps=["Paris"])), "line 1: resps[0] must be a list"),
        (lines(line(resps=[["x"] * 1001])), "line 1: resps holds 1,001 answers; the most is 1,000"),
        (lines(line(arguments={"g": {"arg_0": "text"}})), "line 1: this task measures how likely given texts are"),
    ],
)
def test_what_cannot_be_read_is_named(written: Written, content: bytes, problem: str) -> None:
    name = f"samples_capitals_{TIME}.jsonl"
    assert problem in told_of(lm_eval.read, [written(name, content)])[name]


@pytest.mark.parametrize(
    ("name", "content", "wanted"),
    [
        ("renamed.jsonl", lines(line()), True),
        ("samples_a_b.jsonl", lines({"doc_id": 0, "doc": {"text": "x" * 100_000}}), True),
        ("renamed.json", json.dumps(results()).encode(), True),
        ("out.json", b'{"evalId": "x", "results": {"version": 3, "results": []}}', False),
        ("chat.jsonl", b'{"choices": []}\n', False),
    ],
)
def test_logs_are_recognised_by_their_heads(written: Written, name: str, content: bytes, *, wanted: bool) -> None:
    assert lm_eval.recognises([written(name, content)]) == wanted


ODD = st.sampled_from([None, True, -1, 2**70, 1e300, "", "x", "inf", "\ud800", "\0", [], [[]], [None], {}, {"a": 1}])


@settings(max_examples=200, deadline=None)
@given(
    base=st.sampled_from([line(), ranking("-1", "-2")]),
    changes=st.dictionaries(st.sampled_from(sorted(line())), ODD, max_size=2),
    argument=st.tuples(st.sampled_from(["arg_0", "arg_1"]), ODD),
    about=st.dictionaries(st.sampled_from(sorted(results())), ODD, max_size=2),
)
def test_whatever_stands_in_a_log_it_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory,
    base: dict[str, Any],
    changes: dict[str, Any],
    argument: tuple[str, Any],
    about: dict[str, Any],
) -> None:
    mutated = copy.deepcopy(base)
    mutated["arguments"]["gen_args_0"][argument[0]] = argument[1]
    folder = tmp_path_factory.getbasetemp()
    log = [LogFile(name, folder / name) for name in (f"samples_capitals_{TIME}.jsonl", f"results_{TIME}.json")]
    log[0].path.write_bytes(lines({**mutated, **changes}))
    log[1].path.write_text(json.dumps(results(**about)))
    lm_eval.recognises(log)
    try:
        runs = lm_eval.read(log)
    except InvalidInput as refused:
        assert refused.fields.keys() <= {file.name for file in log}  # noqa: PT017  a log that is read is as good
    else:
        assert len(runs) == 1


def test_without_results_the_files_name_says_when_the_eval_ended(tmp_path: Path) -> None:
    path = tmp_path / "samples_sky_2026-11-21T02-09-11.104148.jsonl"
    path.write_text(json.dumps(line(0, "Paris")))
    [run] = lm_eval.read([LogFile(path.name, path)])
    assert run.finished_at == datetime(2026, 11, 21, 2, 9, 11, 104148, tzinfo=UTC)

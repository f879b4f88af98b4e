"""The recipes of docs/imports.md, run as they stand there on small files in each tool's own form."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from evalboard.importers.files import LogFile
from evalboard.importers.formats import read_logs
from tests.conftest import ROOT

Written = Callable[[str, bytes], LogFile]
RECIPE = re.compile(r"<!-- recipe (\w+) -->\n.*?```python\n(.*?)```", re.DOTALL)
RECIPES = dict(RECIPE.findall((ROOT / "docs" / "imports.md").read_text()))
MAX_LINES = 10  # without imports

QUESTION, TARGET = "Which bird calls its own name?", "The cuckoo"


def lines(*rows: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def langsmith(answer: str, score: float) -> dict[str, Any]:
    return {
        **{"id": f"run-{answer}", "name": "Target", "run_type": "chain", "reference_example_id": "ex-1", "error": None},
        **{"inputs": {"question": QUESTION}, "outputs": {"output": answer}, "session_id": "s", "trace_id": "t"},
        **{"start_time": "2026-11-20T10:00:00", "end_time": "2026-11-20T10:00:02", "parent_run_id": None},
        "extra": {"metadata": {"ls_model_name": "wren-7b", "ls_provider": "acme"}},
        "feedback_stats": {"right": {"n": 1, "avg": score, "values": {}}},
    }


def langfuse(*answers: tuple[str | None, float]) -> str:
    observations, scores = [], []
    for number, (answer, score) in enumerate(answers):
        trace, known = f"trace-{number}", {"startTime": f"2026-11-20T10:00:0{number}.000Z", "projectId": "p"}
        prompt = {"input": [{"role": "user", "content": QUESTION}], "output": answer}
        ids = {"id": f"o-{number}-1", "traceId": trace, "parentObservationId": None}
        observations.append(known | prompt | ids | {"type": "SPAN", "providedModelName": None})
        ids = {"id": f"o-{number}-2", "traceId": trace, "parentObservationId": f"o-{number}-1"}
        observations.append(known | prompt | ids | {"type": "GENERATION", "providedModelName": "wren-7b"})
        subject = {"kind": "trace", "id": trace} if number else {"kind": "observation", "id": "o-0-2", "traceId": trace}
        about = {"id": f"s-{number}", "name": "right", "dataType": "NUMERIC", "comment": "by hand"}
        scores.append(about | {"value": score, "subject": subject})
    return json.dumps({"observations": observations, "scores": scores})


def braintrust(answer: str, score: float) -> dict[str, Any]:
    return {
        **{"id": f"row-{answer}", "experiment_id": "e-1", "is_root": True, "root_span_id": "r", "span_id": "s"},
        **{"input": QUESTION, "output": answer, "expected": TARGET, "scores": {"right": score}, "tags": None},
        **{"metadata": {"model": "wren-7b"}, "metrics": {"start": 1763632800.5, "end": 1763632802.5, "tokens": 12}},
        "span_attributes": {"name": "eval", "type": "eval"},
    }


def deepeval(answer: str, score: float) -> dict[str, Any]:
    metric = {"name": "right", "threshold": 0.5, "success": score > 0.5, "score": score, "reason": "by hand"}
    return {
        **{"name": "test_case_0", "input": QUESTION, "actualOutput": answer, "expectedOutput": TARGET},
        **{"success": score > 0.5, "runDuration": 1.5, "order": 0, "metricsData": [metric]},
    }


def phoenix(answer: str, score: float, repeat: int) -> dict[str, Any]:
    note = {"name": "right", "annotator_kind": "CODE", "label": None, "score": score, "explanation": "by hand"}
    return {
        **{"example_id": "RGF0YXNldDox", "repetition_number": repeat, "input": {"question": QUESTION}, "error": None},
        **{"reference_output": {"answer": TARGET}, "output": answer, "latency_ms": 1500.5, "trace_id": "t"},
        **{"start_time": "2026-11-20T10:00:00+00:00", "end_time": "2026-11-20T10:00:02+00:00", "annotations": [note]},
    }


def openai_evals() -> str:
    rest = {"run_id": "r-1", "created_by": "", "created_at": "2026-11-20 10:00:02.000000+00:00"}
    spec = {"completion_fns": ["wren-7b"], "eval_name": "birds.dev.v0", "base_eval": "birds", "split": "dev"}
    rows: list[dict[str, Any]] = [{"spec": spec | {"run_config": {"seed": 1}, "run_id": "r-1"}}]
    for n, (answer, is_right) in enumerate(((TARGET, True), ("The owl", False))):
        prompt = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": f"{n}. {QUESTION}"}]
        own = rest | {"sample_id": f"birds.dev.{n}"}
        sampled = {"prompt": prompt, "sampled": [answer]}
        match = {"correct": is_right, "expected": TARGET, "picked": answer, "sampled": answer, "options": [TARGET]}
        rows += [own | {"event_id": 2 * n, "type": "sampling", "data": sampled}]
        rows += [own | {"event_id": 2 * n + 1, "type": "match", "data": match}]
    return lines(*rows, {"final_report": {"accuracy": 0.5}})


def simple_evals() -> str:
    def page(answer: str, score: float) -> str:
        facts = {"Correct Answer": TARGET, "Extracted Answer": answer, "Score": score}
        return "<h3>Results</h3>\n" + "\n".join(f"<p>{name}: {value}</p>" for name, value in facts.items())

    asked = {"role": "user", "content": QUESTION}
    answers = ((TARGET, 1.0), ("The owl", 0.0))
    convos = [[asked, {"role": "assistant", "content": answer}] for answer, _ in answers]
    metadata = {"example_level_metadata": [None, None]}
    whole = {"score": 0.5, "metrics": {"chars": 8.5}, "htmls": [page(*each) for each in answers]}
    return json.dumps(whole | {"convos": convos, "metadata": metadata})


def ragas() -> str:
    head = "user_input,retrieved_contexts,response,reference,right,faithfulness"
    contexts = "\"['A cuckoo calls its name, they say.']\""
    return f"{head}\n{QUESTION},{contexts},{TARGET},{TARGET},1.0,0.75\n{QUESTION},{contexts},The owl,{TARGET},0.0,\n"


PAIR = ((TARGET, 1.0), ("The owl", 0.0))
FILES = {
    "langsmith": lines(*(langsmith(*each) for each in PAIR)),
    "langfuse": langfuse(*PAIR),
    "braintrust": lines(*(braintrust(*each) for each in PAIR)),
    "deepeval": json.dumps({"testFile": "test_birds.py", "testCases": [deepeval(*each) for each in PAIR]}),
    "phoenix": json.dumps([phoenix(*each, repeat) for repeat, each in enumerate(PAIR, start=1)]),
    "openai_evals": openai_evals(),
    "simple_evals": simple_evals(),
    "ragas": ragas(),
}
ALONE = ("openai_evals", "simple_evals")  # whose two answers are of two cases
NO_MODEL = ("deepeval", "phoenix", "simple_evals", "ragas")
NO_TARGET = ("langsmith", "langfuse")


def convert(tool: str, source: LogFile) -> bytes:
    command = [sys.executable, "-c", RECIPES[tool], str(source.path)]
    return subprocess.run(command, capture_output=True, check=True, cwd=source.path.parent).stdout


def test_every_recipe_has_a_file() -> None:
    assert RECIPES.keys() == FILES.keys()


@pytest.mark.parametrize("tool", FILES)
def test_a_recipe_brings_answers_and_scores(written: Written, tool: str) -> None:
    name, [run] = read_logs([written("scores.jsonl", convert(tool, written(f"{tool}.out", FILES[tool].encode())))])
    assert (name, run.status, len(run.cases)) == ("scores", "finished", 2 if tool in ALONE else 1)
    assert [(each.repeat, each.text) for each in run.responses] == [
        (1, TARGET),
        (1 if tool in ALONE else 2, "The owl"),
    ]
    main = "score" if tool in ALONE else "right"
    assert [each.scores[main].value for each in run.responses] == [1.0, 0.0]
    assert run.scorers[0] == main
    assert run.model == ("" if tool in NO_MODEL else "wren-7b")
    assert any(QUESTION in str(message["content"]) for message in run.cases[0].messages)
    assert (TARGET in str(run.cases[0].target)) == (tool not in NO_TARGET)
    assert [note for note in run.notes if "are not read" in note] == []
    assert all(each.dropped == () for each in run.responses)


@pytest.mark.parametrize("tool", RECIPES)
def test_a_recipe_is_short(tool: str) -> None:
    body = [line for line in RECIPES[tool].splitlines() if line and not line.startswith("import ")]
    assert len(body) <= MAX_LINES


FAILED = {
    "langsmith": lines(langsmith(*PAIR[0]), langsmith("none", 0) | {"error": "timeout", "outputs": None}),
    "langfuse": langfuse(PAIR[0], (None, 0)),
    "braintrust": lines(braintrust(*PAIR[0]), braintrust("none", 0) | {"output": None, "metadata": None, "scores": {}}),
    "deepeval": json.dumps({"testCases": [deepeval(*PAIR[0]), {"name": "b", "input": QUESTION, "metricsData": None}]}),
    "phoenix": json.dumps([phoenix(*PAIR[0], 1), phoenix("none", 0, 2) | {"error": "timeout", "output": None}]),
}


@pytest.mark.parametrize("tool", FAILED)
def test_an_answer_that_a_tool_lacks_is_missing(written: Written, tool: str) -> None:
    converted = convert(tool, written(f"{tool}.out", FAILED[tool].encode()))
    [first, *others] = read_logs([written("scores.jsonl", converted)])[1]
    assert [(each.text, bool(each.error)) for each in first.responses] == [(TARGET, False), ("", True)]
    assert (first.status, others) == ("incomplete", [])


def test_html_of_simple_evals_is_read_as_text(written: Written) -> None:
    page = (
        FILES["simple_evals"].replace(f"Correct Answer: {TARGET}", "Correct Answer: 1 &lt; 2").replace("1.0<", "True<")
    )
    [run] = read_logs([written("scores.jsonl", convert("simple_evals", written("simple.json", page.encode())))])[1]
    assert [case.target for case in run.cases] == ["1 < 2"] * 2
    assert [each.scores["score"].value for each in run.responses] == [1.0, 0.0]

"""A log of no known format is refused by what it looks like, what comes closest, and the way out."""

import gzip
import io
import json
import zipfile
from collections.abc import Callable

import pytest

from evalboard.core.errors import InvalidInput
from evalboard.importers.files import LogFile
from evalboard.importers.formats import FORMATS, read_logs
from evalboard.importers.looks import NEEDS
from tests.importers.test_recipes_of_docs import FILES

Written = Callable[[str, bytes], LogFile]
TOOLS = {
    "langsmith": "runs of LangSmith (line 1)",
    "langfuse": "traces of Langfuse (line 1)",
    "braintrust": "rows of a Braintrust experiment (line 1)",
    "deepeval": "a test run of DeepEval (line 1)",
    "phoenix": "runs of a Phoenix experiment (item 1)",
    "openai_evals": "events of OpenAI evals (line 1)",
    "simple_evals": "results of simple-evals (line 1)",
    "ragas": "samples of Ragas: a table with the columns user_input, retrieved_contexts, response, reference, right",
}


def refusal(*files: LogFile) -> str:
    with pytest.raises(InvalidInput) as refused:
        read_logs(files)
    assert list(refused.value.fields) == ["format"]
    return refused.value.fields["format"]


def test_every_format_says_what_it_needs() -> None:
    assert list(NEEDS) == list(FORMATS)


@pytest.mark.parametrize("tool", FILES)
def test_a_tool_with_a_recipe_is_named_with_it(written: Written, tool: str) -> None:
    said = refusal(written(f"{tool}.out", FILES[tool].encode()))
    assert said.startswith(f"No known format fits {tool}.out. It looks like {TOOLS[tool]}")
    assert "for which docs/imports.md has ten lines of Python." in said


def archive() -> bytes:
    with zipfile.ZipFile(content := io.BytesIO(), "w") as made:
        made.writestr("manifest.json", '{"format": "evalboard-run"}')
    return content.getvalue()


GEMINI = {"candidates": [{"content": {"parts": [{"text": "Oslo"}]}, "finishReason": "STOP"}], "modelVersion": "g"}
OLLAMA = {"model": "m", "created_at": "2026-11-20T10:00:00Z", "message": {"content": "Oslo"}, "done": True}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (json.dumps(GEMINI), "It looks like a response of Gemini (line 1). Closest is scores, but answer is missing."),
        (json.dumps(OLLAMA), "a response of Ollama (line 1)"),
        (json.dumps([OLLAMA]), "a response of Ollama (item 1)"),
        (json.dumps(OLLAMA, indent=1), "a response of Ollama. Closest"),
        ('{"question": "2 + 2?"}\n', "a data set of prompts without answers (line 1)"),
        ('{"messages": [{"role": "user", "content": "2 + 2?"}]}\n', "a data set of prompts without answers"),
        ('{"question": "2 + 2?", "answer": "4"}\n', "a data set with its right answers"),
        (
            '{"question": "2 + 2?", "answer": "4"}\n',
            "The format scores, where it is named, reads `answer` as the model's.",
        ),
        ('{"prompt": "2 + 2?", "completion": "4"}\n', "answers under the name `completion` (line 1)"),
        ('{"suite": {"title": "Sums"}}\n{"id": "a", "prompt": "2 + 2?"}\n', "a suite of Evalboard"),
        ('{"input": "2 + 2?", "output": "4"}', "`output` (line 1). Closest is scores, but answer is missing."),
        ('{"score": 0.81, "score:std": 0.4}', "figures of an eval, without its answers"),
        ('{"custom_id": "a", "method": "POST"}', "Closest is batch, but response is missing."),
        ('{"doc_id": 1, "resps": []}', "Closest is lm_eval, but arguments is missing."),
        ('{"colour": "red", "size": 2}', "JSON with the fields colour, size (line 1)"),
        ('{"colour": ', "damaged JSON, or JSON that breaks off: it is not JSON"),
        ('{\n "colour": 1,\n "size" 2\n}', "it is not JSON: Expecting ':' delimiter: line 3 column 9"),
        ("[1, 2]", "JSON without an object in it: [1, 2]"),
        ("{}", "empty JSON"),
        ("a;b\n1;2\n", "a table with the columns a, b"),
        ("Dear diary", "text that is no JSON"),
        ("<!doctype html><p>Bad gateway", "a page of HTML or XML"),
        ("", "an empty file"),
        (b"PAR1\0\0\0", "a Parquet file"),
        (b"\0\1\2", "binary data"),
        ("{}".encode("utf-16"), "text in UTF-16: save it as UTF-8"),
        (b"log.jsonl".ljust(257, b"\0") + b"ustar\0", "a tar archive: unpack it first"),
        (b"PK\3\4\0\0", "a zip that is no log of Inspect's"),
        (archive(), "an archive of Evalboard, which `evalboard diff` compares"),
        (gzip.compress(gzip.compress(b"{}", mtime=0), mtime=0), "a file that was compressed twice"),
    ],
)
def test_what_a_file_looks_like_is_said(written: Written, content: str | bytes, words: str) -> None:
    said = refusal(written("log.out", content if isinstance(content, bytes) else content.encode()))
    assert words in said


def test_the_way_out_is_two_lines_that_are_read(written: Written) -> None:
    said = refusal(written("notes.txt", b"Dear diary"))
    example = said.partition("such as ")[2].partition(". Or name")[0].replace(" and {", "\n{")
    name, [run] = read_logs([written("scores.jsonl", example.encode())])
    assert (name, len(run.cases), run.scorers, run.status) == ("scores", 2, ("score",), "finished")


def test_files_of_several_formats_are_named_with_theirs(written: Written) -> None:
    said = refusal(written("a.jsonl", b'{"answer": "x"}'), written("b.jsonl", b'{"choices": []}'))
    assert said.startswith("The files are of several formats (a.jsonl is scores, b.jsonl is chat)")


def test_of_several_files_those_that_do_not_fit_are_named(written: Written) -> None:
    notes = [written(f"{name}.txt", b"Dear diary") for name in "bcdef"]
    said = refusal(written("a.jsonl", b'{"answer": "x"}'), *notes)
    assert said.startswith("No known format fits b.txt, c.txt, d.txt, e.txt, f.txt. b.txt looks like text")
    assert "a.jsonl" not in said
    assert "2 files more." in said


def test_a_long_name_of_a_field_is_cut(written: Written) -> None:
    said = refusal(
        written("log.jsonl", json.dumps({f"{n}{'x' * 500}": 1.5 for n in "abcdefghijk"} | {"z": "z"}).encode())
    )
    assert len(said) < 1200

"""Describe a file of no known format: what it looks like, the closest format, and what to do."""

import csv
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from evalboard.core.errors import InvalidInput
from evalboard.importers.field_values import shortened
from evalboard.importers.files import LogFile
from evalboard.importers.json_files import parse_value
from evalboard.wording.numbers import counted

MAX_FILES_EXPLAINED = 3
MAX_FIELDS_NAMED = 8
MAX_LOOKED_AT = 16 << 20  # bytes of one JSON text
RECIPES = "docs/imports.md"

# The fields of each form of a format, first the one that tells it from others. The closest format is that of the form
# of which most fields are there.
NEEDS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "inspect": (("eval", "samples"),),
    "lm_eval": (("doc_id", "arguments", "resps"), ("results", "configs")),
    "promptfoo": (("testIdx", "promptIdx", "response"), ("evalId", "results")),
    "batch": (("custom_id", "response"), ("custom_id", "body"), ("custom_id", "params"), ("custom_id", "result")),
    "litellm": (("litellm_call_id", "trace_id", "call_type", "response"),),
    "scores": (("answer",),),
    "chat": (("choices", "model", "object"), ("request", "response"), ("object", "output", "status")),
    "rollouts": (("prompt_ids", "completion_ids", "logprobs"), ("token_ids", "logprobs")),
}

# By the fields of the first object, which others may stand beside; the first that fits. Those that end in `+` have a
# recipe in the docs.
_OBJECTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("a response of Gemini", ("candidates",)),
    ("a line of a Gemini batch", ("key", "response")),
    ("a response of Ollama", ("model", "created_at", "done")),
    ("a response of llama.cpp's own /completion", ("content", "tokens_predicted")),
    ("a response of SGLang's own /generate", ("text", "meta_info")),
    ("a response of Cohere", ("generation_id", "text")),
    ("OpenTelemetry spans", ("resourceSpans",)),
    ("spans of Phoenix, which hold no scores", ("span_kind", "attributes")),
    ("spans of OpenTelemetry, which hold no scores", ("trace_id", "span_id", "attributes")),
    ("runs of a Phoenix experiment+", ("example_id", "reference_output")),
    ("traces of Langfuse+", ("observations",)),
    ("traces of Langfuse+", ("data", "meta")),
    ("runs of LangSmith+", ("run_type", "inputs")),
    ("rows of a Braintrust experiment+", ("experiment_id",)),
    ("rows of a Braintrust experiment+", ("input", "output", "expected")),
    ("a test run of DeepEval+", ("testCases",)),
    ("events of OpenAI evals+", ("run_id", "event_id")),
    ("events of OpenAI evals+", ("spec",)),
    ("results of simple-evals+", ("convos", "htmls")),
    ("samples of Ragas+", ("user_input", "response")),
    ("results of lighteval, which hold scores and no answers", ("config_general", "results")),
    ("simulations of tau2", ("simulations", "tasks")),
    ("a batch that is under way, not its results", ("input_file_id", "endpoint", "status")),
    ("a batch that is under way, not its results", ("results_url", "processing_status")),
    ("a request to a model, without its response", ("model", "messages")),
    ("a suite of Evalboard: `evalboard suite push` takes it", ("slug", "cases")),
    ("a suite of Evalboard: `evalboard suite push` takes it", ("suite",)),
    ("a data set with its right answers", ("question", "answer")),
    ("answers under the name `completion`", ("prompt", "completion")),
    ("answers under the name `response`", ("prompt", "response")),
    ("answers under the name `output`", ("prompt", "output")),
    ("answers under the name `output`", ("input", "output")),
    ("answers under the name `response`", ("question", "response")),
    *(
        ("a data set of prompts without answers", (name,))
        for name in ("prompt", "question", "messages", "input", "instruction", "problem", "query", "user_input")
    ),
)
_MAGIC = (
    (b"PAR1", "a Parquet file"),
    (b"SQLite format 3", "an SQLite database"),
    (b"%PDF", "a PDF"),
    (b"ARROW1", "an Arrow file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\xff\xfe", "text in UTF-16: save it as UTF-8"),
    (b"\xfe\xff", "text in UTF-16: save it as UTF-8"),
    (b"PK", "a zip that is no log of Inspect's: unpack it first"),
    (b"\x1f\x8b", "a file that was compressed twice"),
    (b"\x28\xb5\x2f\xfd", "a file that was compressed twice"),
    (b"7z\xbc\xaf", "a 7-Zip archive"),
    (b"BZh", "a file that bzip2 compressed; gzip and Zstandard are read"),
    (b"\xfd7zXZ", "a file that xz compressed; gzip and Zstandard are read"),
)
_EXAMPLE = (
    '{"case": "1", "prompt": "2 + 2?", "answer": "4", "score": 1} and '
    '{"case": "2", "prompt": "2 + 3?", "answer": "6", "score": 0}'
)


def explain(files: Sequence[LogFile], formats: Mapping[str, str]) -> str:
    """Return why no known format fits these files. formats: those that fit single ones, by file name."""
    known = dict.fromkeys(formats.values())
    if len(known) > 1 and len(formats) == len(files):
        each = ", ".join(f"{name} is {fitting}" for name, fitting in formats.items())
        return f"The files are of several formats ({each}): import those of one format at a time."
    strange = [file for file in files if file.name not in formats]
    names = ", ".join(file.name for file in strange)
    more = len(strange) - MAX_FILES_EXPLAINED
    parts = [_describe(file, is_alone=len(strange) == 1) for file in strange[:MAX_FILES_EXPLAINED]]
    others = f" {counted(more, 'file')} more." if more > 0 else ""
    return (
        f"No known format fits {names}. {' '.join(parts)}{others} Any tool's results can be written as lines with "
        f"scores ({RECIPES}), such as {_EXAMPLE}. Or name the format, if it is one of: {', '.join(NEEDS)}."
    )


def _describe(file: LogFile, *, is_alone: bool) -> str:
    looks, has_recipe, place = _look(file)
    what = f"{'It' if is_alone else file.name} looks like {looks}{f' ({place})' if place else ''}"
    what += f", for which {RECIPES} has ten lines of Python." if has_recipe else "."
    return f"{what} {_closest(file.first_object)}" if file.first_object else what


def _look(file: LogFile) -> tuple[str, bool, str]:
    """Return what a file looks like, whether the docs have a recipe for it, and the link."""
    head, start = file.head(), file.start
    if not start:
        return "an empty file", False, ""
    if head.startswith(b"PK") and _is_archive(file):
        return "an archive of Evalboard, which `evalboard diff` compares: no import reads it", False, ""
    by_magic = next((words for magic, words in _MAGIC if head.startswith(magic)), "")
    if by_magic:
        return by_magic, False, ""
    if head[257:262] == b"ustar":
        return "a tar archive: unpack it first", False, ""
    if b"\0" in head:
        return "binary data", False, ""
    if start[:1] in "{[":
        return _look_at_json(file, start)
    if start[:1] == "<":
        return "a page of HTML or XML, which a server or a proxy may give in place of a file", False, ""
    return _look_at_text(start)


def _is_archive(file: LogFile) -> bool:
    try:
        with zipfile.ZipFile(file.path) as opened, opened.open("manifest.json") as manifest:
            return b"evalboard-" in manifest.read(200)
    except (zipfile.BadZipFile, zlib.error, LookupError, OSError, RuntimeError):
        return False


def _look_at_json(file: LogFile, start: str) -> tuple[str, bool, str]:
    first_line = start.partition("\n")[0].strip()
    place = "" if first_line in ("{", "[") else "item 1" if start[0] == "[" else "line 1"
    first = file.first_object
    for words, fields in _OBJECTS:
        if first.keys() >= set(fields):
            return words.removesuffix("+"), words.endswith("+"), place
    if first and all(isinstance(value, int | float) for value in first.values()):
        return "figures of an eval, without its answers", False, place
    if first:
        names = ", ".join(shortened(name, 40) for name in list(first)[:MAX_FIELDS_NAMED])
        more = ", …" if len(first) > MAX_FIELDS_NAMED else ""
        return f"JSON with the fields {names}{more}", False, place
    is_document = not place and file.content_size <= MAX_LOOKED_AT
    try:
        value = parse_value(file.read() if is_document else first_line, where="")
    except InvalidInput as problem:
        return f"damaged JSON, or JSON that breaks off: it {problem.detail}", False, place
    return f"JSON without an object in it: {shortened(first_line, 40)}" if value else "empty JSON", False, place


def _look_at_text(start: str) -> tuple[str, bool, str]:
    lines = start.split("\n")
    for delimiter in (",", "\t", ";"):
        row = next(csv.reader(lines[:1], delimiter=delimiter), [])
        if len(row) > 1 and len(lines) > 1 and delimiter in lines[1]:
            columns: Mapping[str, Any] = dict.fromkeys(name.strip() for name in row)
            names = ", ".join(shortened(name, 40) for name in list(columns)[:MAX_FIELDS_NAMED])
            fitting = next((words for words, fields in _OBJECTS if columns.keys() >= set(fields)), "")
            what = f"a table with the columns {names}{', …' if len(columns) > MAX_FIELDS_NAMED else ''}"
            return (f"{fitting[:-1]}: {what}", True, "") if fitting.endswith("+") else (what, False, "")
    return "text that is no JSON", False, ""


def _closest(first: Mapping[str, Any]) -> str:
    """Return the format closest to a first object, and what it lacks."""
    forms = [(name, fields) for name, needs in NEEDS.items() for fields in needs if fields[0] in first]
    if not forms:
        return "Closest is scores, but answer is missing."
    name, fields = max(forms, key=lambda form: sum(field in first for field in form[1]) / len(form[1]))
    lacking = [field for field in fields if field not in first]
    if not lacking and name == "scores":
        return "The format scores, where it is named, reads `answer` as the model's."
    if not lacking:
        return f"Closest is {name}, but it holds something else as {' and '.join(fields)}."
    return f"Closest is {name}, but {' and '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} missing."

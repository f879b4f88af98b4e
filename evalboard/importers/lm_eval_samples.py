"""The samples of one lm-evaluation-harness task: a line for each document and filter."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from evalboard.core.errors import InvalidInput
from evalboard.importers import calls
from evalboard.importers.field_values import label, mapping, number, objects, rows, shortened, text, whole
from evalboard.importers.json_files import OddRows, parse_value
from evalboard.importers.records import LoggedCase, LoggedScore

NO_FILTER = "none"
MAX_REPEATS = 1000  # of one document

# Of a line, what is no metric; lines of old versions do not name their metrics.
_OWN_FIELDS = frozenset(
    {
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
        *("doc_hash", "prompt_hash", "target_hash"),
    }
)


@dataclass(slots=True, kw_only=True)
class Document:
    """One document. answers: by repeat, None if missing; scores: by metric, over all answers.

    `own_id` is what the dataset calls it, "" where it has no name; `settings` are the request's own; `input` as
    `LoggedCase` has it.
    """

    index: str
    own_id: str
    messages: tuple[Mapping[str, Any], ...]
    target: Any
    answers: tuple[str | None, ...]
    settings: Mapping[str, Any]
    is_ranking: bool
    scores: dict[str, LoggedScore] = field(default_factory=dict)
    input: str = ""

    def case(self, case_id: str) -> LoggedCase:
        return LoggedCase(id=case_id, messages=self.messages, target=self.target, input=self.input)


def read_documents(lines: Iterable[tuple[int, Mapping[str, Any]]], odd: OddRows) -> list[Document]:
    """Return each document of a samples file once; further lines are the same by other filters.

    odd: takes the lines that cannot be read.
    """
    documents: dict[str, Document] = {}
    seen: set[tuple[str, str]] = set()
    for line_number, line in lines:
        odd.read(f"line {line_number}", _add, documents, seen, line)
    return list(documents.values())


def _add(documents: dict[str, Document], seen: set[tuple[str, str]], line: Mapping[str, Any]) -> None:
    index, through = label(line.get("doc_id")), text(line.get("filter")) or NO_FILTER
    if not index:
        raise InvalidInput("doc_id is missing, so it is no sample of lm-evaluation-harness's")
    if (index, through) in seen:
        raise InvalidInput(f"document {index[:80]} stands twice in the file with the filter {through[:80]}")
    seen.add((index, through))
    if index not in documents:
        documents[index] = _document(index, line)
    documents[index].scores.update(_scores(line, through))


def _document(index: str, line: Mapping[str, Any]) -> Document:
    requests = _requests(line.get("arguments"))
    resps = rows(line.get("resps"), "resps")
    if not requests or not resps:
        raise InvalidInput("arguments and resps must hold the requests and what came back")
    is_ranking = not isinstance(requests[0][1], Mapping)
    answers = _ranked(requests, resps, line) if is_ranking else _generated(resps)
    messages = _messages(requests[0][0])
    return Document(
        index=index,
        own_id=_own_id(line.get("doc")),
        messages=messages,
        target=_target(line.get("target")),
        answers=answers,
        settings={} if is_ranking else requests[0][1],
        is_ranking=is_ranking,
        input=calls.read_input(line.get("doc"), messages),
    )


def _requests(arguments: Any) -> list[tuple[Any, Any]]:
    """Return (prompt, settings or continuation) of each request, None for a request without the second.

    Newer versions write `{"gen_args_0": {"arg_0": …, "arg_1": …}, …}`, older ones a list of lists.
    """
    if isinstance(arguments, Mapping):
        given = objects(list(arguments.values()), "arguments")
        return [(request.get("arg_0"), request.get("arg_1")) for request in given]
    listed = [rows(request, "arguments") for request in rows(arguments, "arguments")]
    return [(*request, None, None)[:2] for request in listed]


def _generated(resps: list[Any]) -> tuple[str | None, ...]:
    answers = rows(resps[0], "resps[0]")
    if len(answers) > MAX_REPEATS:
        raise InvalidInput(f"resps holds {len(answers):,} answers; the most is {MAX_REPEATS:,}")
    return tuple(answer if isinstance(answer, str) else None for answer in answers) or (None,)


def _ranked(requests: list[tuple[Any, Any]], resps: list[Any], line: Mapping[str, Any]) -> tuple[str | None, ...]:
    """Return the one answer of a task that ranks given continuations by logprob: the most likely one.

    For a single continuation: itself if greedy decoding would have given it, else "".
    """
    choices = [(text(_plain(prompt)), text(continuation)) for prompt, continuation in requests]
    if not any(continuation for _, continuation in choices):
        raise InvalidInput("this task measures how likely given texts are; it holds no responses to import")
    if "acc_mutual_info" in rows(line.get("metrics"), "metrics"):
        choices = choices[: len(choices) // 2]  # the other half are the same continuations without the prompt
    outcomes = [_outcome(one) for one in resps[: len(choices)]]
    if len(outcomes) < len(choices) or any(math.isnan(logprob) for logprob, _ in outcomes):
        return (None,)
    if len(choices) == 1:
        return (choices[0][1] if outcomes[0][1] else "",)
    best = max(range(len(choices)), key=lambda place: outcomes[place][0])
    # Some tasks put each choice into the prompt and let the same words follow.
    is_by_prompt = len({continuation for _, continuation in choices}) < len(choices)
    return ("".join(choices[best]) if is_by_prompt else choices[best][1],)


def _outcome(resp: Any) -> tuple[float, bool]:
    """Return a continuation's summed logprob in nats, NaN if invalid, and whether it is the greedy one."""
    while isinstance(resp, list) and resp and isinstance(resp[0], list):
        resp = resp[0]
    logprob, is_greedy = (*rows(resp, "resps"), None, None)[:2]
    try:
        value = float(logprob) if isinstance(logprob, str | int | float) else math.nan
    except (ValueError, OverflowError):
        value = math.nan
    return value, is_greedy in (True, "True")


def _messages(prompt: Any) -> tuple[Mapping[str, Any], ...]:
    """Return the prompt as messages. In chat mode it is a list with the messages as one JSON text."""
    plain = _plain(prompt)
    if plain is not prompt:
        try:
            written = parse_value(plain, where="arg_0")
        except InvalidInput:
            written = None
        if isinstance(written, list):
            return calls.prompt({"messages": written})
    return calls.prompt({"prompt": plain if isinstance(plain, str) else None})


def _plain(prompt: Any) -> Any:
    is_wrapped = isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str)
    return prompt[0] if is_wrapped else prompt


def _scores(line: Mapping[str, Any], through: str) -> Iterator[tuple[str, LoggedScore]]:
    """Yield one filter's metrics by lm-eval's names: `metric,filter`, or only the metric without a filter."""
    named = [metric for metric in rows(line.get("metrics"), "metrics") if isinstance(metric, str)]
    metrics = named or [name for name in line if name not in _OWN_FIELDS and number(line[name]) is not None]
    filtered = rows(line.get("filtered_resps"), "filtered_resps")
    read_as = text(filtered[0]) if len(filtered) == 1 else ""
    for metric in metrics:
        value = line.get(metric)
        score = float(value) if isinstance(value, bool) else number(value)
        words = f"{label(score) or 'no number'}: {read_as}" if read_as else label(score)
        name = metric if through == NO_FILTER else f"{metric},{through}"
        yield name, LoggedScore(score, shortened(words))


def _own_id(doc: Any) -> str:
    try:
        return calls.own_id(mapping(doc, "doc"), ("id",))
    except InvalidInput:
        return ""  # no case can be called so; the place in the dataset names it


def _target(target: Any) -> Any:
    if isinstance(target, list):
        return [one for one in target if isinstance(one, str)] or None
    return target if text(target) or whole(target) is not None else None

"""promptfoo's output as JSON (`-o out.json`), or as JSON lines, which leave its configuration out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from evalboard.core.digest import digest_json
from evalboard.core.errors import InvalidInput
from evalboard.importers import backends, calls
from evalboard.importers.calls import LoggedCall
from evalboard.importers.completions import MAX_ERROR_CHARS, count, ending_problem, output_text
from evalboard.importers.field_values import (
    SideFields,
    drop_odd,
    http_date,
    label,
    mapping,
    moment,
    number,
    objects,
    shortened,
    text,
    whole,
)
from evalboard.importers.files import LogFile
from evalboard.importers.json_files import OddRows, naming, parse_value, read_rows
from evalboard.importers.records import LoggedResponse, LoggedRun, LoggedScore

PASS, SCORE = "pass", "score"  # our names of promptfoo's own two judgements; the others are named by its users
ASSERTION_FAILED, ERROR = 1, 2  # of `failureReason`

_OWN_IDS = ("sample_id", "case_id", "custom_id", "question_id", "task_id", "data_index", "id")
_KINDS = ("chat", "completion", "completions", "messages", "responses", "assistant", "realtime")
_NOT_MODELS = ("file", "exec", "python", "http", "https", "package", "webhook", "ws", "wss")
MAX_LABELS = 20
SIDE_FIELDS = {"config": dict, "config.tags": dict, "runtimeOptions": dict, "metadata": dict, "results.stats": dict}


@dataclass(frozen=True, slots=True)
class _Eval:
    """One file. `config` and `options` are empty where the log is of JSON lines."""

    file: LogFile
    id: str
    results: Sequence[Mapping[str, Any]]
    config: Mapping[str, Any]
    options: Mapping[str, Any]
    tool: str
    started_at: datetime | None
    finished_at: datetime | None
    notes: Sequence[str] = ()


def recognises(files: Sequence[LogFile]) -> bool:
    """Return whether every file is an output of promptfoo."""
    return bool(files) and all(_is_output(file.first_object) for file in files)


def read(files: Sequence[LogFile]) -> list[LoggedRun]:
    """Return one run per file, provider and prompt. Raises InvalidInput naming the file and place."""
    runs = []
    for file in files:
        with naming(file):
            odd = OddRows(file)
            evaluation = _read_eval(file, odd)
            groups: dict[tuple[str, int], list[tuple[str, Mapping[str, Any]]]] = {}
            for n, result in enumerate(evaluation.results):
                if (group := odd.read(f"results[{n}]", _group, result)) is not None:
                    groups.setdefault(group, []).append((f"results[{n}]", result))
            if not groups and not odd.problems:
                raise InvalidInput("holds no results")
            n_prompts = len({prompt for _, prompt in groups})
            made = [_run(evaluation, provider, results, n_prompts, odd) for (provider, _), results in groups.items()]
            notes = [*evaluation.notes, *odd.settle(n_rows=max(len(evaluation.results), odd.n_rows))]
            runs += [replace(run, notes=(*run.notes, *notes)) for run in made if run is not None]
    return runs


def _is_output(document: Mapping[str, Any]) -> bool:
    results = document.get("results")
    is_whole = isinstance(results, Mapping) and ("evalId" in document or "results" in results or "prompts" in results)
    return is_whole or _is_result(document)


def _is_result(row: Mapping[str, Any]) -> bool:
    return "testIdx" in row and "promptIdx" in row


def _read_eval(file: LogFile, odd: OddRows) -> _Eval:
    rows = [row for _, row in read_rows(file, odd)]
    if rows and _is_result(rows[0]):
        return _Eval(file, "", rows, {}, {}, "promptfoo", None, None)
    if not rows and odd.problems:
        raise InvalidInput(odd.problems[0])
    document = rows[0] if len(rows) == 1 else {}
    notes = drop_odd(document, SIDE_FIELDS)
    results = mapping(document.get("results"), "results")
    if not isinstance(results.get("results"), list):
        raise InvalidInput("is no output of promptfoo: results.results is missing")
    started_at = moment(results.get("timestamp"))
    seconds = (number(mapping(results.get("stats"), "stats").get("durationMs")) or 0) / 1000
    version = label(mapping(document.get("metadata"), "metadata").get("promptfooVersion"))
    return _Eval(
        file=file,
        id=text(document.get("evalId")),
        results=objects(results["results"], "results.results"),
        config=mapping(document.get("config"), "config"),
        options=mapping(document.get("runtimeOptions"), "runtimeOptions"),
        tool=f"promptfoo {version}".strip(),
        started_at=started_at,
        finished_at=started_at + timedelta(seconds=seconds) if started_at and 0 < seconds < 1e8 else None,
        notes=notes,
    )


def _group(result: Mapping[str, Any]) -> tuple[str, int]:
    provider, provider_label = _provider(result)
    return provider_label or provider, whole(result.get("promptIdx")) or 0


def _provider(result: Mapping[str, Any]) -> tuple[str, str]:
    """Return a result's provider: its id and its label."""
    provider = result.get("provider")
    if isinstance(provider, str):
        return provider, ""
    given = mapping(provider, "provider")
    return text(given.get("id")), text(given.get("label"))


def _run(
    evaluation: _Eval, provider: str, results: Sequence[tuple[str, Mapping[str, Any]]], n_prompts: int, odd: OddRows
) -> LoggedRun | None:
    """Return the run of a group; None where nothing of it can be read."""
    provider_id, provider_label = _provider(results[0][1])
    config = _provider_config(evaluation.config, provider_id, provider_label)
    calls_read = [odd.read(place, _call, place, result, config, evaluation) for place, result in results]
    made = [call for call in calls_read if call is not None]
    results = [result for result, call in zip(results, calls_read, strict=True) if call is not None]
    if not made:
        return None
    prompt_name = text(mapping(results[0][1].get("prompt"), "prompt").get("label")) if n_prompts > 1 else ""
    name = text(mapping(evaluation.config.get("tags"), "config.tags").get("suite"))
    name = name or text(evaluation.config.get("description"))
    title = " · ".join(part[:60] for part in (name, provider, prompt_name) if part)
    slug = calls.slug(f"{name} {prompt_name[:40]}") if name else ""
    run = calls.logged_run(
        made,
        tool=evaluation.tool,
        title=title or calls.title([evaluation.file.name]),
        slug=slug,
        model=text(config.get("model")) or _model(provider_id),
        own_ids=tuple(_own_ids(evaluation, [result for _, result in results])),
        labels=_labels(evaluation),
        notes=_notes(results),
    )
    return replace(run, started_at=evaluation.started_at, finished_at=evaluation.finished_at)


def _call(place: str, result: Mapping[str, Any], config: Mapping[str, Any], evaluation: _Eval) -> LoggedCall:
    response = mapping(result.get("response"), "response")
    base_url = backends.address(config.get("apiBaseUrl") or config.get("apiHost"))
    messages = calls.prompt({"messages": _messages(result)})
    return LoggedCall(
        place=place,
        responses=(_response(result, response, config, base_url),),
        case_id=_case_id(result),
        repeat=_repeat(result, evaluation.options),
        index=whole(result.get("testIdx")),
        messages=messages,
        input=calls.read_input(_variables(result), messages),
        sampling=calls.read_sampling({**config, **mapping(config.get("passthrough"), "passthrough")}),
        base_url=base_url,
    )


def _response(
    result: Mapping[str, Any], response: Mapping[str, Any], config: Mapping[str, Any], base_url: str
) -> LoggedResponse:
    headers = _headers(result, response)
    is_cached = response.get("cached") is True
    beside = SideFields()
    usage = beside.read("usage", mapping, response.get("tokenUsage"), "tokenUsage") or {}
    error = _error(result, response)
    milliseconds = number(result.get("latencyMs"))
    flags = dict.fromkeys(("cached",) if is_cached else ()) | dict.fromkeys(backends.flags(headers, {}))
    return LoggedResponse(
        case_id="",
        repeat=1,
        text="" if error else output_text(response.get("output")),
        error=error,
        finish_reason=text(response.get("finishReason")),
        dropped=tuple(beside.dropped),
        # A cached answer's usage is that of no call: promptfoo counts its tokens as cached.
        n_tokens=None if is_cached else count(usage.get("completion")),
        n_prompt_tokens=None if is_cached else count(usage.get("prompt")),
        seed=whole(config.get("seed")),
        seconds=None if is_cached or milliseconds is None else milliseconds / 1000,
        answered_at=None if is_cached else http_date(headers.get("date")),
        served_by=backends.served_by(headers=headers, body={}, base_url=base_url),
        scores={} if error else _scores(result),
        flags=tuple(flags),
    )


def _error(result: Mapping[str, Any], response: Mapping[str, Any]) -> str:
    """Return why there is no answer, "" if there is one: `error` also has an assertion's message."""
    words = text(response.get("error")) or text(result.get("error"))
    reason = whole(result.get("failureReason"))
    is_error = reason == ERROR or (reason is None and bool(text(response.get("error")))) or "output" not in response
    if not is_error:
        return ending_problem(text(response.get("finishReason")))
    return (words or "promptfoo holds no output of this call.")[:MAX_ERROR_CHARS]


def _scores(result: Mapping[str, Any]) -> dict[str, LoggedScore]:
    """Return whether the test passed, promptfoo's score, and named scores; empty without assertions."""
    grading = mapping(result.get("gradingResult"), "gradingResult")
    test = mapping(result.get("testCase"), "testCase")
    if not grading.get("componentResults") and not test.get("assert"):
        return {}
    reason = text(grading.get("reason"))
    has_passed = result.get("success") is True and whole(result.get("failureReason")) != ASSERTION_FAILED
    scores = {PASS: LoggedScore(float(has_passed), reason), SCORE: LoggedScore(number(result.get("score")), reason)}
    named = mapping(result.get("namedScores"), "namedScores")
    weights = mapping(grading.get("namedScoreWeights"), "namedScoreWeights")
    return scores | {name: _named_score(name, value, weights, grading) for name, value in named.items()} | scores


def _named_score(name: str, value: Any, weights: Mapping[str, Any], grading: Mapping[str, Any]) -> LoggedScore:
    """Return a metric of users: a sum of weighted assertions is divided by their weights."""
    score, weight = number(value), number(weights.get(name))
    parts = objects(grading.get("componentResults"), "componentResults")
    mine = [part for part in parts if mapping(part.get("assertion"), "assertion").get("metric") == name]
    if weight is None and mine:
        weight = sum(1.0 if (one := number(part["assertion"].get("weight"))) is None else one for part in mine)
    reasons = "; ".join(dict.fromkeys(text(part.get("reason")) for part in mine if text(part.get("reason"))))
    return LoggedScore(score / weight if score is not None and weight else score, shortened(reasons))


def _headers(result: Mapping[str, Any], response: Mapping[str, Any]) -> dict[str, str]:
    for holder in (response, result):
        metadata = mapping(holder.get("metadata"), "metadata")
        http = mapping(metadata.get("http"), "metadata.http")
        if http.get("headers"):
            return backends.read_headers(http["headers"])
    return {}


def _case_id(result: Mapping[str, Any]) -> str:
    test = mapping(result.get("testCase"), "testCase")
    own = calls.own_id(mapping(test.get("metadata"), "testCase.metadata"), _OWN_IDS)
    if own:
        return own
    raw = mapping(result.get("prompt"), "prompt").get("raw")
    return f"prompt-{digest_json([_variables(result), raw])[:16]}"


def _variables(result: Mapping[str, Any]) -> Any:
    return result.get("vars") or mapping(result.get("testCase"), "testCase").get("vars")


def _repeat(result: Mapping[str, Any], options: Mapping[str, Any]) -> int | None:
    """Return a result's repeat from 1; the repeats of a test have consecutive indexes."""
    index, repeats = whole(result.get("testIdx")), whole(options.get("repeat"))
    return None if index is None or repeats is None or repeats < 1 else index % repeats + 1


def _messages(result: Mapping[str, Any]) -> list[Any] | None:
    """Return the prompt as sent: a chat's is a JSON list of messages in a text."""
    raw = mapping(result.get("prompt"), "prompt").get("raw")
    if not isinstance(raw, str):
        return None
    if raw.lstrip().startswith("["):
        try:
            value = parse_value(raw, where="prompt.raw")
        except InvalidInput:
            value = None  # a prompt may begin with a bracket and be no JSON
        if isinstance(value, list) and value and all(isinstance(one, dict) and "role" in one for one in value):
            return value
    return [{"role": "user", "content": raw}]


def _provider_config(config: Mapping[str, Any], provider_id: str, provider_label: str) -> Mapping[str, Any]:
    """Return the provider's configuration; {} if there is none, as for a provider given as text."""
    providers = config.get("providers")
    for one in providers if isinstance(providers, list) else []:
        is_this = isinstance(one, Mapping) and one.get("id") == provider_id
        if is_this and text(one.get("label")) in (provider_label, ""):
            return mapping(one.get("config"), "config.providers.config")
    return {}


def _model(provider_id: str) -> str:
    """Return the model in a provider's id, as in `openai:chat:smol`; the id itself where it names none."""
    provider, _, rest = provider_id.partition(":")
    if provider in _NOT_MODELS or not rest:
        return provider_id
    kind, _, model = rest.partition(":")
    return model if model and kind in _KINDS else rest


def _own_ids(evaluation: _Eval, results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the eval's id with provider and prompt, and the smallest result id, which JSON lines have."""
    if evaluation.id:
        provider, prompt = _group(results[0])
        yield f"{evaluation.id} {provider} {prompt}"
    if ids := [result["id"] for result in results if text(result.get("id"))]:
        yield f"result {min(ids)}"


def _labels(evaluation: _Eval) -> dict[str, str]:
    tags = mapping(evaluation.config.get("tags"), "config.tags")
    labels = {name: label(value) for name, value in tags.items() if label(value)}
    own = {"promptfoo_eval": evaluation.id} if evaluation.id else {}
    return dict(list({**own, **labels}.items())[:MAX_LABELS])


def _notes(results: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
    responses = [mapping(result.get("response"), "response") for _, result in results]
    notes = ["promptfoo keeps neither the answering model nor its fingerprint: a backend is known by headers alone."]
    n_bare = sum(bool(response.get("logProbs")) for response in responses)
    if n_bare:
        notes.append(f"Logprobs without tokens were not taken over ({n_bare} responses): only the texts are compared.")
    n_cached = sum(response.get("cached") is True for response in responses)
    if n_cached:
        notes.append(f"{n_cached} responses came out of promptfoo's cache and are no new samples (--no-cache).")
    return notes

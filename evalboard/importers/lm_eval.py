"""Read logs of lm-evaluation-harness: `results_<time>.json`, `samples_<task>_<time>.jsonl`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from evalboard.core.errors import InvalidInput
from evalboard.importers import backends
from evalboard.importers.calls import read_sampling, slug
from evalboard.importers.field_values import drop_odd, label, mapping, moment, number, shortened, text, whole
from evalboard.importers.files import LogFile
from evalboard.importers.json_files import OddRows, naming, read_lines, read_object
from evalboard.importers.lm_eval_samples import Document, read_documents
from evalboard.importers.records import LoggedResponse, LoggedRun

# The request's seed where neither its settings nor the model's arguments name one; the seeds of the harness's own
# configuration are never sent.
DEFAULT_SEED = 1234
_SENDS_DEFAULT_SEED = frozenset(
    ("local-completions", "local-chat-completions", "openai-completions", "openai-chat-completions", "vllm")
)

SIDE_FIELDS: Mapping[str, type | tuple[type, ...]] = {
    **{"config": dict, "config.model_args": (str, dict), "n-samples": dict},
    **{"versions": dict, "task_hashes": dict, "n-shot": dict},
}
_TIME = r"\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}(?:\.\d+)?"
_SAMPLES_NAME = re.compile(rf"samples_(?P<task>.+?)(?:_(?P<time>{_TIME}))?\.jsonl")
_RESULTS_NAME = re.compile(rf"results(?:_(?P<time>{_TIME}))?\.json")

_TEXT_ONLY = "lm-evaluation-harness logs texts alone: no tokens, logprobs, fingerprints or response ids."
_NO_RESULTS = (
    "No results file of the same time came with these samples, so model, address, commit and versions are unknown."
)
_RANKING = (
    "This task ranks given continuations by their logprob. A response is the likeliest of them; of a single one, "
    "itself where greedy decoding would have given it, else empty."
)
_ONE_SCORE = (
    "lm-evaluation-harness scores a document once, over all its answers: the score stands with the first answer and "
    "those equal to it. It sends every answer's request with one seed."
)


@dataclass(frozen=True, slots=True)
class _Samples:
    """A samples file with the task and the time that its name tells, "" where it does not."""

    file: LogFile
    task: str
    time: str


@dataclass(frozen=True, slots=True)
class _Model:
    """The results' facts about the model. `source`: its kind, as `local-chat-completions`; unknown is ""."""

    source: str
    name: str
    revision: str
    base_url: str
    arguments: Mapping[str, Any]


def recognises(files: Sequence[LogFile]) -> bool:
    """Tell whether every file is a results or a samples file of lm-evaluation-harness."""
    return bool(files) and all(_is_samples(file) or _is_results(file) for file in files)


def read(files: Sequence[LogFile]) -> list[LoggedRun]:
    """Return a run per samples file, with the results file of the same time.

    Raises InvalidInput naming the file.
    """
    samples = [_named(file) for file in files if _is_samples(file)]
    results = [file for file in files if file not in [one.file for one in samples]]
    if not samples:
        problem = "holds no responses; run lm_eval with --log_samples and import its samples_*.jsonl with it"
        raise InvalidInput(f"{files[0].name}: {problem}", fields={file.name: problem for file in files})
    by_time = _by_time(results)
    odd = [note for document in by_time.values() for note in drop_odd(document, SIDE_FIELDS)]
    times = [_time_of(one, by_time) for one in samples]
    runs = []
    for one, time in zip(samples, times, strict=True):
        with naming(one.file):
            runs.append(_read_run(one, {} if time is None else by_time[time]))
    alone = [
        f"The results of {time or 'no time'} have no samples and were left out." for time in by_time.keys() - {*times}
    ]
    return [replace(run, notes=(*run.notes, *odd, *sorted(alone))) for run in runs]


def _is_samples(file: LogFile) -> bool:
    first = file.first_object
    # A long document may leave nothing but its number in the head.
    return "doc_id" in first and ("arguments" in first or first.keys() <= {"doc_id", "doc", "target"})


def _is_results(file: LogFile) -> bool:
    first = file.first_object
    by_task = first.get("results")
    if not isinstance(by_task, dict):
        return False
    # Of many tasks the head holds nothing but their results, each of which has the task's alias.
    has_alias = [isinstance(result, dict) and "alias" in result for result in by_task.values()]
    return not {"group_subtasks", "configs", "n-shot"}.isdisjoint(first) or any(has_alias)


def _base(file: LogFile) -> str:
    return file.plain_name.replace("\\", "/").rpartition("/")[2]


def _named(file: LogFile) -> _Samples:
    named = _SAMPLES_NAME.fullmatch(_base(file))
    return _Samples(file, named["task"], named["time"] or "") if named else _Samples(file, "", "")


def _by_time(files: Sequence[LogFile]) -> dict[str, dict[str, Any]]:
    """Return the results files' content by the time in their names, "" for a name without one."""
    newest: dict[str, dict[str, Any]] = {}
    for file in files:
        named = _RESULTS_NAME.fullmatch(_base(file))
        time = (named["time"] or "") if named else ""
        with naming(file):
            if time in newest:
                raise InvalidInput("is of the same time as another results file; import one evaluation at a time")
            newest[time] = read_object(file)
            if not isinstance(newest[time].get("results"), dict):
                raise InvalidInput("is neither a results nor a samples file of lm-evaluation-harness")
    return newest


def _time_of(samples: _Samples, by_time: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return the time of a samples file's results: its own, or the only one if its name has none."""
    if samples.time in by_time:
        return samples.time
    only = next(iter(by_time)) if len(by_time) == 1 else None
    return None if only and samples.time else only


def _read_run(samples: _Samples, results: Mapping[str, Any]) -> LoggedRun:
    odd = OddRows(samples.file)
    documents = read_documents(read_lines(samples.file, odd), odd)
    odd_notes = odd.settle()
    if not documents:
        raise InvalidInput("holds no samples")
    scored = mapping(results.get("results"), "results")
    task = samples.task or (next(iter(scored)) if len(scored) == 1 else _base(samples.file).removesuffix(".jsonl"))
    model, case_ids = _model(results), _case_ids(documents)
    settings = [_sampling(document, model) for document in documents]
    responses = _responses(documents, case_ids, settings, model)
    started_at = moment(results.get("date"))
    n_missing = _n_planned(results, task) - len(documents)
    is_whole = n_missing <= 0 and not any(response.error for response in responses)
    return LoggedRun(
        slug=slug(task) or "lm-eval",
        title=shortened(task, 200),
        tool=f"lm-evaluation-harness {label(results.get('lm_eval_version'))}".strip(),
        model=model.name,
        detail="text",
        status="finished" if is_whole else "incomplete",
        cases=tuple(document.case(case_id) for document, case_id in zip(documents, case_ids, strict=True)),
        responses=responses,
        revision=model.revision,
        base_url=model.base_url,
        sampling={name: value for name, value in settings[0].items() if all(s.get(name) == value for s in settings)},
        scorers=tuple(dict.fromkeys(name for document in documents for name in document.scores)),
        own_ids=() if started_at is None else (f"{task} {results['date']}",),
        labels=_labels(results, task, model),
        started_at=started_at,
        finished_at=_end(started_at, results.get("total_evaluation_time_seconds")) or _named_time(samples.time),
        n_cases=_n_planned(results, task) or None,
        notes=(*odd_notes, *_notes(documents, results, n_missing=n_missing)),
    )


def _model(results: Mapping[str, Any]) -> _Model:
    config = mapping(results.get("config"), "config")
    given = config.get("model_args")
    if isinstance(given, str):  # "model=smol,base_url=…"
        given = {name.strip(): value for name, _, value in (part.partition("=") for part in given.split(","))}
    arguments = mapping(given, "config.model_args")
    return _Model(
        source=text(results.get("model_source")) or text(config.get("model")),
        name=text(results.get("model_name")) or label(arguments.get("model")) or label(arguments.get("pretrained")),
        # The commit before the name of a branch, which moves.
        revision=label(config.get("model_sha")) or label(arguments.get("revision")),
        base_url=backends.address(arguments.get("base_url")),
        arguments=arguments,
    )


def _case_ids(documents: Sequence[Document]) -> list[str]:
    """Return the dataset's own ids if every document has a unique one, else indexes in the dataset."""
    own = [document.own_id for document in documents]
    return own if all(own) and len(set(own)) == len(own) else [document.index for document in documents]


def _sampling(document: Document, model: _Model) -> dict[str, Any]:
    """Return the sampling sent with a document's requests, by the OpenAI API's names."""
    if document.is_ranking:
        return {}
    given = document.settings
    is_zero_unsaid = model.source in _SENDS_DEFAULT_SEED or given.get("do_sample") is False
    sent = {
        "temperature": number(given.get("temperature", 0 if is_zero_unsaid else None)),
        "top_p": number(given.get("top_p")),
        "seed": _seed(given, model),
        "max_tokens": whole(given.get("max_gen_toks")) or whole(given.get("max_tokens")),
        "stop": given.get("until") or None,
    }
    return read_sampling(sent)


def _seed(given: Mapping[str, Any], model: _Model) -> int | None:
    for value in (given.get("seed"), model.arguments.get("seed")):
        if whole(value) is not None:
            return whole(value)
        if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value):
            return int(value)
    return DEFAULT_SEED if model.source in _SENDS_DEFAULT_SEED else None


def _responses(
    documents: Sequence[Document], case_ids: Sequence[str], settings: Sequence[Mapping[str, Any]], model: _Model
) -> tuple[LoggedResponse, ...]:
    served_by = backends.served_by(headers={}, body={"model": model.name}, base_url=model.base_url)
    # A repeat with answers that were not scored has no score of its own.
    unscored = {
        repeat
        for document in documents
        for repeat, answer in enumerate(document.answers, start=1)
        if answer is not None and answer != document.answers[0]
    }
    return tuple(
        LoggedResponse(
            case_id=case_id,
            repeat=repeat,
            text=answer or "",
            error="The log holds no answer." if answer is None else "",
            seed=sampling.get("seed"),
            served_by=served_by,
            scores={} if answer is None or repeat in unscored else document.scores,
        )
        for document, case_id, sampling in zip(documents, case_ids, settings, strict=True)
        for repeat, answer in enumerate(document.answers, start=1)
    )


def _n_planned(results: Mapping[str, Any], task: str) -> int:
    planned = mapping(mapping(results.get("n-samples"), "n-samples").get(task), f"n-samples.{task}")
    return whole(planned.get("effective")) or 0


def _end(started_at: datetime | None, seconds: Any) -> datetime | None:
    """Return when an evaluation ended that took so many seconds, which the harness writes as a text."""
    if started_at is None or not isinstance(seconds, str | int | float):
        return None
    try:
        return started_at + timedelta(seconds=float(seconds))
    except (ValueError, OverflowError):
        return None


def _named_time(time: str) -> datetime | None:
    """Return the time in a file's name, when it was written, assuming UTC."""
    day, _, clock = time.partition("T")
    return moment(f"{day}T{clock.replace('-', ':')}") if clock else None


def _labels(results: Mapping[str, Any], task: str, model: _Model) -> dict[str, str]:
    """Return the run's labels, without facts that are not in the log."""
    facts = {
        "commit": label(results.get("git_hash")),
        "task_version": label(mapping(results.get("versions"), "versions").get(task)),
        "task_hash": label(mapping(results.get("task_hashes"), "task_hashes").get(task)),
        "n_shot": label(mapping(results.get("n-shot"), "n-shot").get(task)),
        "model_source": model.source,
    }
    return {name: shortened(value, 200) for name, value in facts.items() if value}


def _notes(documents: Sequence[Document], results: Mapping[str, Any], *, n_missing: int) -> Iterator[str]:
    yield _TEXT_ONLY
    if not results:
        yield _NO_RESULTS
    if n_missing > 0:
        yield f"The samples of {n_missing:,} documents are missing."
    if any(document.is_ranking for document in documents):
        yield _RANKING
    if any(len(document.answers) > 1 for document in documents):
        yield _ONE_SCORE

"""Read logs of Inspect AI: `.eval`, a zip with a member per sample, and `.json`, one object."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from evalboard.core.errors import InvalidInput
from evalboard.importers import backends, inspect_shape
from evalboard.importers.calls import detail, score_names, slug
from evalboard.importers.field_values import drop_odd, label, mapping, moment, rows, shortened, text, whole
from evalboard.importers.files import LogFile
from evalboard.importers.inspect_samples import ReadSample, in_order, read_sample, read_sampling
from evalboard.importers.json_files import MAX_DOCUMENT_BYTES, OddRows, naming, parse, read_object
from evalboard.importers.records import LoggedCase, LoggedResponse, LoggedRun, Status
from evalboard.importers.zip_members import Members, is_zip

SIDE_FIELDS = {
    **{"eval.packages": dict, "eval.dataset": dict, "eval.dataset.sample_ids": list, "eval.config": dict},
    **{"eval.config.epochs_reducer": list, "eval.model_args": dict, "eval.model_generate_config": dict},
    **{"eval.revision": dict, "eval.tags": list, "stats": dict, "results": dict, "results.scores": list},
    **{"results.headline": dict, "error": dict},
}


def recognises(files: Sequence[LogFile]) -> bool:
    """Tell whether every file is a log of Inspect's, by its head."""
    return bool(files) and all(_is_log(file) for file in files)


def read(files: Sequence[LogFile]) -> list[LoggedRun]:
    """Return one run for each file. Raises InvalidInput naming the file."""
    runs = []
    for file in files:
        with naming(file):
            runs.append(_read_zip(file) if is_zip(file) else _read_json(file))
    return runs


def _is_log(file: LogFile) -> bool:
    if is_zip(file):
        # The first member is of a log's start, the last one its header. No other format is a zip.
        return b"_journal/" in file.head() or b"header.json" in file.tail() or file.plain_name.endswith(".eval")
    about = file.first_object.get("eval")
    return isinstance(about, dict) and "task" in about


def _read_zip(file: LogFile) -> LoggedRun:
    members = Members(file)
    names = members.names()
    # A log whose process was killed has no header, only what was known at its start.
    top = next((name for name in ("header.json", "_journal/start.json") if name in names), None)
    if top is None:
        raise InvalidInput("holds neither header.json nor _journal/start.json, so it is no log of Inspect's")
    header = parse(members.read(top), where=top)
    wanted = [name for name in names if name.startswith("samples/") and name.endswith(".json")]
    return _read_log(header, [(name, partial(_member, members, name)) for name in wanted], OddRows(file))


def _member(members: Members, name: str) -> dict[str, Any]:
    return parse(members.read(name), where="", shape=inspect_shape.SAMPLE)


def _read_json(file: LogFile) -> LoggedRun:
    if file.content_size > MAX_DOCUMENT_BYTES:
        most = f"{MAX_DOCUMENT_BYTES >> 20} MiB"
        raise InvalidInput(
            f"is one JSON text of more than {most}; make a .eval of it with: inspect log convert --to eval"
        )
    log = read_object(file, inspect_shape.LOG)
    samples = rows(log.pop("samples", None), "samples")
    places = [(f"samples[{index}]", partial(mapping, sample, "it")) for index, sample in enumerate(samples)]
    return _read_log(log, places, OddRows(file))


def _read_log(
    header: dict[str, Any], samples: Sequence[tuple[str, Callable[[], Mapping[str, Any]]]], odd: OddRows
) -> LoggedRun:
    """Return a log's run. header: all but the samples; samples: (place, function that loads it)."""
    header_notes = drop_odd(header, SIDE_FIELDS)
    about = mapping(header.get("eval"), "eval")
    if not text(about.get("task")):
        raise InvalidInput("eval.task is missing, so it is no log of Inspect's")
    if header.get("shards") or about.get("shards"):
        raise InvalidInput("holds no samples of its own and points at other logs; import those")
    base_url, sampling = _base_url(about), read_sampling(about.get("model_generate_config"))
    seen: set[tuple[str, int]] = set()
    read_one = partial(_read_sample, seen=seen, base_url=base_url, sampling=sampling)
    read_all = [odd.read(place, read_one, opened) for place, opened in samples]
    samples_read = [sample for sample in read_all if sample is not None]
    odd_notes = odd.settle(n_rows=len(samples))
    if not samples_read:
        raise InvalidInput("holds no samples: it was written with --no-log-samples, or ended before the first one")
    responses = tuple(sample.response for sample in samples_read)
    cases, case_notes = _cases(samples_read, about)
    agreed, sampling_notes = _agreed_sampling(samples_read)
    stats, results = mapping(header.get("stats"), "stats"), mapping(header.get("results"), "results")
    n_repeats = _n_epochs(about, responses)
    status = _status(header, cases, responses, n_repeats=n_repeats)
    return LoggedRun(
        slug=slug(about["task"]) or "inspect",
        title=shortened(text(about.get("task_display_name")) or about["task"], 200),
        tool=f"Inspect AI {text(mapping(about.get('packages'), 'eval.packages').get('inspect_ai'))}".strip(),
        model=text(about.get("model")),
        detail=detail(responses),
        status=status,
        cases=cases,
        responses=responses,
        base_url=base_url,
        sampling=agreed,
        scorers=in_order(score_names(responses), results),
        own_ids=tuple(_own_ids(about)),
        labels=_labels(about),
        failure=_failure(header, status),
        n_repeats=n_repeats,
        n_cases=_n_planned(about),
        started_at=moment(stats.get("started_at")) or moment(about.get("created")),
        finished_at=moment(stats.get("completed_at")),
        notes=(
            *odd_notes,
            *header_notes,
            *_status_notes(header, results, n=len(samples_read)),
            *case_notes,
            *sampling_notes,
            *_sample_notes(samples_read, about),
        ),
    )


def _read_sample(
    opened: Callable[[], Mapping[str, Any]],
    *,
    seen: set[tuple[str, int]],
    base_url: str,
    sampling: Mapping[str, Any],
) -> ReadSample:
    sample_read = read_sample(opened(), base_url=base_url, sampling=sampling)
    key = (sample_read.case.id, sample_read.response.repeat)
    if key in seen:
        raise InvalidInput(f"sample {key[0]!r} of epoch {key[1]} stands in the log twice")
    seen.add(key)
    return sample_read


def _base_url(about: Mapping[str, Any]) -> str:
    """Return the server's address. One that was given to Inspect by its environment is not in the log."""
    arguments = mapping(about.get("model_args"), "eval.model_args")
    return backends.address(about.get("model_base_url") or arguments.get("base_url"))


def _cases(samples: Sequence[ReadSample], about: Mapping[str, Any]) -> tuple[tuple[LoggedCase, ...], list[str]]:
    """Return the cases in the dataset's order, since samples end in any order, and notes."""
    cases: dict[str, LoggedCase] = {}
    differing = set()
    # A sample that failed may have done so before its prompt was whole.
    for sample in sorted(samples, key=lambda sample: (bool(sample.response.error), sample.response.repeat)):
        case = cases.setdefault(sample.case.id, sample.case)
        if case != sample.case and not sample.response.error:
            differing.add(case.id)
    listed = rows(mapping(about.get("dataset"), "eval.dataset").get("sample_ids"), "eval.dataset.sample_ids")
    order = {label(sample_id): place for place, sample_id in enumerate(listed)}
    ordered = sorted(cases.values(), key=lambda case: (order.get(case.id, len(order)), len(case.id), case.id))
    notes = [f"Of {len(differing):,} cases the prompt differs between epochs; the first is kept."] if differing else []
    return tuple(ordered), notes


def _agreed_sampling(samples: Sequence[ReadSample]) -> tuple[dict[str, Any], list[str]]:
    """Return the settings that all samples share, and notes on the others."""
    given = [sample.sampling for sample in samples if not sample.response.error] or [samples[0].sampling]
    names = list(dict.fromkeys(name for sampling in given for name in sampling))
    differing = [name for name in names if any(sampling.get(name) != given[0].get(name) for sampling in given)]
    agreed = {name: given[0][name] for name in names if name not in differing}
    return agreed, [f"{name} differs between samples, and is not among the run's settings." for name in differing]


def _status(
    header: Mapping[str, Any], cases: Sequence[LoggedCase], responses: Sequence[LoggedResponse], *, n_repeats: int
) -> Status:
    if header.get("status") == "error":
        return "failed"
    if header.get("status") == "cancelled":
        return "cancelled"
    n_there = sum(not response.error for response in responses)
    return "finished" if header.get("status") == "success" and n_there >= len(cases) * n_repeats else "incomplete"


def _n_epochs(about: Mapping[str, Any], responses: Iterable[LoggedResponse]) -> int:
    planned = whole(mapping(about.get("config"), "eval.config").get("epochs"))
    return max(planned or 1, *(response.repeat for response in responses))


def _n_planned(about: Mapping[str, Any]) -> int | None:
    dataset = mapping(about.get("dataset"), "eval.dataset")
    listed = rows(dataset.get("sample_ids"), "eval.dataset.sample_ids")
    return len(listed) or whole(dataset.get("samples"))


def _failure(header: Mapping[str, Any], status: Status) -> str:
    if status != "failed":
        return ""
    return shortened(text(mapping(header.get("error"), "error").get("message")) or "The eval failed.")


def _labels(about: Mapping[str, Any]) -> dict[str, str]:
    """Return the run's labels, without facts that are not in the log."""
    revision = mapping(about.get("revision"), "eval.revision")
    commit = label(revision.get("commit"))
    facts = {
        "commit": f"{commit} (with local changes)" if commit and revision.get("dirty") is True else commit,
        "repository": backends.address(revision.get("origin")),
        "task_version": label(about.get("task_version")),
        "eval_id": label(about.get("eval_id")),
        "run_id": label(about.get("run_id")),
        "task_id": label(about.get("task_id")),
        "tags": ", ".join(label(tag) for tag in rows(about.get("tags"), "eval.tags")),
    }
    return {name: shortened(value, 200) for name, value in facts.items() if value}


def _own_ids(about: Mapping[str, Any]) -> Iterator[str]:
    """Yield the eval's and the task's ids: a retry after an interruption is another eval of the same task."""
    run_id, task_id = label(about.get("run_id")), label(about.get("task_id"))
    if eval_id := label(about.get("eval_id")):
        yield f"eval {eval_id}"
    elif run_id and task_id:
        yield f"run {run_id}, task {task_id}"
    if task_id:
        yield f"task {task_id}"


def _status_notes(header: Mapping[str, Any], results: Mapping[str, Any], *, n: int) -> Iterator[str]:
    planned = whole(results.get("total_samples"))
    of = f" of {planned:,}" if planned is not None and planned > n else ""
    if header.get("status") in (None, "started"):
        yield f"Inspect did not end this log: it holds {n:,}{of} samples, and no results."
    elif header.get("status") != "success" or of:
        yield f"The log holds {n:,}{of} samples, and its status is {text(header['status'])!r}."
    if header.get("invalidated") is True:
        yield "Samples of this log were declared invalid; their responses count as missing."


def _sample_notes(samples: Sequence[ReadSample], about: Mapping[str, Any]) -> Iterator[str]:
    for remark, n in Counter(remark for sample in samples for remark in sample.remarks).items():
        yield f"{n:,} of {len(samples):,} samples: {remark}."
    reducers = rows(mapping(about.get("config"), "eval.config").get("epochs_reducer"), "eval.config.epochs_reducer")
    if reducers not in ([], ["mean"]):
        yield f"Inspect summed epochs up by {', '.join(label(one) for one in reducers)}; here repeats are averaged."

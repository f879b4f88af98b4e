"""Replays as they are shown, and what a worker needs to know of one that it has claimed."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Func, IntegerField, Max, QuerySet
from django.urls import reverse

from evalboard.contract import replay as contract
from evalboard.core.errors import NotFound
from evalboard.core.trace import Trace, Vocabulary, read_trace
from evalboard.wording.replay import explain_replay, explain_result
from runs.models import Case, EngineProcess, Repeat, Replay, Response, Run, Shard
from runs.store import newest_page
from runs.work import CaseToDecode, ShardWork, case_to_decode, shard_work


@dataclass(frozen=True, slots=True)
class RunResponse:
    """The run's response to the case, and who gave it; no trace where it is missing."""

    trace: Trace
    prompt_digest: bytes | None
    bucket_id: int | None
    fingerprint_id: int | None
    model_id: int | None


@dataclass(frozen=True, slots=True)
class ReplayWork:
    """One replay's case, and what it is decoded with. `shard` is the one that held the case in the run.

    `results` are those that an earlier attempt has stored, as core.compare.replay wrote them.
    """

    shard: ShardWork
    repeat_id: int
    case_id: str
    case_index: int
    n_cases: int
    variants: tuple[dict[str, Any], ...]
    results: tuple[dict[str, Any], ...]
    response: RunResponse | None

    @property
    def response_trace(self) -> Trace | None:
        return None if self.response is None else self.response.trace


def replay_row(replay_id: int) -> contract.Replay:
    """Return a replay, as far as it is. Raises NotFound."""
    rows = _rows(Replay.objects.filter(pk=replay_id))
    if not rows:
        raise NotFound(f"There is no replay {replay_id}.")
    return rows[0]


def replay_state(replay_id: int) -> str:
    """Return what `replay_row` is made of, in short: equal texts, equal rows. Raises NotFound."""
    n_results = Func("results", function="jsonb_array_length", output_field=IntegerField())
    rows = Replay.objects.filter(pk=replay_id).annotate(n=n_results)
    row = rows.values_list("status", "n", "error", "finished_at").first()
    if row is None:
        raise NotFound(f"There is no replay {replay_id}.")
    return "|".join(map(str, (replay_id, *row)))


def list_case_replays(run_id: int, case_index: int, *, limit: int = 20) -> tuple[contract.Replay, ...]:
    """List the newest replays of one case of a run."""
    return _rows(Replay.objects.filter(run=run_id, case_index=case_index).order_by("-id")[:limit])


def newest_replay(run_id: int, case_id: str) -> contract.Replay | None:
    """Read the newest replay of a case of a run, None where it was never decoded again."""
    index = Case.objects.filter(suite_version__runs=run_id, case_id=case_id).values("index")[:1]
    rows = _rows(Replay.objects.filter(run=run_id, case_index=index).order_by("-id")[:1])
    return next(iter(rows), None)


def replay_rows(
    run_id: int, *, after: int | None = None, before: int | None = None, limit: int
) -> tuple[contract.Replay, ...]:
    """Return up to `limit` replays of a run, newest first: older than `after`, or the nearest newer than `before`."""
    if not Run.objects.filter(pk=run_id).exists():
        raise NotFound(f"There is no run {run_id}.")
    return newest_page(Replay.objects.filter(run=run_id), _rows, after=after, before=before, limit=limit)


def replay_work(replay_id: int) -> ReplayWork:
    replay = Replay.objects.select_related("run__suite_version").get(pk=replay_id)
    index, version = replay.case_index, replay.run.suite_version
    shard = Shard.objects.get(repeat=replay.repeat_id, first__lte=index, last__gte=index)
    return ReplayWork(
        shard=shard_work(shard.pk),
        repeat_id=replay.repeat_id,
        case_id=Case.objects.values_list("case_id", flat=True).get(suite_version=version, index=index),
        case_index=index,
        n_cases=version.n_cases,
        variants=tuple(replay.variants),
        results=tuple(replay.results),
        response=_run_response(replay.repeat_id, index),
    )


def cases_to_decode(repeat_id: int, indexes: list[int]) -> list[CaseToDecode]:
    """Return the cases at these indexes as a repeat decodes them, in that order; an index given twice comes twice."""
    repeat = Repeat.objects.select_related("run__profile").get(pk=repeat_id)
    cases = Case.objects.filter(suite_version=repeat.run.suite_version_id, index__in=set(indexes))
    by_index = {case.index: case_to_decode(case, repeat) for case in cases}
    return [by_index[index] for index in indexes]


def count_prompt_tokens(run_id: int, indexes: list[int]) -> int | None:
    """Count the tokens that the prompts of these cases have together, by the run; None where it did not count them."""
    counted = Response.objects.filter(repeat__run=run_id, case_index__in=set(indexes), n_prompt_tokens__isnull=False)
    by_case = dict(counted.values("case_index").annotate(n=Max("n_prompt_tokens")).values_list("case_index", "n"))
    return sum(by_case[index] for index in indexes) if set(indexes) <= by_case.keys() else None


def load_vocabulary(process: EngineProcess) -> Vocabulary | None:
    """Load the tokens that an engine process chooses among, None where nobody stored them."""
    return None if process.vocabulary is None else Vocabulary.unpack(bytes(process.vocabulary.data))


def variant_name(variant: dict[str, Any]) -> str:
    """Name a variant in a few words: "float16, batch size 4, neighbours from +3"."""
    parts = [variant["dtype"]] if "dtype" in variant else []
    if "batch_size" in variant:
        parts.append(f"batch size {variant['batch_size']}")
    if "neighbours" in variant:
        parts.append(f"neighbours from +{variant['neighbours']}")
    return ", ".join(parts) or "as in the run"


def _rows(replays: QuerySet[Replay]) -> tuple[contract.Replay, ...]:
    rows = list(replays.select_related("repeat", "run", "created_by"))
    names = {
        (version, index): case_id
        for version, index, case_id in Case.objects.filter(
            suite_version__in={each.run.suite_version_id for each in rows},
            index__in={each.case_index for each in rows},
        ).values_list("suite_version", "index", "case_id")
    }
    return tuple(_row(each, names[each.run.suite_version_id, each.case_index]) for each in rows)


def _row(replay: Replay, case_id: str) -> contract.Replay:
    has_ended = replay.status == Replay.Status.FINISHED
    return contract.Replay(
        id=str(replay.pk),
        run=str(replay.run_id),
        repeat=replay.repeat.index,
        case=case_id,
        status=replay.status,
        variants=tuple(replay.variants),
        results=tuple(map(_shown, replay.results)),
        reading=explain_replay(replay.results) if has_ended else (),
        error=replay.error or None,
        created_by=replay.created_by.get_username() if replay.created_by else None,
        created_at=replay.created_at,
        finished_at=replay.finished_at,
        url=reverse("response", args=[replay.run_id, replay.repeat.index, case_id]),
    )


def _shown(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result without its trace, which is for later variants only, and with what it is called and gave."""
    facts = {name: value for name, value in result.items() if name != "trace"}
    return {"name": variant_name(result["variant"]), "phrase": explain_result(result), **facts}


def _run_response(repeat_id: int, case_index: int) -> RunResponse | None:
    response = (
        Response.objects.filter(repeat=repeat_id, case_index=case_index)
        .select_related("engine_process__bucket", "trace_block")
        .first()
    )
    if response is None or response.trace_block is None or response.trace_slot is None:
        return None
    bucket = response.engine_process.bucket if response.engine_process else None
    return RunResponse(
        trace=read_trace(bytes(response.trace_block.data), response.trace_slot),
        prompt_digest=None if response.prompt_digest is None else bytes(response.prompt_digest),
        bucket_id=bucket.pk if bucket else None,
        fingerprint_id=bucket.fingerprint_id if bucket else None,
        model_id=bucket.model_id if bucket else None,
    )

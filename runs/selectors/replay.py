"""Replays as they are shown, and what a worker needs to know of one that it has claimed."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Func, IntegerField, Max

from evalboard.core import codec
from evalboard.core import replay as replays
from evalboard.core.errors import NotFound
from evalboard.core.trace import Trace
from evalboard.core.vocabulary import Vocabulary
from runs.models import Case, EngineProcess, Repeat, Replay, Response, Run, Shard
from runs.selectors.work import CaseToDecode, ShardWork, case_to_decode, shard_work

KEPT = frozenset({"trace"})  # of a result, for later variants only


@dataclass(frozen=True, slots=True)
class ResultLine:
    """What one variant gave: `phrase` in a few words, `facts` as docs/api.md lists them."""

    variant: str
    phrase: str
    outcome: str
    facts: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ReplayRow:
    """A replay with what it found so far. `reading` is empty until it has ended."""

    id: int
    run_id: int
    repeat: int
    case_id: str
    status: str
    variants: tuple[dict[str, Any], ...]
    results: tuple[ResultLine, ...]
    reading: tuple[str, ...]
    error: str
    created_by: str
    created_at: datetime
    finished_at: datetime | None

    @property
    def is_terminal(self) -> bool:
        return self.status in (Replay.Status.FINISHED, Replay.Status.FAILED)


@dataclass(frozen=True, slots=True)
class HeldAgainst:
    """The run's response to the case, and who gave it; no trace where it is missing."""

    trace: Trace
    prompt_digest: bytes | None
    bucket_id: int | None
    fingerprint_id: int | None
    model_id: int | None


@dataclass(frozen=True, slots=True)
class ReplayWork:
    """One replay's case, and what it is decoded with. `shard` is the one that held the case in the run.

    `results` are those that an earlier attempt has stored, as core.replay_result wrote them.
    """

    shard: ShardWork
    repeat_id: int
    case_id: str
    case_index: int
    n_cases: int
    variants: tuple[dict[str, Any], ...]
    results: tuple[dict[str, Any], ...]
    response: HeldAgainst | None

    @property
    def response_trace(self) -> Trace | None:
        return None if self.response is None else self.response.trace


def replay_row(replay_id: int) -> ReplayRow:
    """Raises NotFound."""
    rows = _rows(Replay.objects.filter(pk=replay_id))
    if not rows:
        raise NotFound(f"There is no replay {replay_id}.")
    return rows[0]


def replay_state(replay_id: int) -> str:
    """What `replay_row` is made of, in short: equal texts, equal rows. Raises NotFound."""
    n_results = Func("results", function="jsonb_array_length", output_field=IntegerField())
    found = Replay.objects.filter(pk=replay_id).annotate(n=n_results)
    row = found.values_list("status", "n", "error", "finished_at").first()
    if row is None:
        raise NotFound(f"There is no replay {replay_id}.")
    return "|".join(map(str, (replay_id, *row)))


def replays_of(run_id: int, case_index: int, *, limit: int = 20) -> tuple[ReplayRow, ...]:
    """The newest replays of one case of a run."""
    return _rows(Replay.objects.filter(run=run_id, case_index=case_index).order_by("-id")[:limit])


def replay_rows(
    run_id: int, *, after: int | None = None, before: int | None = None, limit: int
) -> tuple[ReplayRow, ...]:
    """Up to `limit` replays of a run, newest first: those older than `after`, or the nearest newer than `before`."""
    if not Run.objects.filter(pk=run_id).exists():
        raise NotFound(f"There is no run {run_id}.")
    mine = Replay.objects.filter(run=run_id)
    if before is not None:
        return tuple(reversed(_rows(mine.filter(pk__gt=before).order_by("id")[:limit])))
    return _rows((mine if after is None else mine.filter(pk__lt=after)).order_by("-id")[:limit])


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
        response=_held_against(replay.repeat_id, index),
    )


def cases_to_decode(repeat_id: int, indexes: list[int]) -> list[CaseToDecode]:
    """Cases as a repeat decodes them, by their indexes in that order; one that is asked for twice comes twice."""
    repeat = Repeat.objects.select_related("run__profile").get(pk=repeat_id)
    cases = Case.objects.filter(suite_version=repeat.run.suite_version_id, index__in=set(indexes))
    found = {case.index: case_to_decode(case, repeat) for case in cases}
    return [found[index] for index in indexes]


def n_prompt_tokens(run_id: int, indexes: list[int]) -> int | None:
    """How many tokens the prompts of these cases have together, as the run counted them; None where it did not."""
    counted = Response.objects.filter(repeat__run=run_id, case_index__in=set(indexes), n_prompt_tokens__isnull=False)
    by_case = dict(counted.values("case_index").annotate(n=Max("n_prompt_tokens")).values_list("case_index", "n"))
    return sum(by_case[index] for index in indexes) if set(indexes) <= by_case.keys() else None


def vocabulary_of(process: EngineProcess) -> Vocabulary | None:
    """The words that an engine process chooses among, None where nobody stored them."""
    return None if process.vocabulary is None else Vocabulary.unpack(bytes(process.vocabulary.data))


def variant_name(variant: dict[str, Any]) -> str:
    """A variant in a few words: "float16, batch size 4, neighbours from +3"."""
    parts = [variant["dtype"]] if "dtype" in variant else []
    if "batch_size" in variant:
        parts.append(f"batch size {variant['batch_size']}")
    if "neighbours" in variant:
        parts.append(f"neighbours from +{variant['neighbours']}")
    return ", ".join(parts) or "as in the run"


def _rows(found: Any) -> tuple[ReplayRow, ...]:
    found = list(found.select_related("repeat", "run", "created_by"))
    names = {
        (version, index): case_id
        for version, index, case_id in Case.objects.filter(
            suite_version__in={each.run.suite_version_id for each in found},
            index__in={each.case_index for each in found},
        ).values_list("suite_version", "index", "case_id")
    }
    return tuple(_row(each, names[each.run.suite_version_id, each.case_index]) for each in found)


def _row(replay: Replay, case_id: str) -> ReplayRow:
    has_ended = replay.status == Replay.Status.FINISHED
    return ReplayRow(
        id=replay.pk,
        run_id=replay.run_id,
        repeat=replay.repeat.index,
        case_id=case_id,
        status=replay.status,
        variants=tuple(replay.variants),
        results=tuple(map(_line, replay.results)),
        reading=replays.reading(replay.results) if has_ended else (),
        error=replay.error,
        created_by=replay.created_by.get_username() if replay.created_by else "",
        created_at=replay.created_at,
        finished_at=replay.finished_at,
    )


def _line(result: dict[str, Any]) -> ResultLine:
    return ResultLine(
        variant=variant_name(result["variant"]),
        phrase=replays.phrase(result),
        outcome=result["outcome"],
        facts={name: value for name, value in result.items() if name not in KEPT},
    )


def _held_against(repeat_id: int, case_index: int) -> HeldAgainst | None:
    response = (
        Response.objects.filter(repeat=repeat_id, case_index=case_index)
        .select_related("engine_process__bucket", "trace_block")
        .first()
    )
    if response is None or response.trace_block is None or response.trace_slot is None:
        return None
    bucket = response.engine_process.bucket if response.engine_process else None
    return HeldAgainst(
        trace=codec.read_trace(bytes(response.trace_block.data), response.trace_slot),
        prompt_digest=None if response.prompt_digest is None else bytes(response.prompt_digest),
        bucket_id=bucket.pk if bucket else None,
        fingerprint_id=bucket.fingerprint_id if bucket else None,
        model_id=bucket.model_id if bucket else None,
    )

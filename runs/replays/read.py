"""Replays as they are shown, and what a worker needs to know of one that it has claimed."""

from dataclasses import dataclass, replace
from typing import Any

from django.db.models import F, Func, IntegerField, Max, Q, QuerySet
from django.urls import reverse

from evalboard.contract import replay as contract
from evalboard.core.errors import NotFound
from evalboard.core.suite import ChatBody, read_chat_body
from evalboard.core.trace import TokenTrace, Vocabulary
from evalboard.path_converters import reverse_case
from evalboard.wording.production import explain_production
from evalboard.wording.replay import explain_replay, explain_result
from runs.models import Case, EngineProcess, ReplayRecord, ResponseRecord, RunRecord, Shard
from runs.replays.read_production import chat_of, describe_production, describe_request
from runs.replays.recorded import RunResponse, read_run_response
from runs.store import RecordList, newest_page, require_row
from runs.work import CaseToDecode, Serving, ShardWork, case_to_decode, serving_of, shard_work

REPLAY_ORDERS = {"id": "id", "status": "status"}


@dataclass(frozen=True, slots=True)
class CaseWork:
    """The case that a replay decodes. shard: its shard in the run; response: the run's."""

    shard: ShardWork
    case_id: str
    index: int
    n_cases: int
    response: RunResponse | None


@dataclass(frozen=True, slots=True)
class ReplayWork:
    """What one replay decodes, a case or a production request, with its settings.

    `results` are those stored by an earlier attempt, as core.compare.replay wrote them.
    """

    replay_id: int
    serving: Serving
    variants: tuple[dict[str, Any], ...]
    results: tuple[dict[str, Any], ...]
    is_production: bool
    case: CaseWork | None
    chat: ChatBody | None

    @property
    def response(self) -> RunResponse | None:
        return None if self.case is None else self.case.response

    @property
    def response_trace(self) -> TokenTrace | None:
        return None if self.response is None else self.response.trace

    @property
    def title(self) -> str:
        return "a request of production" if self.case is None else f"case {self.case.case_id} of run {self.run_id}"

    @property
    def run_id(self) -> int | None:
        return None if self.case is None else self.case.shard.run_id


def replay_row(replay_id: int) -> contract.Replay:
    """Return a replay and its results so far. Raises NotFound."""
    rows = _rows(ReplayRecord.objects.filter(pk=replay_id), has_traces=True)
    if not rows:
        raise NotFound(f"There is no replay {replay_id}.")
    return rows[0]


def replay_state(replay_id: int) -> str:
    """Return what `replay_row` is made of, in short: equal texts, equal rows. Raises NotFound."""
    n_results = Func("results", function="jsonb_array_length", output_field=IntegerField())
    rows = ReplayRecord.objects.filter(pk=replay_id).annotate(n=n_results)
    row = require_row(rows.values_list("status", "n", "error", "finished_at"), f"There is no replay {replay_id}.")
    return "|".join(map(str, (replay_id, *row)))


def list_case_replays(run_id: int, case_index: int) -> tuple[contract.Replay, ...]:
    """Return the newest replays of one case of a run."""
    return _rows_if_any(ReplayRecord.objects.filter(run=run_id, case_index=case_index).order_by("-id")[:20])


def list_replays_of_case(slug: str, case_id: str) -> tuple[contract.Replay, ...]:
    """Return the newest replays of a case of any run of its suite."""
    versions = Case.objects.filter(suite_version__suite__slug=slug, case_id=case_id)
    places = Q()
    for version, index in versions.values_list("suite_version", "index"):
        places |= Q(run__suite_version=version, case_index=index)
    return _rows_if_any(ReplayRecord.objects.filter(places).order_by("-id")[:6]) if places else ()


def newest_replay(run_id: int, case_id: str) -> contract.Replay | None:
    """Return the newest replay of a case under its run's profile, None without one."""
    index = Case.objects.filter(suite_version__runs=run_id, case_id=case_id).values("index")[:1]
    own = ReplayRecord.objects.filter(run=run_id, case_index=index, profile=F("run__profile"))
    return next(iter(_rows_if_any(own.order_by("-id")[:1])), None)


def replay_rows(
    run_id: int, *, after: int | None = None, before: int | None = None, limit: int
) -> tuple[contract.Replay, ...]:
    """Return up to `limit` replays of a run, newest first: below id `after`, or just above `before`."""
    if not RunRecord.objects.filter(pk=run_id).exists():
        raise NotFound(f"There is no run {run_id}.")
    return newest_page(ReplayRecord.objects.filter(run=run_id), _rows, after=after, before=before, limit=limit)


def sortable_replays() -> RecordList[contract.Replay]:
    """Return the replays under the settings of production as a list that can be sorted."""
    others = ReplayRecord.objects.filter(Q(run=None) | ~Q(profile=F("run__profile")))
    return RecordList(others, _rows, REPLAY_ORDERS)


def replay_work(replay_id: int) -> ReplayWork:
    """Return a claimed replay's data for a worker."""
    related = ("endpoint", "profile", "run__suite_version")
    replay = ReplayRecord.objects.select_related(*related).get(pk=replay_id)
    case, chat = None, chat_of(replay)
    if replay.run is not None and replay.case_index is not None:
        case = _case_work(replay, replay.run, replay.case_index)
    return ReplayWork(
        replay_id=replay_id,
        serving=case.shard.serving if case is not None else _serving_of_body(replay),
        variants=tuple(replay.variants),
        results=tuple(replay.results),
        is_production=replay.is_production,
        case=case,
        chat=chat,
    )


def _case_work(replay: ReplayRecord, run: RunRecord, index: int) -> CaseWork:
    shard = Shard.objects.get(repeat=replay.repeat_id, first__lte=index, last__gte=index)
    return CaseWork(
        shard=shard_work(shard.pk, decoding=replay.profile),
        case_id=Case.objects.values_list("case_id", flat=True).get(suite_version=run.suite_version_id, index=index),
        index=index,
        n_cases=run.suite_version.n_cases,
        response=read_run_response(shard.repeat_id, index),
    )


def _serving_of_body(replay: ReplayRecord) -> Serving:
    """Return what serves a request body: the profile with the body's sampling."""
    chat, settings = read_chat_body(replay.body), replay.profile.settings
    # Without a limit an answer may fill the context, as a server of production would let it.
    max_tokens = chat.max_tokens or (replay.endpoint.max_model_len or 0) - 1
    served = serving_of(replay.endpoint, replay.profile, None, max_tokens=max_tokens, stop=chat.stop)
    return replace(served, profile_settings={**settings, "sampling": {**settings["sampling"], **chat.sampling}})


def cases_to_decode(replay_id: int, indexes: list[int]) -> list[CaseToDecode]:
    """Return the cases at these indexes as a replay decodes them, in order, with duplicates."""
    replay = ReplayRecord.objects.select_related("repeat__run", "profile").get(pk=replay_id)
    repeat = replay.repeat
    assert repeat is not None  # noqa: S101  for the type checker: only cases have neighbours
    cases = Case.objects.filter(suite_version=repeat.run.suite_version_id, index__in=set(indexes))
    by_index = {case.index: case_to_decode(case, repeat, decoding=replay.profile) for case in cases}
    return [by_index[index] for index in indexes]


def count_prompt_tokens(run_id: int, indexes: list[int]) -> int | None:
    """Return the total prompt tokens of these cases in the run; None if it did not count them."""
    counted = ResponseRecord.objects.filter(
        repeat__run=run_id, case_index__in=set(indexes), n_prompt_tokens__isnull=False
    )
    by_case = dict(counted.values("case_index").annotate(n=Max("n_prompt_tokens")).values_list("case_index", "n"))
    return sum(by_case[index] for index in indexes) if set(indexes) <= by_case.keys() else None


def load_vocabulary(process: EngineProcess) -> Vocabulary | None:
    """Return an engine process's vocabulary, None if not stored."""
    return None if process.vocabulary is None else Vocabulary.unpack(bytes(process.vocabulary.data))


def variant_name(variant: dict[str, Any]) -> str:
    """Name a variant in a few words: "float16, batch size 4, neighbours from +3"."""
    parts = [variant["dtype"]] if "dtype" in variant else []
    if "batch_size" in variant:
        parts.append(f"batch size {variant['batch_size']}")
    if "neighbours" in variant:
        parts.append(f"neighbours from +{variant['neighbours']}")
    return ", ".join(parts) or "as in the run"


def _rows_if_any(replays: QuerySet[ReplayRecord]) -> tuple[contract.Replay, ...]:
    """Return replays, newest first. Most cases have none, which this finds out without joins."""
    ids = list(replays.values_list("pk", flat=True))
    return _rows(ReplayRecord.objects.filter(pk__in=ids).order_by("-id")) if ids else ()


def _rows(replays: QuerySet[ReplayRecord], *, has_traces: bool = False) -> tuple[contract.Replay, ...]:
    related = ("repeat", "run__profile", "endpoint", "profile", "created_by")
    rows = list(replays.select_related(*related))
    cases = [
        (each, each.run.suite_version_id, each.case_index)
        for each in rows
        if each.run is not None and each.case_index is not None
    ]
    names = {
        (version, index): case_id
        for version, index, case_id in Case.objects.filter(
            suite_version__in={version for _, version, _ in cases},
            index__in={index for *_, index in cases},
        ).values_list("suite_version", "index", "case_id")
    }
    case_ids = {each.pk: names[version, index] for each, version, index in cases}
    return tuple(_row(each, case_ids.get(each.pk), has_trace=has_traces) for each in rows)


def _row(replay: ReplayRecord, case_id: str | None, *, has_trace: bool) -> contract.Replay:
    has_ended = replay.status == ReplayRecord.Status.FINISHED
    return contract.Replay(
        id=str(replay.pk),
        run=None if replay.run_id is None else str(replay.run_id),
        repeat=None if replay.repeat is None else replay.repeat.index,
        case=case_id,
        status=replay.status,
        variants=tuple(replay.variants),
        results=tuple(map(_shown, replay.results)),
        reading=_read_out(replay) if has_ended else (),
        error=replay.error or None,
        production=describe_production(replay, has_trace=has_trace),
        created_by=replay.created_by.get_username() if replay.created_by else None,
        created_at=replay.created_at,
        finished_at=replay.finished_at,
        url=_url(replay, case_id),
    )


def _read_out(replay: ReplayRecord) -> tuple[str, ...]:
    request = describe_request(replay)
    return explain_replay(replay.results) if request is None else explain_production(replay.results, request)


def _url(replay: ReplayRecord, case_id: str | None) -> str:
    """Return its page: that of its response, or its own for production settings."""
    if replay.is_production or replay.repeat is None:
        return reverse("replay", args=[replay.pk])
    return reverse_case("response", replay.run_id, replay.repeat.index, case_id)


def _shown(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result without its answer, with its variant's name and a sentence."""
    facts = {name: value for name, value in result.items() if name not in ("text", "trace", "sampling")}
    return {"name": variant_name(result["variant"]), "phrase": explain_result(result), **facts}

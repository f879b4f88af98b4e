"""Find the source of a suspected leak among the responses decoded in the same batch."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import QuerySet

from evalboard.compared.pair_layout import trace_of
from evalboard.contract import pair as contract
from evalboard.contract.call import CallFacts
from evalboard.contract.compare import SIDES
from evalboard.core.compare import Beside, Continuation, Divergence, Ids, find_continuation
from evalboard.core.profile import parse_profile
from evalboard.core.trace import TokenTrace
from evalboard.path_converters import reverse_case
from evalboard.wording.cause import explain_leak
from runs.compare.read_pair_records import Half, response_traces
from runs.models import Case, ResponseRecord, Shard

MAX_BESIDE = 500  # responses; during one long call to an external server there may have been more
DELAY = timedelta(seconds=1)  # from the end of an answer until the worker has it


class _LeakOrigin(NamedTuple):
    """The source of a side's continuation: `holder`'s prompt or answer."""

    holder: ResponseRecord
    is_prompt: bool
    tokens: Continuation


def find_leak(halves: tuple[Half, Half], parting: Divergence) -> contract.Leak:
    """Search each side's continuation in what was decoded with it, and return its source."""
    starts = parting.parts_at or 0, parting.parts_at_candidate or 0
    beside = [_decoded_beside(half) for half in halves]
    sources = []
    for side, half, other, start, rows in zip(SIDES, halves, halves[::-1], starts, beside, strict=True):
        text = _search(half, start, rows or [], other)
        if text is not None:
            sources.append(_source(side, half, text))
    source = max(sources, key=lambda each: each.n_tokens, default=None)
    n_beside = [None if rows is None else len(rows) for rows in beside]
    return contract.Leak(
        source=source,
        n_beside_baseline=n_beside[0],
        n_beside_candidate=n_beside[1],
        text=explain_leak(None if source is None else source.to_json(), dict(zip(SIDES, n_beside, strict=True))),
    )


def _search(half: Half, start: int, rows: list[ResponseRecord], other: Half) -> _LeakOrigin | None:
    traces = response_traces(rows)
    texts = [(row, *text) for row in rows if row.pk in traces for text in _texts(traces[row.pk])]
    beside = [Beside(row.case_index, ids) for row, _, ids in texts]
    own = [ids for is_prompt, ids in _texts(trace_of(half)) if is_prompt]
    own += [ids for _, ids in _texts(trace_of(other))]
    tokens = find_continuation(trace_of(half).token_ids[start:], beside, own)
    return None if tokens is None else _LeakOrigin(*texts[tokens.place][:2], tokens)


def _texts(trace: TokenTrace) -> Iterator[tuple[bool, Ids]]:
    """Yield the token ids of a trace's answer and prompt, and whether they are the prompt's."""
    yield False, trace.token_ids
    if trace.prompt_token_ids is not None:
        yield True, trace.prompt_token_ids


def _source(side: str, half: Half, text: _LeakOrigin) -> contract.LeakSource:
    case = Case.objects.values_list("case_id", flat=True).get(
        suite_version=half.run.suite_version_id, index=text.holder.case_index
    )
    return contract.LeakSource(
        side=side,
        run=str(half.run.pk),
        case=case,
        repeat=half.repeat,
        stands_in="prompt" if text.is_prompt else "answer",
        at=text.tokens.at,
        n_tokens=text.tokens.n,
        url=reverse_case("response", half.run.pk, half.repeat, case),
    )


def _decoded_beside(half: Half) -> list[ResponseRecord] | None:
    """Return the responses that may have been decoded at the same time, None if unknown.

    Our engine decodes one shard at a time, and under `fixed-N` one group. For an external server only the calls of the
    same repeat are known.
    """
    response = half.response
    others = ResponseRecord.objects.filter(repeat=response.repeat_id).exclude(pk=response.pk)
    if response.call is not None:
        return list(_called_beside(others, CallFacts.from_stored(response.call))[:MAX_BESIDE])
    if half.is_logged or response.engine_process_id is None:
        return None
    if response.batch_max == 1:
        return []
    index, size = response.case_index, parse_profile(half.run.profile.settings).group_size
    if size is not None:
        first = index // size * size
        return list(others.filter(case_index__range=(first, first + size - 1)))
    shard = Shard.objects.filter(repeat=response.repeat_id, first__lte=index, last__gte=index).first()
    if shard is None:
        return None
    together = others.filter(
        engine_process=response.engine_process_id,
        attempt=response.attempt,
        case_index__range=(shard.first, shard.last),
    )
    return _in_flight_with(response, list(together))


def _called_beside(others: QuerySet[ResponseRecord], call: CallFacts) -> QuerySet[ResponseRecord]:
    instants = call.to_json()
    overlapping = others.filter(call__started_at__lte=instants["ended_at"], call__ended_at__gte=instants["started_at"])
    return overlapping.order_by("recorded_at")


def _in_flight_with(response: ResponseRecord, others: list[ResponseRecord]) -> list[ResponseRecord]:
    """Leave out those that had ended before it began, or began after it had ended.

    An answer ended between the storing before its own and its own, so that these two bound when it was decoded.
    """
    stored = sorted({each.recorded_at for each in (response, *others)})
    begun, ended = _bounds(response, stored)
    spans = [(each, *_bounds(each, stored)) for each in others]
    return [each for each, its_begun, its_ended in spans if its_begun <= ended and begun <= its_ended]


def _bounds(response: ResponseRecord, stored: list[datetime]) -> tuple[datetime, datetime]:
    """Return the earliest instant at which it may have begun, and the latest at which it may have ended."""
    before = stored.index(response.recorded_at) - 1
    earliest_end = stored[before] if before >= 0 else response.recorded_at
    seconds = (response.prefill_seconds or 0.0) + (response.decode_seconds or 0.0)
    return earliest_end - DELAY - timedelta(seconds=seconds), response.recorded_at

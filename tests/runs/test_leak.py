"""A pair that looks like a leak names whose text it is, where it was decoded beside it; else what is not known."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from evalboard.contract.call import CallFacts
from evalboard.core.trace import TokenTrace
from runs.compare import trace_pair
from runs.models import EngineProcess, ResponseRecord, RunRecord
from tests import build
from tests.runs.test_comparisons import Answer, recorded, stored

pytestmark = pytest.mark.django_db
N, VICTIM, SOURCE, AT = 12, 4, 9, 8
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def joined(first: TokenTrace, rest: TokenTrace, start: int) -> TokenTrace:
    """The first up to `start`, and from there on what the other says from `start`."""
    parts = [(first, slice(None, start)), (rest, slice(start, None))]
    names = ("token_ids", "logprobs", "alternative_ids", "alternative_logprobs")
    columns = {name: np.concatenate([getattr(trace, name)[part] for trace, part in parts]) for name in names}
    return replace(first, **columns)


LEAKED = joined(recorded(VICTIM), recorded(SOURCE), AT)


@pytest.fixture
def leaked() -> Callable[..., tuple[RunRecord, RunRecord]]:
    """Two runs of a batched bucket; in the second the answer to one case goes on with that to another."""

    def make(*, batch_class: str = "mixed", under: str = "fast", **changes: object) -> tuple[RunRecord, RunRecord]:
        version = build.suite(case_ids=[f"case-{number:02}" for number in range(N)])
        ours = [Answer(recorded(index)) for index in range(N)]
        theirs = list(ours)
        theirs[VICTIM] = Answer(LEAKED, "another request's")
        by = build.process(build.bucket(batch_class=batch_class))
        return stored(version, ours, by=by, under=under, **changes), stored(version, theirs, by=by, under=under)

    return make


def said(runs: tuple[RunRecord, RunRecord]):
    found = trace_pair(runs[0].pk, runs[1].pk, case_id=f"case-{VICTIM:02}", repeats=(1, 1))
    assert found.cause == "leak"
    assert found.leak is not None
    return found.leak


def at_seconds(run: RunRecord, case: int, recorded_at: float, decode_seconds: float) -> None:
    instant = NOON + timedelta(seconds=recorded_at)
    ResponseRecord.objects.filter(repeat__run=run, case_index=case).update(
        recorded_at=instant, decode_seconds=decode_seconds, prefill_seconds=0.0
    )


def called(started_at: datetime, *, seconds: int) -> dict[str, object]:
    call = CallFacts(
        started_at=started_at,
        ended_at=started_at + timedelta(seconds=seconds),
        n_tries=1,
        status=200,
        response_id="",
        request_id="",
        seed_echoed=None,
        system_fingerprint="",
        backend="",
        backend_from="",
        model_reported="paint-1b",
        n_tokens=None,
        n_prompt_tokens=None,
        left_out=(),
    )
    return call.to_json()


def test_the_response_whose_text_it_is_is_named(leaked: Callable[..., tuple[RunRecord, RunRecord]]) -> None:
    runs = leaked()
    found = said(runs)
    source = found.source
    assert (source.side, source.run, source.case, source.repeat) == ("candidate", str(runs[1].pk), "case-09", 1)
    n = len(recorded(SOURCE)) - AT
    assert (source.stands_in, source.at, source.n_tokens) == ("answer", AT, n)
    assert source.url == f"/runs/{runs[1].pk}/repeats/1/cases/case-09/"
    assert found.text == (
        f"The candidate's answer continues with {n} tokens of the answer to case-09, decoded in the same batch."
    )
    assert (found.n_beside_baseline, found.n_beside_candidate) == (11, 11)


def test_a_prompt_may_leak_as_well(
    leaked: Callable[..., tuple[RunRecord, RunRecord]], monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = recorded(SOURCE).prompt_token_ids
    other = replace(recorded(SOURCE), token_ids=np.resize(prompt[-20:], len(recorded(SOURCE))).astype(np.int32))
    monkeypatch.setattr("tests.runs.test_leak.LEAKED", joined(recorded(VICTIM), other, AT))
    source = said(leaked()).source
    assert (source.case, source.stands_in) == ("case-09", "prompt")


@pytest.mark.nightly
def test_what_was_decoded_before_or_after_is_not_looked_through(
    leaked: Callable[..., tuple[RunRecord, RunRecord]],
) -> None:
    runs = leaked()
    for case in range(N):  # one after the other, two seconds each, ten seconds apart
        at_seconds(runs[1], case, 10.0 * case, 2.0)
    found = said(runs)  # the one before may have ended with its own: an answer may wait for the next to be stored
    assert (found.source, found.n_beside_baseline, found.n_beside_candidate) == (None, 11, 2)
    at_seconds(runs[1], VICTIM, 10.0 * SOURCE + 5.0, 8.0)
    assert said(runs).source.case == "case-09"


def test_only_its_own_shard_attempt_and_process_are_beside_it(
    leaked: Callable[..., tuple[RunRecord, RunRecord]],
) -> None:
    runs = leaked()
    source = ResponseRecord.objects.filter(repeat__run=runs[1], case_index=SOURCE)
    for elsewhere in ({"attempt": 2}, {"engine_process": build.process(build.bucket(batch_class="mixed"))}):
        kept = source.values(*elsewhere).get()
        source.update(**elsewhere)
        assert said(runs).source is None
        source.update(**{f"{name}_id" if name == "engine_process" else name: value for name, value in kept.items()})
    assert said(runs).source is not None


def test_fixed_groups_say_exactly_what_was_beside_it(leaked: Callable[..., tuple[RunRecord, RunRecord]]) -> None:
    found = said(leaked(batch_class="fixed-8", under="fixed"))
    assert (found.source, found.n_beside_baseline, found.n_beside_candidate) == (None, 7, 7)  # case 9 is of the next


def test_alone_nothing_was_beside_it(leaked: Callable[..., tuple[RunRecord, RunRecord]]) -> None:
    runs = leaked()
    ResponseRecord.objects.filter(repeat__run__in=runs).update(batch_max=1)
    found = said(runs)
    assert (found.n_beside_baseline, found.n_beside_candidate) == (0, 0)
    assert found.text == (
        "The source was not identified. The answer of the baseline was decoded at batch size 1. The answer of the "
        "candidate was decoded at batch size 1."
    )


def test_calls_that_were_in_flight_at_the_same_time_are_beside_it(
    leaked: Callable[..., tuple[RunRecord, RunRecord]],
) -> None:
    runs = leaked()
    for case in range(N):
        started = NOON + timedelta(seconds=10 * case)
        call = called(started, seconds=4)
        ResponseRecord.objects.filter(repeat__run=runs[1], case_index=case).update(call=call)
    assert said(runs).source is None
    assert said(runs).n_beside_candidate == 0
    ResponseRecord.objects.filter(repeat__run=runs[1], case_index=VICTIM).update(call=called(NOON, seconds=92))
    assert (said(runs).source.case, said(runs).n_beside_candidate) == ("case-09", 9)


def test_of_a_log_nobody_knows_it(leaked: Callable[..., tuple[RunRecord, RunRecord]]) -> None:
    runs = leaked()
    RunRecord.objects.filter(pk=runs[1].pk).update(is_reported=True)
    EngineProcess.objects.update(vocabulary=None)
    found = said(runs)
    assert (found.source, found.n_beside_candidate) == (None, None)
    assert found.text.endswith("The batch of the candidate is unknown.")

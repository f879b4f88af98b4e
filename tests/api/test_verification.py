"""`/forced/{id}/verification/`: what is refused, and each of the four words, from stored traces."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from evalboard.contract.facts import SettingsSeen
from runs.forced import create_forced, verification
from runs.models import EngineProcess, ForcedScoringRecord, ResponseRecord, RunRecord
from tests import build, forced
from tests.api.conftest import Api
from tests.casts import cast
from tests.nightly import few

N = 12
SHIFTS = {"control": 0.0, "numerics": 0.01, "planted": 0.02}


@cast
def reference() -> EngineProcess:
    build.suite(case_ids=[f"case-{number:02}" for number in range(N)])
    build.endpoint("reference")
    return build.process()


@cast
def known(reference: EngineProcess) -> dict[str, int]:
    """Finished scorings of known origin: of the reference's own answers none has moved."""
    return {name: scored(reference, shift).pk for name, shift in SHIFTS.items()}


def scored(
    reference: EngineProcess,
    shift: float,
    *,
    by: EngineProcess | None = None,
    under: str = "pinned",
    cases: Sequence[str] | None = None,
    has_traces: bool = True,
    other_at: int | None = None,
) -> ForcedScoringRecord:
    """A new run's answers as the reference scored them, each token less likely by `shift` nats."""
    run = build.finished_run(["blue"] * N, by=by or reference, under=under)
    if not has_traces:
        ResponseRecord.objects.filter(repeat__run=run).update(trace_block=None, trace_slot=None)
    asked = create_forced(run_id=run.pk, endpoint="reference", cases=cases)
    return forced.scored(asked, by=reference, shift=shift, other_at=other_at)


def ask(api: Api, scoring: int, known: Mapping[str, Any]) -> Any:
    return api.get(f"/forced/{scoring}/verification/?{'&'.join(f'{name}={value}' for name, value in known.items())}")


@pytest.mark.parametrize(
    ("shift", "state", "words"),
    few(
        [
            (0.0, "same_stack", "Same stack: 24 tokens of 12 answers differ from the reference no more"),
            (0.01, "same_model_other_numerics", "Same model, other numerics: 24 tokens of 12 answers"),
            (0.02, "other_model", "Another model: 24 tokens of 12 answers"),
            (3.0, "other_model", "Another model: 24 tokens of 12 answers"),
        ],
        2,
    ),
)
def test_each_origin_has_its_word(
    api: Api, reference: EngineProcess, known: dict[str, int], shift: float, state: str, words: str
) -> None:
    scoring = scored(reference, shift)
    body = ask(api, scoring.pk, known).json()
    assert (body["state"], body["statistic"], body["n_more_tokens"]) == (state, "gap", None)
    assert body["sentence"].startswith(words)
    assert body["endpoint"]["mean"]["value"] == pytest.approx(min(shift, body["limit"]) ** 2, rel=1e-4)
    assert (body["endpoint"]["forced"], body["endpoint"]["run"]) == (str(scoring.pk), str(scoring.run_id))
    assert {name: body[name]["forced"] for name in known} == {name: str(pk) for name, pk in known.items()}
    assert (body["p_above_numerics"] <= 0.01) == (state == "other_model")
    assert body["url"].endswith(f"/forced/{scoring.pk}/")


def test_one_answer_is_too_few_and_says_how_many_more(
    api: Api, reference: EngineProcess, known: dict[str, int]
) -> None:
    body = ask(api, scored(reference, 0.01, cases=["case-00"]).pk, known).json()
    assert (body["state"], body["endpoint"]["n_tokens"]) == ("too_few_tokens", 2)
    assert f"About {body['n_more_tokens']} more tokens decide" in body["sentence"]


def test_without_a_planted_change_twice_the_numerics_is_told(
    api: Api, reference: EngineProcess, known: dict[str, int]
) -> None:
    del known["planted"]
    body = ask(api, scored(reference, 0.02).pk, known).json()
    assert (body["state"], body["planted"]) == ("other_model", None)
    assert body["change"] == pytest.approx(4 * body["numerics"]["mean"]["value"])
    assert body["sentence"].endswith("nearer to a change twice as large.")


@pytest.mark.nightly
def test_an_endpoint_without_logprobs_is_judged_by_its_tokens(
    api: Api, reference: EngineProcess, known: dict[str, int]
) -> None:
    numerics = scored(reference, 0.0, other_at=0).pk
    asked = {"control": known["control"], "numerics": numerics}
    silent = [scored(reference, 0.0, has_traces=False, other_at=at).pk for at in (None, 0)]
    honest, apart = (ask(api, each, asked).json() for each in silent)
    assert (honest["state"], honest["statistic"]) == ("same_stack", "deficit")
    assert apart["state"] == "same_model_other_numerics"
    refused = ask(api, known["planted"], {**asked, "numerics": silent[0]})
    assert refused.status_code == 409
    assert "(numerics) has a gap" in refused.json()["detail"]


@pytest.mark.nightly
def test_what_takes_from_its_weight_is_said(
    api: Api, reference: EngineProcess, known: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = scored(reference, 0.0, by=build.process(build.bucket("float16"))).pk
    scoring = scored(reference, 0.01).pk
    assert [each["code"] for each in ask(api, scoring, known).json()["warnings"]] == ["rendered"]
    monkeypatch.setattr(verification, "MAX_ANSWERS", 5)
    body = ask(api, scoring, {**known, "control": foreign}).json()
    assert [each["code"] for each in body["warnings"]] == ["control_of_other_bucket", "rendered", "first_answers"]
    assert body["endpoint"]["n_responses"] == 5


@pytest.mark.parametrize(("most", "n_answers"), few([(7, 3), (6, 3), (1, 1)], 1))
def test_no_more_positions_are_read_than_a_request_can_wait_for(
    api: Api,
    reference: EngineProcess,
    known: dict[str, int],
    monkeypatch: pytest.MonkeyPatch,
    most: int,
    n_answers: int,
) -> None:
    monkeypatch.setattr(verification, "MAX_POSITIONS", most)
    body = ask(api, scored(reference, 0.01).pk, known).json()
    assert (body["endpoint"]["n_responses"], body["control"]["n_tokens"]) == (n_answers, 2 * n_answers)


@pytest.mark.nightly
def test_a_scoring_that_is_not_there_is_not_found(api: Api, reference: EngineProcess, known: dict[str, int]) -> None:
    for missing in (ask(api, 999, known), ask(api, scored(reference, 0.0).pk, {**known, "planted": 999})):
        assert missing.status_code == 404
        assert missing.json()["detail"] == "There is no forced scoring 999."


@pytest.mark.nightly
def test_scorings_that_do_not_go_together_are_refused(
    api: Api, reference: EngineProcess, known: dict[str, int]
) -> None:
    scoring = scored(reference, 0.01)
    elsewhere = scored(build.process(build.bucket("bfloat16")), 0.01)
    drawn = scored(reference, 0.01, under="sampled")
    unknown = scored(reference, 0.01)
    seen = SettingsSeen(n_answers=N, n_left_out={"temperature": N}, checked={})
    RunRecord.objects.filter(pk=unknown.run_id).update(is_reported=True, settings_seen=seen.to_json())
    twice = forced.scored(create_forced(run_id=scoring.run_id, endpoint="reference"), by=reference)
    waiting = create_forced(run_id=build.finished_run(["blue"] * N).pk, endpoint="reference")
    refusals = {
        waiting.pk: f"Forced scoring {waiting.pk} is queued",
        elsewhere.pk: f"Forced scorings {elsewhere.pk} and {known['control']} are of two buckets.",
        scoring.pk: f"Run {scoring.run_id} is given as endpoint and as numerics.",
        twice.pk: f"Run {scoring.run_id} is given as endpoint and as numerics.",
        unknown.pk: "Some of the runs were decoded at temperature 0. Others were not, or their temperature is unknown.",
        drawn.pk: "Some of the runs were decoded at temperature 0. Others were not",
    }
    for numerics, words in refusals.items():
        refused = ask(api, scoring.pk, {**known, "numerics": numerics})
        assert refused.status_code == 409
        assert refused.json()["detail"].startswith(words)


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"numerics": "1"}, "control"),
        ({"control": "1"}, "numerics"),
        ({"control": "1", "numerics": "two"}, "numerics"),
        ({"control": "1", "numerics": "2", "changed": "3"}, "changed"),
    ],
)
def test_a_query_that_is_not_valid_is_refused_by_name(api: Api, sent: dict[str, str], field: str) -> None:
    refused = ask(api, 1, sent)
    assert (refused.status_code, list(refused.json()["fields"])) == (400, [field])


def test_nothing_is_stored(api: Api, reference: EngineProcess, known: dict[str, int]) -> None:
    scoring = scored(reference, 0.02)
    before = list(ForcedScoringRecord.objects.order_by("pk").values()), RunRecord.objects.count()
    assert ask(api, scoring.pk, known).json() == ask(api, scoring.pk, known).json()
    assert (list(ForcedScoringRecord.objects.order_by("pk").values()), RunRecord.objects.count()) == before

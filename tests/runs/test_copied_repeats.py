"""Releases over repeats that are an earlier answer given again, and what makes equal repeats count."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from evalboard.core.errors import InvalidInput
from evalboard.core.profile import OBSERVED
from evalboard.importers.files import LogFile
from runs.compare import compare
from runs.imports import import_logs
from runs.models import BucketRecord, EndpointRecord, Model, ReleaseRecord, RepeatRecord, RunRecord
from runs.release import decide_release
from runs.run import run_report
from tests import build
from tests.nightly import few
from tests.runs import judged, logs
from tests.runs.judged import SAMPLE_POLICY, codes

pytestmark = pytest.mark.django_db
NOW = timezone.now()


@pytest.fixture
def version(db: None) -> Any:
    return judged.suite(policy=SAMPLE_POLICY)


def bucket(model: str) -> BucketRecord:
    """A bucket of an external server that names its stack and says nothing of its batches."""
    served, _ = Model.objects.get_or_create(digest=model.ljust(64, "0"), defaults={"name": model, "line": model})
    stack = build.bucket().fingerprint
    return BucketRecord.objects.get_or_create(model=served, fingerprint=stack, batch_class=OBSERVED)[0]


def asked(
    version: Any, slug: str, *, hours_ago: float = 9, wrong: Any = None, repeats: int = 5, changes: Any = None
) -> RunRecord:
    """A finished run of a greedy model on an external endpoint, which took an hour."""
    named = {"base_url": "https://models.example/v1", "model_repo": slug, "line": slug, "max_model_len": None}
    EndpointRecord.objects.get_or_create(slug=slug, defaults={"engine": EndpointRecord.Engine.OPENAI, **named})
    made = judged.run(version, wrong, by=bucket(slug), on=slug, repeats=repeats)
    end: datetime = NOW - timedelta(hours=hours_ago - 1)
    times = {"started_at": end - timedelta(hours=1), "ran_at": end - timedelta(hours=1), "finished_at": end}
    RunRecord.objects.filter(pk=made.pk).update(**times, **(changes or {}))
    RepeatRecord.objects.filter(run=made).update(finished_at=end)
    made.refresh_from_db()
    return made


def both(version: Any, **changes: Any) -> tuple[RunRecord, RunRecord]:
    return asked(version, "mini", **changes), asked(version, "maxi", **changes)


def document(release: ReleaseRecord) -> dict[str, Any]:
    verdict = decide_release(release_id=release.pk)
    assert verdict is not None
    return verdict.document


def test_equal_repeats_of_an_external_server_are_one_sample(version: Any) -> None:
    found = document(judged.release(*both(version), treatment="service"))
    assert (found["verdict"], codes(found["reasons"])) == ("inconclusive", ["copies"])
    assert found["reasons"][0]["text"].startswith(
        "All 5 repeats of the baseline are copies of one answer (30 of 30 cases equal). That is one sample."
    )
    assert codes(found["next"]) == ["second_run", "nothing_caches"]
    runs = RunRecord.objects.order_by("pk").values_list("pk", flat=True)
    commands = [f"evalboard run --second-run-of {run}" for run in runs]
    assert f"an hour later: {commands[0]} and {commands[1]}. If nothing changes" in found["next"][0]["text"]


@pytest.mark.nightly
def test_a_persons_word_that_nothing_caches_counts_and_is_printed(version: Any) -> None:
    sides = both(version)
    found = document(judged.release(*sides, treatment="service", nothing_caches=True))
    assert found["verdict"] == "ship"
    assert "nothing_caches" in codes(found["warnings"])
    cold = asked(version, "cold", wrong={1: (1,), 2: (1,)})  # the first repeat alone differs: here its word is no use
    found = document(judged.release(sides[0], cold, treatment="service", nothing_caches=True))
    assert (found["verdict"], codes(found["reasons"])) == ("inconclusive", ["copies"])
    assert "first_repeat_differs" in codes(found["warnings"])


def test_a_second_run_an_hour_later_that_gives_the_same_answers_makes_them_count(version: Any) -> None:
    release = judged.release(*both(version), treatment="service")
    for slug in ("mini", "maxi"):
        asked(version, slug, hours_ago=2, repeats=1)
    found = document(release)
    assert found["verdict"] == "ship"
    assert not {"copies", "nothing_caches"} & {*codes(found["warnings"])}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("changes", "steps"),
    few(
        [
            ({"hours_ago": 2, "wrong": {3: (1,)}}, ["call_uncached"]),
            ({"hours_ago": 8.5}, ["second_run", "nothing_caches"]),
        ],
        1,
    ),
    ids=["it gave another answer", "it began half an hour later"],
)
def test_a_second_run_may_show_nothing(version: Any, changes: Any, steps: list[str]) -> None:
    release = judged.release(*both(version), treatment="service")
    for slug in ("mini", "maxi"):
        asked(version, slug, repeats=1, **changes)
    found = document(release)
    assert (codes(found["reasons"]), codes(found["next"])) == (["copies"], steps)


@pytest.mark.nightly
def test_a_second_log_of_the_same_side_makes_equal_repeats_of_a_log_count() -> None:
    def log(model: str) -> Any:
        given = [logs.response(case, repeat) for case in logs.CASES for repeat in range(1, 6)]
        return logs.log(*given, model=model)

    sides = [logs.stored(log(model), model) for model in ("lab/one", "lab/two")]
    release = judged.release(*sides, policy="paired", treatment="service")
    assert codes(document(release)["reasons"]) == ["copies"]
    for first, model in zip(sides, ("lab/one", "lab/two"), strict=True):
        second = logs.stored(log(model), f"{model} again")
        RunRecord.objects.filter(pk=second.pk).update(second_of=first)
    assert codes(document(release)["reasons"]) != ["copies"]


def test_a_log_that_is_no_second_one_is_refused(tmp_path: Any) -> None:
    path = tmp_path / "log.jsonl"
    line = '{"custom_id": "sky", "response": {"status_code": 200, "body": {"model": "m", "choices": []}}}'
    path.write_text(line, encoding="utf-8")
    for second_of in ("7", "7" * 5_000):
        with pytest.raises(InvalidInput) as refused:
            import_logs(files=[LogFile(path.name, path)], second_of=second_of, user=None)
        assert refused.value.fields == {"second_of": "Must be the id of a run."}


def sent(tmp_path: Any, name: str, n_calls: int = 2, **changes: Any) -> dict[str, Any]:
    """What importing a log of calls takes. Without messages the log does not hold its prompts."""
    lines = []
    for number in range(n_calls):
        request = {
            "model": "m",
            "messages": [{"role": "user", "content": f"Say {number}."}],
            "temperature": 0,
            **changes,
        }
        choice = {"index": 0, "message": {"role": "assistant", "content": "blue"}, "finish_reason": "stop"}
        body = {"id": f"{name}-{number}", "model": request["model"], "choices": [choice]}
        known = {"custom_id": f"case-{number}", "response": {"status_code": 200, "body": body}}
        lines.append(json.dumps(known if changes.get("messages") == [] else {**known, "request": request}))
    path = tmp_path / f"{name}.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return {"files": [LogFile(path.name, path)], "user": None}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"model": "n"}, "its model is n and not m."),
        ({"temperature": 1}, "its settings are others (temperature 0.0 → 1.0)."),
    ],
)
def test_a_log_that_is_no_second_one_says_in_what_it_is_another(tmp_path: Any, changes: Any, says: str) -> None:
    _, [first], _ = import_logs(**sent(tmp_path, "one"))
    with pytest.raises(InvalidInput) as refused:
        import_logs(**sent(tmp_path, "two", **changes), second_of=str(first.pk))
    assert str(refused.value) == f"The log is no second one of run {first.pk}: {says}"
    assert list(refused.value.fields) == ["second_of"]


@pytest.mark.nightly
def test_a_log_that_was_imported_before_may_be_said_to_be_a_second_one(tmp_path: Any) -> None:
    one, two = sent(tmp_path, "one"), sent(tmp_path, "two")
    [first], [second] = import_logs(**one)[1], import_logs(**two)[1]
    assert second.second_of is None
    _, [same], is_new = import_logs(**two, second_of=str(first.pk))
    assert (same, same.second_of, is_new) == (second, first, False)
    with pytest.raises(InvalidInput, match="it is the log of that run"):
        import_logs(**one, second_of=str(first.pk))


@pytest.mark.nightly
def test_a_second_log_without_prompts_is_told_to_name_the_suite(tmp_path: Any) -> None:
    _, [first], _ = import_logs(**sent(tmp_path, "one", messages=[]))
    suite = first.suite_version.suite.slug
    second = sent(tmp_path, "two", messages=[]) | {"second_of": str(first.pk)}
    with pytest.raises(InvalidInput) as refused:
        import_logs(**second)
    assert f"v1 and not {first.suite_version}. The log does not hold its prompts." in str(refused.value)
    assert refused.value.fields["suite"].endswith(f"import it with --suite {suite}.")
    assert import_logs(**second, suite=suite)[1][0].second_of == first
    with pytest.raises(InvalidInput) as refused:  # cases that the suite does not have: no way out
        import_logs(**sent(tmp_path, "three", n_calls=3, messages=[]), second_of=str(first.pk))
    assert "--suite" not in str(refused.value)


@pytest.mark.nightly
def test_a_comparison_of_equal_repeats_says_that_their_noise_is_not_known(version: Any) -> None:
    one, other = both(version)
    noise = compare(baseline=one.pk, candidate=other.pk).summary["noise_share"]
    assert noise == {"up_to": None, "reason": "one_draw"}
    cold = asked(version, "cold", wrong={1: (1,), 2: (1,)})
    assert compare(baseline=one.pk, candidate=cold.pk).summary["noise_share"]["reason"] == "copies"


@pytest.mark.nightly
def test_the_page_of_a_run_says_how_many_samples_its_repeats_are(version: Any) -> None:
    noise = run_report(asked(version, "mini").pk).noise
    assert (noise.n_repeats, noise.n_draws, noise.sd_points, noise.interval) == (1, 1.0, None, None)
    assert not noise.does_first_differ


@pytest.mark.nightly
def test_a_run_says_that_its_first_repeat_alone_differs(version: Any) -> None:
    cold = run_report(asked(version, "cold", wrong={1: (1,), 2: (1,)}).pk)
    assert (cold.noise.n_repeats, cold.noise.n_draws, cold.noise.n_unstable) == (2, 2.0, 2)
    assert cold.noise.does_first_differ
    [warning] = [each for each in cold.warnings if each.code == "first_repeat_differs"]
    assert warning.text.startswith("Repeats 2 to 5 are copies of each other and count as one sample.")
    later = run_report(asked(version, "later", wrong={1: (1, 2), 2: (1, 2)}).pk)
    assert "first_repeat_differs" not in [each.code for each in later.warnings]


@pytest.mark.nightly
def test_our_own_engine_counts_what_it_decoded_in_other_batches(version: Any) -> None:
    mixed = build.bucket()
    mixed = BucketRecord.objects.get_or_create(model=mixed.model, fingerprint=mixed.fingerprint, batch_class="mixed")[0]
    process = build.process(mixed)
    same, shuffled = (judged.run(version, by=process) for _ in range(2))
    assert run_report(same.pk).noise.n_draws == 1.0  # one engine process, batches of one size, in one order
    RunRecord.objects.filter(pk=shuffled.pk).update(is_shuffled=True)
    assert run_report(shuffled.pk).noise.n_draws is None


@pytest.mark.nightly
def test_pages_say_how_many_samples_equal_repeats_are(version: Any, client: Client) -> None:
    sides = both(version)
    release = judged.release(*sides, treatment="service")
    headline = document(release)["summary"]
    client.force_login(build.user("reader", "viewer"))
    page = client.get(f"/runs/{sides[0].pk}/").content.decode()
    assert "Which cases are unstable is not known: 5 repeats count as one sample." in page
    assert "5 repeats that count as one sample" in page
    assert "Its noise is unknown: no run has two independent repeats." in client.get("/suites/sample/").content.decode()
    assert "sample scored 100.0 against 100.0. All 5 repeats of the baseline are copies of one answer" in headline

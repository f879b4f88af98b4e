"""A search over everything: what it names, in which order, and where one thing is opened at once."""

from typing import Any

import pytest
from django.db import connection
from django.urls import reverse

from evalboard.contract.find import KINDS
from runs import models
from runs.compare import compare
from runs.find import parse_wanted, search
from runs.suites import push_suite
from tests import build
from tests.frontend import stage, two_runs
from tests.nightly import few

pytestmark = pytest.mark.django_db
ORIGIN = "https://board.example"


def hits(text: str, kind: str = "") -> list[tuple[str, str]]:
    return [(hit.kind, hit.name) for hit in search(parse_wanted(text, kind)).hits]


def names(text: str, kind: str = "") -> list[str]:
    return [name for _, name in hits(text, kind)]


@pytest.fixture
def compared(settings: Any) -> models.ComparisonRecord:
    """Two runs that part at a near tie between two tokens."""
    stage.stage(model_root=settings.MODEL_ROOTS[0], n_cases=6)
    ours, theirs = two_runs.near_tie(2)
    baseline, candidate = two_runs.make({2: ours}, {2: theirs}, repeats=2)
    comparison = compare(baseline=baseline.pk, candidate=candidate.pk)
    assert comparison.summary["clusters"]
    return comparison


def test_an_exact_id_stands_before_longer_ones_and_recent_before_old() -> None:
    for number in (7, 71, 72, 700):
        with connection.cursor() as cursor:
            cursor.execute("SELECT setval('runs_run_id_seq', %s, false)", [number])
        build.run()
    assert names("7", "run")[:3] == ["run 7", "run 700", "run 72"]
    assert names("run 71")[0] == "run 71"
    assert len(names("colours pinned", "run")) == 4
    assert names("colours elsewhere", "run") == []


def test_a_kind_narrows_and_counts_stand_for_every_kind() -> None:
    run = build.run(labels={"branch": "release/0412"})
    assert ("label", "branch=release/0412") in hits("0412")
    assert hits("label: 0412") == hits("0412", "label") == [("label", "branch=release/0412")]
    result = search(parse_wanted("colours"))
    assert {count.kind: count.n for count in result.counts if count.n} == {"run": 1, "suite": 1}
    assert result.n == 2
    assert not result.is_more
    assert names(f"run: {run.pk}") == [f"run {run.pk}"]


def test_a_case_has_one_hit_of_its_newest_version_by_id_and_by_the_words_of_its_prompt() -> None:
    cases = [{"id": "tool-041", "prompt": 'Convert 41,000 yen\nfor the "invoice".', "target": "x"}]
    for max_tokens in (8, 9):
        document = {"slug": "tools", "title": "Tools", "max_tokens": max_tokens, "scorer": {"kind": "exact"}}
        push_suite(document={**document, "cases": cases})
    for text in ("tool-041", "tool-0", "041", "yen convert", "Invoi", "000 yen"):
        [hit] = search(parse_wanted(text, "case")).hits
        assert (hit.name, hit.fact, hit.url) == ("tool-041", "tools v2", "/suites/tools/cases/tool-041/")
    assert names("ool-041", "case") == names("convert dollars", "case") == names("'", "case") == []
    assert search(parse_wanted("tool-041", "case")).hits[0].match == "exact"


def test_a_stack_is_found_by_its_name() -> None:
    models.RunRecord.objects.filter(pk=build.run().pk).update(bucket=build.bucket())
    stack = models.FingerprintRecord.objects.get()
    models.FingerprintRecord.objects.filter(pk=stack.pk).update(label="vLLM 0.31.2 on L40S")
    [hit] = search(parse_wanted("0.31 l40s")).hits
    assert (hit.kind, hit.name, hit.fact) == ("stack", "vLLM 0.31.2 on L40S", "1 run")
    assert hit.url == f"/fingerprints/{stack.pk}/"
    assert names("stack: vLLM") == ["vLLM 0.31.2 on L40S"]


@pytest.mark.nightly
def test_a_token_leads_to_the_cases_that_flip_there(compared: models.ComparisonRecord) -> None:
    for text in ("blue", "·red", "red", "token: re"):
        [hit] = [hit for hit in search(parse_wanted(text)).hits if hit.kind == "token"]
        key = compared.summary["clusters"][0]["key"]
        assert hit.name == "blue → ·red"
        assert hit.url == f"/compare/{compared.baseline_id}/{compared.candidate_id}/?cluster={key}#cases"
        assert hit.fact == "1 case"
    assert names("green", "token") == names("lue", "token") == []


@pytest.mark.nightly
def test_digests_of_every_kind_from_four_digits(compared: models.ComparisonRecord) -> None:
    version = compared.baseline.suite_version
    case = version.cases.get(index=2)
    bucket = compared.baseline.bucket
    assert bucket is not None
    kinds = {
        version.digest: "suite version",
        version.scorer.digest: "scorer",
        case.digest: "case",
        bucket.fingerprint.digest: "fingerprint",
        bucket.model.digest: "model",
        compared.baseline.profile.digest: "profile",
        compared.input_digest: "inputs of a comparison",
    }
    for whole, fact in kinds.items():
        result = search(parse_wanted(whole))
        assert fact in [hit.fact for hit in result.hits], fact
        assert fact in [hit.fact for hit in search(parse_wanted(whole[:6], "digest")).hits]
        assert fact not in [hit.fact for hit in search(parse_wanted(whole[:3], "digest")).hits]
        assert result.opens == result.hits[0].url
    assert search(parse_wanted(version.digest)).opens == f"/suites/{version.suite.slug}/versions/1/"


@pytest.mark.nightly
def test_the_digest_of_a_trace_leads_to_its_response(compared: models.ComparisonRecord) -> None:
    response = models.ResponseRecord.objects.get(repeat__run=compared.candidate, repeat__index=1, case_index=2)
    whole = bytes(response.trace_digest).hex()
    hits = search(parse_wanted(whole[:9], "digest")).hits
    assert {hit.fact for hit in hits} == {"trace"}
    assert f"/runs/{compared.candidate_id}/repeats/1/cases/case-002/" in [hit.url for hit in hits]
    assert names(whole[2:12], "digest") == []
    assert names(whole[:7], "digest") == []


def test_a_request_id_opens_its_response() -> None:
    run = build.finished_run(["blue"] * 3)
    first, second, third = models.ResponseRecord.objects.order_by("case_index")
    for response, name in ((first, "req-041b7e2c"), (second, "req-041c"), (third, "2-0a41b7e2")):
        models.ResponseRecord.objects.filter(pk=response.pk).update(request_id=name)
    assert names("req-041", "request") == ["req-041b7e2c", "req-041c"]
    for name, case in (("req-041c", "sea"), ("2-0a41b7e2", "a/b c")):
        result = search(parse_wanted(name))
        assert [(hit.kind, hit.name) for hit in result.hits] == [("request", name)]
        assert result.opens == reverse("response", args=[run.pk, 1, case])
    assert search(parse_wanted("req-041")).opens is None
    assert names("2-0a41b7e3", "request") == []


def test_answers_are_looked_through_only_where_that_is_wanted() -> None:
    build.finished_run(["blue", "Ultramarine", "blue"])
    assert hits("ultramarine") == []
    [hit] = search(parse_wanted("ultramarine", "answer")).hits
    assert hit.about == "Ultramarine"
    assert [count.kind for count in search(parse_wanted("ultramarine")).counts] == list(KINDS)


def test_an_address_of_this_board_opens_itself_and_no_other_does() -> None:
    for text, opens in (
        (f"{ORIGIN}/runs/7/?a=b#cases", "/runs/7/?a=b#cases"),
        (f"{ORIGIN}/nowhere/at/all", None),
        ("https://elsewhere.example/runs/7/", None),
        (f"{ORIGIN}.evil.example/runs/7/", None),
    ):
        assert search(parse_wanted(text), origin=ORIGIN).opens == opens


def test_a_run_of_two_buckets_shows_no_score() -> None:
    one, other = build.process(build.bucket("float32")), build.process(build.bucket("bfloat16"))
    mixed = build.run(repeats=1)
    build.decode(mixed, 1, ["blue", "blue", "red"], by=[one, one, other])
    whole = build.finished_run(["blue", "blue", "red"], by=one)
    about = {hit.name: hit.about for hit in search(parse_wanted("colours", "run")).hits}
    assert "66.7" in about[f"run {whole.pk}"]
    assert "points" not in about[f"run {mixed.pk}"]


@pytest.mark.parametrize(
    "text", few(["", " ", "\0", "%", "_", "\\", "'", "a' & !b", "'::", "9" * 40, "0", "run:", "é", "x" * 900], 5)
)
def test_whatever_is_typed_is_answered(text: str) -> None:
    build.finished_run(["blue"] * 3)
    for kind in ("", *KINDS, "answer"):
        search(parse_wanted(text, kind), origin=ORIGIN)


def test_wild_cards_of_the_database_are_plain_characters() -> None:
    build.run(labels={"share": "100%", "branch": "a_b"})
    assert names("100%", "label") == ["share=100%"]
    assert names("a_b", "label") == ["branch=a_b"]
    assert names("a%b", "label") == names("axb", "label") == []


def test_what_a_judge_is_asked_is_not_found_by_its_digest() -> None:
    asked = build.suite("asked", case_ids=["answer-1-0-1"])
    digests = [asked.digest, asked.cases.get().digest]
    assert all(hits(digest) for digest in digests)
    models.Suite.objects.filter(pk=asked.suite_id).update(judged_suite=build.suite().suite)
    assert [hits(asked.digest), [hit for hit in hits(digests[1]) if "answer" in hit[1]]] == [[], []]

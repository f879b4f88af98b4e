"""/fingerprints/."""

import pytest

from runs.models import FingerprintRecord
from tests import build
from tests.api.conftest import Api

pytestmark = pytest.mark.django_db


def test_fingerprints_are_listed_newest_first_and_shown_with_their_manifest(api: Api) -> None:
    build.finished_run(by=build.process(build.bucket("float32")))
    build.finished_run(by=build.process(build.bucket("bfloat16")))
    newest, oldest = api.get("/fingerprints/").json()["results"]
    assert (newest["label"], oldest["n_runs"]) == ("vLLM 0.32.0, CPU, bfloat16", 1)
    shown = api.get(f"/fingerprints/{newest['id']}/").json()
    assert shown["manifest"] == {"engine": {"dtype": "bfloat16"}, "versions": {"vllm": "0.32.0"}}
    assert [bucket["batch_class"] for bucket in shown["buckets"]] == ["alone"]


def test_fingerprints_are_paged(api: Api) -> None:
    for dtype in ("float32", "bfloat16", "float16"):
        build.bucket(dtype)
    first = api.get("/fingerprints/?page_size=2").json()
    second = api.get(first["next"]).json()
    assert [len(page["results"]) for page in (first, second)] == [2, 1]
    assert api.get(second["previous"]).json()["results"] == first["results"]


def test_a_fingerprint_that_is_not_there_is_not_found(api: Api) -> None:
    assert api.get("/fingerprints/999/").status_code == 404


def test_the_difference_of_two_fingerprints_is_field_by_field(api: Api) -> None:
    one, other = (build.bucket(dtype).fingerprint for dtype in ("float32", "bfloat16"))
    found = api.get(f"/fingerprints/{one.pk}/diff/{other.pk}/").json()
    assert (found["a"]["id"], found["b"]["digest"]) == (str(one.pk), other.digest)
    assert found["moved"] == [{"field": "engine.dtype", "a": "float32", "b": "bfloat16"}]
    assert (found["n_equal"], found["n_unknown"]) == (1, 0)
    assert found["url"].endswith(f"/fingerprints/{one.pk}/diff/{other.pk}/")
    back = api.get(f"/fingerprints/{other.pk}/diff/{one.pk}/").json()
    assert back["moved"] == [{"field": "engine.dtype", "a": "bfloat16", "b": "float32"}]


def test_what_one_side_alone_knows_has_moved_and_is_null_on_the_other(api: Api) -> None:
    one, other = (build.bucket(dtype).fingerprint for dtype in ("float32", "bfloat16"))
    FingerprintRecord.objects.filter(pk=other.pk).update(
        manifest={"engine": {"dtype": "float32", "quantization": None}}
    )
    found = api.get(f"/fingerprints/{one.pk}/diff/{other.pk}/").json()
    assert found["moved"] == [{"field": "versions.vllm", "a": "0.32.0", "b": None}]
    assert (found["n_equal"], found["n_unknown"]) == (1, 1)


def test_two_builds_of_one_version_differ_in_their_code(api: Api) -> None:
    shipped, patched = (build.bucket(dtype).fingerprint_id for dtype in ("float32", "bfloat16"))
    for key, code in ((shipped, "1" * 64), (patched, "2" * 64)):
        manifest = {"engine": {"dtype": "float32"}, "versions": {"vllm": "0.32.0", "vllm_code": code}}
        FingerprintRecord.objects.filter(pk=key).update(manifest=manifest)
    found = api.get(f"/fingerprints/{shipped}/diff/{patched}/").json()
    assert found["moved"] == [{"field": "versions.vllm_code", "a": "1" * 64, "b": "2" * 64}]


def test_a_difference_with_one_that_is_not_there_is_not_found(api: Api) -> None:
    one = build.bucket().fingerprint_id
    for path in (f"/fingerprints/{one}/diff/999/", f"/fingerprints/999/diff/{one}/"):
        assert api.get(path).status_code == 404
    assert api.get(f"/fingerprints/{one}/diff/{one}/?page_size=2").status_code == 400

"""/fingerprints/."""

import pytest

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

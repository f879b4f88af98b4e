"""The fingerprint pages: by endpoint and date, one in full, and what moved between two."""

import json
import re
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evalboard.core.profile import identify_manifest
from frontend.endpoints import fingerprint_views as views
from frontend.endpoints import timeline
from runs.fingerprints import timelines
from runs.models import BucketRecord, EndpointRecord, EngineProcess, FingerprintRecord, RepeatRecord, RunRecord
from tests import build, outcomes
from tests.frontend.stage import HOSTILE

pytestmark = pytest.mark.django_db
MONDAY = datetime(2026, 11, 16, 9, tzinfo=UTC)


def bucket(dtype: str = "float32", *, vllm: str = "0.31.2", code: str = "", **env: str) -> BucketRecord:
    versions = {"vllm": vllm, "cuda": None} | ({"vllm_code": code} if code else {})
    manifest = outcomes.manifest(dtype=dtype) | {"versions": versions, "env": env}
    identity = identify_manifest(manifest)
    row, _ = FingerprintRecord.objects.get_or_create(
        digest=identity.digest, defaults={"label": identity.label, "manifest": identity.manifest}
    )
    model = build.bucket().model
    return BucketRecord.objects.get_or_create(model=model, fingerprint=row, batch_class="alone")[0]


def served(day: float, by: BucketRecord, **changes: Any) -> RunRecord:
    process = build.process(by)
    run = build.finished_run(["blue", "blue", "red"], by=process, **changes)
    begun = MONDAY + timedelta(days=day)
    EngineProcess.objects.filter(pk=process.pk).update(started_at=begun)
    RunRecord.objects.filter(pk=run.pk).update(started_at=begun)
    RepeatRecord.objects.filter(run=run).update(finished_at=begun + timedelta(hours=1))
    build.rotated(RunRecord.objects.get(pk=run.pk), begun)
    return run


def words(client: Client, path: str) -> str:
    """What a page says, without its elements."""
    answer = client.get(path)
    assert answer.status_code == 200, path
    parted = re.sub(r"</(dt|dd|td|th|h2|h3)>", " ", answer.content.decode())
    return " ".join(unescape(re.sub(r"<[^>]*>", "", parted)).split())


@pytest.fixture
def monday_and_wednesday() -> tuple[BucketRecord, BucketRecord, RunRecord]:
    one, other = bucket(), bucket("bfloat16", vllm="0.32.0")
    served(0, one)
    return one, other, served(2, other)


def test_the_list_shows_each_endpoints_fingerprints_by_date_and_names_the_rotation(
    viewer: Client, monday_and_wednesday: tuple[BucketRecord, BucketRecord, RunRecord]
) -> None:
    one, other, run = monday_and_wednesday
    page = words(viewer, "/fingerprints/")
    assert f"The last rotation was on local, pinned, with run {run.pk}." in page
    assert "What moved: vLLM 0.31.2 → 0.32.0, dtype float32 → bfloat16." in page
    assert "2026-11-16 09:00 UTC 2026-11-16 10:00 UTC 1" in page
    assert f"2026-11-18 09:00 UTC, pinned: backend A → backend B with run {run.pk}." in page
    html = viewer.get("/fingerprints/").content.decode()
    assert reverse("fingerprint_diff", args=[one.fingerprint_id, other.fingerprint_id]) in html
    assert f"/runs/?bucket={one.pk}" in html


@pytest.mark.nightly
def test_without_a_rotation_the_list_says_so(viewer: Client) -> None:
    served(0, bucket())
    served(1, bucket())
    page = words(viewer, "/fingerprints/")
    assert "No fingerprint has rotated." in page
    assert "UTC, pinned: fp" not in page


def test_an_empty_list_names_a_next_step(viewer: Client) -> None:
    page = viewer.get("/fingerprints/").content.decode()
    assert 'class="empty"' in page
    assert "evalboard run" in page
    assert "“<bdi>nowhere</bdi>” has no answered run" in viewer.get("/fingerprints/?endpoint=nowhere").content.decode()


def test_two_that_are_chosen_lead_to_their_difference(viewer: Client) -> None:
    one, other = bucket().fingerprint_id, bucket("float16").fingerprint_id
    answer = viewer.get(f"/fingerprints/?baseline={one}&candidate={other}")
    assert (answer.status_code, answer["Location"]) == (302, f"/fingerprints/{one}/diff/{other}/")
    assert viewer.get(f"/fingerprints/?baseline=x&candidate={other}").status_code == 200


def test_the_form_offers_the_two_sides_of_the_newest_rotation(
    viewer: Client, monday_and_wednesday: tuple[BucketRecord, BucketRecord, RunRecord]
) -> None:
    one, other, _ = monday_and_wednesday
    bucket("float16")  # newer, but it has served nothing
    page = viewer.get("/fingerprints/").content.decode()
    chosen = [int(found) for found in re.findall(r'<option value="(\d+)" selected', page)]
    assert chosen == [one.fingerprint_id, other.fingerprint_id]


@pytest.mark.nightly
def test_many_fingerprints_are_cut_and_the_endpoints_own_page_has_the_rest(
    viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "FINGERPRINTS_SHOWN", 2)
    monkeypatch.setattr(views, "FINGERPRINTS_PER_PAGE", 3)
    for day in range(5):
        served(day, bucket(vllm=f"0.3{day}.0"))
    lane = '<td data-head="First seen">'
    page = viewer.get("/fingerprints/").content.decode()
    assert page.count(lane) == 2
    assert '<a href="?endpoint=local">3 more</a>' in page
    first = viewer.get("/fingerprints/?endpoint=local").content.decode()
    assert first.count(lane) == 3
    assert "?endpoint=local&amp;offset=3" in first
    assert viewer.get("/fingerprints/?endpoint=local&offset=3").content.decode().count(lane) == 2
    assert 'class="empty"' in viewer.get("/fingerprints/?endpoint=local&offset=99").content.decode()


def test_a_fingerprints_page_has_its_manifest_by_part_and_what_it_served(
    viewer: Client, monday_and_wednesday: tuple[BucketRecord, BucketRecord, RunRecord]
) -> None:
    _, other, run = monday_and_wednesday
    page = words(viewer, f"/fingerprints/{other.fingerprint_id}/")
    assert "It served 1 run, from 2026-11-18 09:00 UTC to 2026-11-18 10:00 UTC." in page
    assert re.search(r"Versions vLLM 0\.32\.0 CUDA unknown Hardware hardware cpu .* Engine dtype bfloat16", page)
    assert "vLLM 0.31.2 → 0.32.0, dtype float32 → bfloat16" in page
    assert re.search(rf"Runs newest first .* run {run.pk} ", page)
    assert "first here 1 2026-11-18 09:00" in page


def test_a_fingerprint_that_served_nothing_says_so(viewer: Client) -> None:
    assert "It has served no run yet." in words(viewer, f"/fingerprints/{bucket().fingerprint_id}/")


def test_the_difference_names_what_moved_and_folds_what_did_not(
    viewer: Client, monday_and_wednesday: tuple[BucketRecord, BucketRecord, RunRecord]
) -> None:
    one, other, _ = monday_and_wednesday
    address = reverse("fingerprint_diff", args=[one.fingerprint_id, other.fingerprint_id])
    page = words(viewer, address)
    assert "vLLM 0.31.2 → 0.32.0, dtype float32 → bfloat16." in page
    assert "2 moved, 3 fields are equal, 2 unknown on both sides." in page
    assert "vLLM versions.vllm 0.31.2 0.32.0" in page
    assert "2 fields are unknown on both sides, which does not count as equal" in page
    assert "2026-11-16 09:00 UTC to 2026-11-16 10:00 UTC" in page
    html = viewer.get(address).content.decode()
    assert html.count('<tr class="differs">') == 2
    assert html.index('<tr class="differs">') < html.index("<summary>3 fields are equal")


def test_two_builds_of_one_version_differ_in_their_code(viewer: Client) -> None:
    one, other = (bucket(code=digest * 64).fingerprint_id for digest in "12")
    page = words(viewer, f"/fingerprints/{one}/diff/{other}/")
    assert "vLLM code 11111111 → 22222222." in page
    assert "vLLM code versions.vllm_code 11111111 22222222" in page
    assert "vLLM code 11111111" in words(viewer, f"/fingerprints/{one}/")


def test_a_fingerprint_against_itself_is_one(viewer: Client) -> None:
    one = bucket().fingerprint_id
    assert "Both are the same fingerprint." in words(viewer, f"/fingerprints/{one}/diff/{one}/")


@pytest.mark.parametrize("path", ["/fingerprints/999/", "/fingerprints/999/diff/1/", f"/fingerprints/{10**30}/"])
def test_what_is_not_there_is_not_found(viewer: Client, path: str) -> None:
    assert viewer.get(path).status_code == 404


def test_what_an_engine_says_is_escaped(viewer: Client) -> None:
    one, other = bucket(), bucket(VLLM_NAME=HOSTILE)
    served(0, one)
    served(1, other)
    pages = ["/fingerprints/", f"/fingerprints/{other.fingerprint_id}/"]
    pages.append(reverse("fingerprint_diff", args=[one.fingerprint_id, other.fingerprint_id]))
    for path in pages:
        html = viewer.get(path).content.decode()
        assert "&lt;script&gt;" in html
        assert "<script>alert" not in html
        assert "\u202e" not in html


@pytest.mark.nightly
def test_a_run_and_a_worker_lead_to_their_fingerprint(viewer: Client) -> None:
    run = served(0, bucket())
    assert run.bucket is not None
    address = f'href="/fingerprints/{run.bucket.fingerprint_id}/"'
    assert viewer.get(f"/runs/{run.pk}/").content.decode().count(address) == 2
    assert address in viewer.get("/workers/").content.decode()


@pytest.mark.nightly
def test_a_long_history_costs_no_more_queries_and_reads_no_response(viewer: Client) -> None:
    def asked() -> list[str]:
        with CaptureQueriesContext(connection) as queries:
            for path in (f"/fingerprints/{first}/", "/fingerprints/", f"/fingerprints/{first}/diff/{second}/"):
                assert viewer.get(path).status_code == 200
        return [query["sql"] for query in queries]

    first, second = (bucket(dtype).fingerprint_id for dtype in ("float32", "bfloat16"))
    for day in range(2):
        served(day, bucket(("float32", "bfloat16")[day % 2]))
    few = asked()
    for day in range(2, 24):
        served(day, bucket(("float32", "bfloat16")[day % 2]))
    many = asked()
    assert len(many) <= len(few) <= 40
    assert not [sql for sql in many if "runs_response" in sql]


@pytest.mark.nightly
def test_lanes_lie_on_the_endpoints_own_stretch_of_time() -> None:
    one, other = bucket(), bucket("bfloat16")
    served(0, one)
    served(4, other)
    [line] = timelines(turns=5)
    drawn = timeline.lanes(line)
    (bars, marks), layout = drawn.figure["data"], drawn.figure["layout"]
    low, high = layout["xaxis"]["range"]
    assert (low[:10], high[:10]) == ("2026-11-16", "2026-11-20")
    assert low < bars["x"][0] < bars["x"][-2] < high
    names = {words["y"]: words["text"] for words in layout["annotations"]}
    assert [names[place] for place in (1, 0)] == [row.fingerprint.title for row in drawn.rows], "the newest on top"
    assert [bars["x"][1] < shape["x0"] <= bars["x"][-2] for shape in layout["shapes"]] == [True]
    assert marks["text"][-1].endswith("From 2026-11-20 09:00 to 2026-11-20 10:00 UTC, took over 1 time")
    assert marks["customdata"][0] == f"/fingerprints/{one.fingerprint_id}/"


@pytest.mark.nightly
def test_endpoints_that_stand_together_lie_on_one_stretch_of_time_and_those_of_logs_are_folded(viewer: Client) -> None:
    served(0, bucket())
    served(8, bucket("bfloat16"), on=build.endpoint("later"))
    served(-400, bucket("float16"), on=build.endpoint("logged"))
    EndpointRecord.objects.filter(slug="logged").update(engine=EndpointRecord.Engine.IMPORTED)
    lines = {line.endpoint: line for line in timelines(turns=5)}
    assert [line.is_imported for line in lines.values()] == [False, False, True]
    stretch = timeline.stretch_of([lines["local"], lines["later"]])
    page = viewer.get("/fingerprints/").content.decode()
    own, _, folded = page.partition("1 endpoint known from logs")
    ranges = [timeline.lanes(lines[slug], stretch).figure["layout"]["xaxis"]["range"] for slug in ("local", "later")]
    assert own.count(f'"range": {json.dumps(ranges[0])}') == 2
    assert ranges[0] == ranges[1]
    assert "logged</bdi>" in folded
    assert "logged</bdi>" not in own


def test_one_instant_is_drawn_as_a_mark_that_can_be_seen() -> None:
    served(0, bucket())
    RepeatRecord.objects.update(finished_at=None)
    figure = timeline.lanes(timelines(turns=5)[0]).figure
    low, high = figure["layout"]["xaxis"]["range"]
    assert low < figure["data"][1]["x"][0] < high

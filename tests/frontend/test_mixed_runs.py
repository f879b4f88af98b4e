"""A run that several buckets served is warned about wherever its score would stand; a pooled one says so."""

import json
import re
from html import unescape

import pytest

from evalboard.compared.report import join_names
from evalboard.contract.run import RunRow
from evalboard.wording.manifest import name_backend
from evalboard.wording.results import describe_end
from runs.models import BucketRecord, RunRecord
from runs.release import create_release
from tests import build
from tests.casts import cast
from tests.nightly import nightly

pytestmark = pytest.mark.django_db


@cast
def mixed() -> RunRecord:
    """Of three cases the first was served by another bucket than the others, in both repeats."""
    one, other = build.process(build.bucket("float32")), build.process(build.bucket("bfloat16"))
    run = build.run(repeats=2)
    for repeat in (1, 2):
        build.decode(run, repeat, ["blue", "red", "blue"], by=[other, one, one])
    run.refresh_from_db()
    assert run.status == "finished"
    return run


def part_of(page: str, run: RunRecord) -> str:
    """The rows of tables that name the run."""
    rows = re.findall(r"<tr>.*?</tr>", page, re.S)
    return "".join(row for row in rows if f'href="/runs/{run.pk}/"' in row)


@pytest.mark.parametrize("path", ["/runs/", *nightly(["/suites/", "/suites/colours/", "/compare/"])])
def test_lists_warn_where_the_score_would_stand(mixed, viewer, path):
    build.finished_run(["blue", "blue", "red"])  # it takes two to compare
    if path == "/suites/":
        RunRecord.objects.exclude(pk=mixed.pk).delete()
    rows = part_of(unescape(viewer.get(path).content.decode()), mixed)
    assert "2 buckets" in rows
    assert 'aria-label="warning"' in rows
    assert not re.search(r"(?<!pooled )66\.7", rows), "the score over all cases is of no bucket"
    if path in ("/runs/", "/suites/"):
        assert "50.0 / 100.0" in rows or "100.0 / 50.0" in rows
        assert '<span class="under keep">pooled 66.7</span>' in rows


def test_the_suite_scores_it_by_bucket_and_gives_no_whole(mixed, viewer):
    rows = part_of(unescape(viewer.get("/suites/colours/").content.decode()), mixed)
    assert rows.count("2 buckets answered this run") >= 2
    assert "100.0" in rows
    assert "50.0" in rows


@pytest.mark.nightly
def test_its_own_page_and_the_chooser_say_so(mixed, viewer):
    page = unescape(viewer.get(f"/runs/{mixed.pk}/").content.decode())
    assert "2 buckets answered this run. Each is scored separately, and no verdict reads a pooled score." in page
    assert "Judge as a release" not in page
    build.finished_run(["blue", "blue", "red"])
    chooser = unescape(viewer.get("/compare/").content.decode())
    assert re.search(rf'<option value="{mixed.pk}"[^>]*>[^<]*2 buckets, no score as a whole', chooser)


@pytest.mark.nightly
def test_a_comparison_with_it_is_not_comparable(mixed, viewer):
    other = build.finished_run(["blue", "blue", "red"])
    page = unescape(viewer.get(f"/compare/{mixed.pk}/{other.pk}/").content.decode())
    assert "Not comparable as one change." in page
    assert re.search(r"2 buckets|more than one bucket|several buckets", page)


@pytest.mark.nightly
def test_it_cannot_be_set_as_a_baseline(mixed, client_of):
    manager = client_of("release manager")
    assert "Set as baseline</h2>" not in manager.get(f"/runs/{mixed.pk}/").content.decode()
    answer = manager.post("/suites/colours/baselines/", {"run": mixed.pk, "reason": "Why not."})
    assert answer.status_code == 422
    assert "2 buckets served run" in unescape(answer.content.decode())


def test_the_api_warns_in_every_shape(mixed, client_of):
    client = client_of("viewer")
    code = [{"code": "several_buckets"}]

    def codes(found):
        return [{"code": warning["code"]} for warning in found["warnings"] if warning["code"] == "several_buckets"]

    (row,) = client.get("/api/v1/runs/").json()["results"]
    assert (codes(row), row["range"], round(row["pooled"], 3)) == (code, None, 66.667)
    assert sorted(row["bucket_scores"]) == [50.0, 100.0]
    detail = client.get(f"/api/v1/runs/{mixed.pk}/").json()
    assert (codes(detail), detail["range"]) == (code, None)
    assert [detail[name] for name in ("bucket_scores", "pooled")] == [row[name] for name in ("bucket_scores", "pooled")]
    history = client.get("/api/v1/suites/colours/history/").json()["results"]
    assert [codes(line) for line in history] == [code, code]
    assert {line["range"] for line in history} == {None}
    assert sorted(line["repeats"] for line in history) == [[50.0, 50.0], [100.0, 100.0]]


@pytest.mark.nightly
def test_parts_of_repeats_weigh_what_they_hold(db, viewer):
    """One bucket got one of two right, and one of one: two thirds, and not the mean of 50 and 100."""
    one, other = build.process(build.bucket("float32")), build.process(build.bucket("bfloat16"))
    run = build.run(repeats=2)
    build.decode(run, 1, ["blue", "red", "blue"], by=[other, one, one])
    build.decode(run, 2, ["blue", "red", "blue"], by=[other, other, one])
    baseline = build.finished_run(["blue", "blue", "red"])
    release = create_release(gates=[{"suite": "colours", "candidate": run.pk, "baseline": baseline.pk}])
    for path in (f"/runs/{run.pk}/", f"/releases/{release.pk}/", f"/compare/{baseline.pk}/{run.pk}/"):
        page = unescape(viewer.get(path).content.decode()).replace("\xa0", " ")
        assert "66.7 without the 50 % that" in page, path
        assert "75.0" not in page, path


@pytest.mark.nightly
def test_a_mixed_comparison_lists_cases_with_a_tab_for_each_pair_of_backends(mixed, viewer):
    other = build.finished_run(
        ("red", "blue", "blue"), ("red", "blue", "blue"), by=build.process(build.bucket("float32"))
    )
    page = unescape(viewer.get(f"/compare/{other.pk}/{mixed.pk}/").content.decode())
    assert '<table class="changed' in page
    assert 'class="divergences"' not in page, "cases, not pairs of responses"
    tabs = re.search(r'aria-label="Backends">(.*?)</p>', page, re.S)[1]
    links = {" ".join(name.split()): url for url, name in re.findall(r'<a href="([^"]*)#cases"[^>]*>([^<]*)</a>', tabs)}
    cases = {name: re.findall(r"<bdi>(sky|sea|a/b c)</bdi></a>", cases_of(viewer, url)) for name, url in links.items()}
    assert len(cases) == 3
    assert sorted(cases.pop("all backends")) == ["sea", "sky"]
    assert sorted(cases.values()) == [["sea"], ["sky"]], "each backend's own"


def cases_of(client, url: str) -> str:
    return unescape(client.get(url).content.decode()).replace("<wbr>", "")


def test_a_backend_has_one_name_on_pages_in_rest_and_on_the_command_line(mixed, viewer, client_of):
    """Also when another backend comes later and gives most answers, and where the order of a list is another."""
    api = client_of("viewer")

    def named(run: RunRecord) -> dict[str, str]:
        rest = api.get(f"/api/v1/runs/{run.pk}/").json()
        names = {bucket["id"]: bucket["backend"] for bucket in rest["buckets"]}
        (row,) = [each for each in api.get("/api/v1/runs/").json()["results"] if each["id"] == str(run.pk)]
        assert sorted(row["backends"]) == sorted(names.values())
        listed = part_of(viewer.get("/runs/").content.decode(), run)
        page = viewer.get(f"/runs/{run.pk}/").content.decode()
        said = describe_end(RunRow.model_validate_json(json.dumps(row)))
        for name in names.values():
            assert f"<bdi>{name}</bdi>" in listed
            assert f">{name}</a></b>" in page
            assert re.search(rf"\b{name} \d", said), said
        return names

    first = named(mixed)
    assert sorted(first.values()) == ["A", "B"]
    known = [bucket.pk for bucket in BucketRecord.objects.order_by("pk")]
    processes = [build.process(build.bucket(dtype)) for dtype in ("float16", "bfloat16", "float32")]
    run = build.run(repeats=2)
    for repeat in (1, 2):
        build.decode(run, repeat, ["blue", "red", "blue"], by=processes)
    later = named(run)
    assert {pk: later[str(pk)] for pk in known} == {pk: first[str(pk)] for pk in known}
    assert sorted(later.values()) == ["A", "B", "C"]
    compared = api.get(f"/api/v1/compare/?baseline={run.pk}&candidate={mixed.pk}").json()["sides"]
    for side in compared.values():
        assert all(each["backend"] == later[each["id"]] for each in side["buckets"])
    assert named(mixed) == first


@pytest.mark.nightly
def test_pages_call_a_stack_by_its_name(mixed, viewer):
    baseline = build.finished_run(["blue", "blue", "red"])
    release = create_release(gates=[{"suite": "colours", "candidate": mixed.pk, "baseline": baseline.pk}])
    one, other = (bucket.fingerprint_id for bucket in BucketRecord.objects.order_by("pk")[:2])
    paths = ["/", f"/runs/{mixed.pk}/", f"/compare/{baseline.pk}/{mixed.pk}/", f"/releases/{release.pk}/", "/workers/"]
    paths += ["/fingerprints/", f"/fingerprints/{one}/", f"/fingerprints/{one}/diff/{other}/"]
    pages = {path: words_of(viewer, path) for path in paths}
    assert {path: known for path, page in pages.items() if (known := re.findall(r"\bfp [0-9a-f]{4}\b", page))} == {}
    assert "Backend B answered 33 %." in pages["/"]
    assert "backend B" in pages[f"/releases/{release.pk}/"]


def words_of(client, path: str) -> str:
    return unescape(" ".join(re.sub(r"<[^>]*>", " ", client.get(path).content.decode()).split()))


@pytest.mark.parametrize(
    ("source", "others", "name"),
    [
        ({"backend": "pool-a", "system_fingerprint": "fp_1"}, (), "pool-a"),
        ({"system_fingerprint": "fp_1"}, ("A",), "fp_1"),
        ({"backend": "pool-a"}, ("pool-a",), "pool-a (2)"),  # another model there
        ({}, ("A", "pool-a", "C"), "B"),
        (None, (), "A"),
    ],
)
def test_a_backend_is_called_by_its_servers_name_else_by_the_first_free_letter(source, others, name):
    assert name_backend({} if source is None else {"source": source}, others) == name


def test_backends_of_another_endpoint_that_has_the_name_already_say_whose_they_are():
    assert join_names({1: "A", 2: "B"}, {1: "B", 3: "A", 4: "pool-a"}, "small") == {
        1: "A",
        2: "B",
        3: "small A",
        4: "pool-a",
    }

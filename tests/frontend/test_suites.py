"""A suite's page: how its runs moved and against what, and how a person sets the baseline."""

import hashlib
import json
import re
from html import unescape

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evalboard.core.stats import resolution_points
from evalboard.core.trace import unpack_scores
from frontend.suites import baselines, history
from runs.access.roles import ROLES
from runs.catalogue import store_default_policies
from runs.models import BaselineRecord, RepeatScore, RunRecord
from runs.release import create_release
from runs.suites import reference_suite, suite_report
from runs.suites.read_standing import suite_standing
from runs.uploads import read_next_part
from runs.uploads.uploads import close_upload, open_upload, store_part
from tests.casts import cast
from tests.frontend import history_stage
from tests.frontend.history_stage import SLUG
from tests.nightly import nightly

pytestmark = pytest.mark.django_db
PAGE = f"/suites/{SLUG}/"


def html_of(response) -> str:
    assert response.status_code == 200, response.content.decode()[:400]
    return unescape(response.content.decode())


def words_of(response) -> str:
    text = re.sub(r"</(td|th|h2|dt|dd|li|span)>", " ", html_of(response).split('id="main"')[1])
    return " ".join(re.sub(r"<[^>]*>", "", text).split())


@cast
def made():
    return history_stage.make(n_old=3)


@pytest.fixture
def manager(client_of):
    return client_of("release manager")


def test_the_finding_says_where_the_newest_candidate_stands(made, viewer):
    words = words_of(viewer.get(PAGE))
    points = {run: _mean(run) for run in (made.candidate.pk, made.current.run_id)}
    ours, theirs = (f"{points[run]:.1f}" for run in (made.current.run_id, made.candidate.pk))
    assert (
        f"Steady since the rotation of 10-16; the newest candidate scored {theirs}, its baseline run {ours}." in words
    )


def _mean(run_id: int) -> float:
    return float(np.mean(RepeatScore.objects.filter(repeat__run=run_id).values_list("points", flat=True)))


@pytest.mark.nightly
def test_what_five_repeats_resolve_is_what_the_core_says_of_the_bucket(made, viewer):
    bucket = made.current.run.bucket_id
    packed = RepeatScore.objects.filter(repeat__run__bucket=bucket).order_by("-repeat__run_id", "repeat__index")[:20]
    scores = np.column_stack([unpack_scores(bytes(row.scores)) for row in packed])
    here = resolution_points(scores, repeats=5, alpha=0.03)
    standing = suite_standing(suite_report(SLUG))
    assert standing.noise[bucket].n_repeats == 20
    assert standing.noise[bucket].resolution_points == pytest.approx(here)
    newest = standing.noise[made.candidate.bucket_id]
    resolved = f"With 5 repeats a side, a mixed bucket detects changes of {newest.resolution_points:.1f} points on"
    assert resolved in words_of(viewer.get(PAGE))


def test_bands_part_at_the_rotation_and_only_the_expired_one_is_hatched(made):
    report = suite_report(SLUG)
    old, current = baselines.bands(report.buckets, suite_standing(report))
    assert (old.baseline.run_id, old.is_expired, old.begin) == (made.old.run_id, True, None)
    assert (current.baseline.run_id, current.is_expired, current.end) == (made.current.run_id, False, None)
    assert old.end == current.begin
    figure = history.figure(report, suite_standing(report))
    json.dumps(figure, allow_nan=False)
    zones = [trace for trace in figure["data"] if trace.get("fill") == "toself"]
    assert [zone["meta"]["role"] for zone in zones] == ["expired", "band"]
    assert max(zones[0]["x"]) == min(zones[1]["x"])


def test_no_bar_and_no_band_leads_across_a_rotation(made):
    report = suite_report(SLUG)
    figure = history.figure(report, suite_standing(report))
    router, fixed = (shape["x0"] for shape in figure["layout"]["shapes"])
    served_before = {made.runs[0].bucket_id}
    assert router < fixed
    for trace in figure["data"]:
        if trace["meta"]["role"] == "bar":
            assert trace["x"][0::3] == trace["x"][1::3], "each bar stands on one date"
    crosses = [trace for trace in figure["data"] if trace["meta"].get("symbol") == "x-thin"]
    assert all(max(filter(None, trace["x"])) < router for trace in crosses)
    assert len(served_before) == 1
    assert len(crosses) == 2


def test_the_table_has_the_numbers_of_the_chart(made, viewer):
    page = html_of(viewer.get(PAGE))
    figure = json.loads(re.search(r'<script id="history" type="application/json">(.*?)</script>', page, re.S).group(1))
    drawn: dict[str, list[str]] = {}
    for trace in figure["data"]:
        if trace["meta"]["role"] == "marks":
            for address, value in zip(trace["customdata"], trace["y"], strict=True):
                drawn.setdefault(address, []).append(f"{value:.1f}")
    table = page.split("Score of each repeat by run and bucket")[1].split("</table>")[0]
    told = {
        found.group(1): re.findall(r"\d+\.\d", found.group(2))
        for found in re.finditer(r'<th scope="row"><a href="([^"]+)">.*?<td>([\d., ]+)</td>\s*</tr>', table, re.S)
    }
    assert told == drawn
    assert len(told) == len(made.runs)


@pytest.mark.nightly
def test_the_rows_name_the_baseline_what_expired_and_the_noise_floor(made, viewer):
    words = words_of(viewer.get(PAGE))
    assert f"current baseline: run {made.current.run_id}" in words
    assert re.search(r"acme-7b-ft-0214 .+? · mixed expired 3 runs, before the rotation, noise floor \d\.\d", words)
    table = words[words.index("Runs of this suite by bucket") :]
    assert table.index("acme-7b-ft-0412") < table.index("acme-7b-ft-0214")


def test_a_run_is_shaded_only_by_the_baseline_of_its_line_and_profile_that_was_served_alike(made, viewer):
    report = suite_report(SLUG)
    zones = baselines.bands(report.buckets, suite_standing(report))
    held = {
        point.run_id: band.baseline.run_id
        for bucket in report.buckets
        for point in bucket.runs
        if (band := baselines.find_band(zones, point, bucket)) is not None
    }
    assert held[made.candidate.pk] == made.current.run_id
    assert held[made.runs[0].pk] == made.old.run_id
    unheld = {run.pk for run in made.runs if run.profile.slug == "fixed"}
    assert unheld.isdisjoint(held)


def test_the_history_keeps_who_set_each_baseline_when_why_and_what_made_it_expire(made, viewer):
    words = words_of(viewer.get(PAGE)).split("one per model line")[1]
    assert "by mira" in words
    assert "Released in March." in words
    assert re.search(rf"expired 2026-10-16 \d\d:\d\d UTC with (?!fp ).+? → .+?, run {made.runs[3].pk}", words)


@pytest.mark.nightly
def test_the_release_column_says_who_judged_a_run(made, viewer, django_user_model):
    store_default_policies()
    user = django_user_model.objects.get(username="mira")
    gate = {"suite": SLUG, "candidate": made.candidate.pk, "baseline": "current", "tier": "critical"}
    release = create_release(gates=[gate], policy="paired", user=user)
    row = re.compile(r"<tr>\s*<th scope=\"row\" class=\"keep\">\s*<input[^>]*value=\"(\d+)\".*?</tr>", re.S)
    rows = {int(found.group(1)): found.group(0) for found in row.finditer(html_of(viewer.get(PAGE)))}
    assert f'<a href="/releases/{release.pk}/">' in rows[made.candidate.pk]
    assert 'class="verdict' in rows[made.candidate.pk]
    assert f'baseline of <a href="/releases/{release.pk}/">' in rows[made.current.run_id]
    assert "none</span>" in rows[made.runs[0].pk]
    run = words_of(viewer.get(f"/runs/{made.candidate.pk}/"))
    assert f"Judged in release {release.pk}" in run


def test_an_expired_baseline_is_the_claim_and_what_to_do_stands_beside_it(settings, client_of):
    expired, noticed = history_stage.rotated()
    page = client_of("admin").get(PAGE)
    words = words_of(page)
    assert "The baseline of fast expired with the rotation of 09-06." in words
    assert "Run the baseline again" in words
    assert "Run its reference set first" in words
    assert f"run {noticed.pk} ran on the current stack" in words
    assert f'href="?run={noticed.pk}#set-baseline"' in html_of(page)
    seen = words_of(client_of("viewer").get(PAGE))
    assert "expired with the rotation" in seen
    assert "Run the baseline again" not in seen
    assert "accept it as the baseline" not in seen
    run = words_of(client_of("viewer").get(f"/runs/{expired.run_id}/"))
    assert "Expired 2026-09-06" in run


@pytest.mark.nightly
@pytest.mark.parametrize(("what", "suite", "n_cases"), [("", SLUG, 120), ("reference", f"{SLUG}-reference", 20)])
def test_the_baseline_is_run_again_whole_or_on_its_reference_set(settings, engineer, what, suite, n_cases):
    expired, _ = history_stage.rotated()
    answer = engineer.post(f"{PAGE}baselines/{expired.pk}/again/", {"what": what})
    again = RunRecord.objects.latest("pk")
    assert answer.headers["Location"] == f"/runs/{again.pk}/"
    assert (again.suite_version.suite.slug, again.suite_version.n_cases) == (suite, n_cases)
    assert (again.endpoint, again.profile) == (expired.run.endpoint, expired.run.profile)
    assert again.repeats.count() == 3


def test_the_suite_of_a_reference_set_says_whose_it_is(settings, viewer):
    history_stage.suite(30)
    reference_suite(slug=SLUG)
    words = words_of(viewer.get(f"/suites/{SLUG}-reference/"))
    assert f"This suite is the reference set of {SLUG} v1" in words
    assert f"Its reference set runs as {SLUG}-reference" in words_of(viewer.get(PAGE))


@pytest.mark.nightly
def test_what_ran_on_todays_stack_is_accepted_and_the_one_before_stays(settings, manager):
    expired, noticed = history_stage.rotated()
    page = html_of(manager.get(f"{PAGE}?run={noticed.pk}"))
    assert f'<option value="{noticed.pk}" selected>' in page
    assert f'<option value="{expired.run_id}"' not in page, "what another stack served is not offered"
    answer = manager.post(f"{PAGE}baselines/", {"run": noticed.pk, "reason": "Held after the upgrade."}, follow=True)
    assert answer.redirect_chain == [(f"{PAGE}#baselines", 302)]
    words = words_of(answer)
    assert f"Run {noticed.pk} is the baseline now." in words
    assert "Held after the upgrade." in words
    assert "Released in March." in words
    assert BaselineRecord.objects.latest("pk").set_by.username == "release manager"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param({"reason": " "}, "This field is required.", id="no-reason"),
        pytest.param({"run": "none"}, "Enter a whole number.", id="no-run", marks=pytest.mark.nightly),
        pytest.param({"run": "999999"}, "There is no run 999999.", id="unknown-run", marks=pytest.mark.nightly),
        pytest.param({"run": "old"}, "another stack serves endpoint prod-router under", id="outdated"),
    ],
)
def test_a_baseline_that_is_refused_says_why_and_keeps_what_was_typed(settings, manager, change, said):
    expired, noticed = history_stage.rotated()
    asked = {"run": str(noticed.pk), "reason": "Typed with <care>."} | change
    asked["run"] = asked["run"].replace("old", str(expired.run_id))
    answer = manager.post(f"{PAGE}baselines/", asked)
    assert answer.status_code == 422
    page = unescape(answer.content.decode())
    assert said in page
    assert BaselineRecord.objects.count() == 1
    assert re.search(r'<details class="fold" open>\s*<summary>Set a baseline', page)
    if change.keys() != {"reason"}:
        assert "Typed with <care>." in page


POSTS = (
    (f"{PAGE}baselines/", {"run": "1", "reason": "Why."}, "sign"),
    (f"{PAGE}baselines/1/again/", {}, "run"),
    ("/settings/policies/new/", {"slug": "mine", "title": "Mine", "settings": "{}"}, "admin"),
)


@pytest.mark.parametrize("role", ["anonymous", *ROLES])
@pytest.mark.parametrize(("path", "body", "needed"), POSTS, ids=("set", "again", "policy"))
def test_who_may_post(settings, client_of, role, path, body, needed):
    history_stage.suite(3)
    answer = client_of(role).post(path, body)
    if role == "anonymous":
        assert answer.headers["Location"].startswith("/login/")
    elif needed in ROLES[role]:
        assert answer.status_code in (404, 422)
    else:
        assert answer.status_code == 403
    assert not BaselineRecord.objects.exists()
    assert not RunRecord.objects.exists()


@pytest.mark.parametrize("role", [*list(ROLES)[:2], *nightly(list(ROLES)[2:])])
def test_only_what_a_person_may_do_is_offered(made, client_of, role):
    client = client_of(role)
    suite, run = html_of(client.get(PAGE)), html_of(client.get(f"/runs/{made.candidate.pk}/"))
    assert ('id="set-baseline"' in suite) is ("sign" in ROLES[role])
    assert ("Set as baseline</h2>" in run) is ("sign" in ROLES[role])
    assert (f'href="/releases/new/?candidate={made.candidate.pk}"' in run) is ("run" in ROLES[role])


def test_the_current_baseline_is_not_offered_as_one_on_its_own_page(made, manager):
    page = html_of(manager.get(f"/runs/{made.current.run_id}/"))
    assert "Set as baseline</h2>" not in page
    assert "Baseline of" in page


@pytest.mark.nightly
def test_the_page_costs_no_more_queries_with_more_runs(settings, viewer):
    history_stage.rotated()
    by = RunRecord.objects.latest("pk").bucket
    viewer.get(PAGE)

    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert viewer.get(PAGE).status_code == 200
        return len(queries)

    few = cost()
    for day in range(6, 12):
        history_stage.run(day, by, score=81.0, repeats=2)
    viewer.get(PAGE)  # what it rests on has changed, and is computed once
    assert cost() == few


def test_the_list_says_how_far_a_suite_in_parts_is_and_what_was_wrong_with_it(viewer):
    def send(slug, lines):
        upload = open_upload(slug=slug)
        digest = hashlib.sha256(lines).hexdigest()
        store_part(upload_id=upload.pk, offset=0, lines=lines, sha256=digest)
        return upload

    valid = b'{"suite": {"scorer": {"kind": "exact"}}}\n{"id": "a", "prompt": "b", "target": "c"}\n'
    wrong = valid + b'{"id": "<i>", "prompt": 3, "target": "c", "colour": 1}\n'
    close_upload(upload_id=send("wrong", wrong).pk, n_bytes=len(wrong), sha256=hashlib.sha256(wrong).hexdigest())
    assert read_next_part()
    send("sent", valid)
    whole = send("whole", valid)
    close_upload(upload_id=whole.pk, n_bytes=len(valid), sha256=hashlib.sha256(valid).hexdigest())
    words = words_of(viewer.get("/suites/"))
    assert "of wrong failed, and nothing of it is stored. Correct the file and push it again." in words
    assert "line 3.colour is unknown" in words
    assert "The first 2 mistakes" in words
    size = f"{len(valid)} B"
    assert f"of sent: {size} are stored. To resume, push the file again: only the rest is sent." in words
    assert f"of whole: all {size} are stored and waiting to be read." in words
    assert read_next_part()
    assert f"of whole: 1 case is read, {size} of {size}" in words_of(viewer.get("/suites/"))


@pytest.mark.nightly
def test_a_bucket_of_the_key_focuses_the_page_on_it(made, viewer):
    bucket = made.candidate.bucket_id
    whole, alone = (viewer.get(f"{PAGE}{query}").content.decode() for query in ("", f"?bucket={bucket}"))
    assert f'href="?bucket={bucket}"' in whole
    assert f"run {made.current.run_id}</a></th>" in whole
    assert "all buckets</a>" in alone
    assert alone.count('class="bucket-link"') == whole.count('class="bucket-link"')
    rows = [page.split('id="by-bucket"')[1].split('id="baselines"')[0] for page in (whole, alone)]
    assert f"/runs/{made.candidate.pk}/" in rows[1]
    assert f"/runs/{made.old.run_id}/" in rows[0]
    assert f"/runs/{made.old.run_id}/" not in rows[1]
    assert viewer.get(f"{PAGE}?bucket=nonsense").status_code == 200


def test_it_says_which_cases_can_tell_nothing_new_and_names_the_first(made, viewer):
    said = words_of(viewer.get(PAGE)).partition("Points per case")[2]
    assert "one case 0.8 points" in said
    n = int(re.search(r"always right (\d+) cases of 120, [\d.]+ points: only a loss can show here: ", said)[1])
    assert 80 < n < 100
    assert f"tool-000, tool-001, tool-002, tool-003, tool-004 and {n - 5} more" in said
    assert re.search(r"never right \d+ cases of 120, [\d.]+ points: only a gain can show here", said)
    assert "same question twice none" in said
    address = re.search(r'href="([^"]+/cases/tool-000/)"', html_of(viewer.get(PAGE)))[1]
    assert ">tool-000<" in html_of(viewer.get(address))


def test_the_list_of_suites_is_drawn_anew_while_an_upload_is_read(made, engineer):
    assert "part=list" not in engineer.get("/suites/").content.decode()
    open_upload(slug="coming")
    page = engineer.get("/suites/").content.decode()
    assert 'hx-get="?part=list"' in page
    part = engineer.get("/suites/?part=list")
    assert part.headers["Cache-Control"] == "no-store"
    assert part.content.decode().lstrip().startswith('<div id="suite-list" hx-get')
    assert "<html" not in part.content.decode()

"""/suites/<slug>/badge.svg: what it says, who may see it, how long it is kept, and whose colours it has."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from frontend.badges import picture as badges
from runs.models import RunRecord
from runs.release import SuiteBadge, create_release
from tests import build, judged
from tests.frontend.test_css import TOKENS, linear_rgb
from tests.judged import N_CASES

pytestmark = pytest.mark.django_db
SVG = "{http://www.w3.org/2000/svg}"
BADGE = "/suites/colours/badge.svg"


def label(client: Client, path: str = BADGE, **headers: str) -> str:
    """What a screen reader reads; the picture must be whole XML."""
    answer = client.get(path, headers=headers)
    assert (answer.status_code, answer["Content-Type"]) == (200, "image/svg+xml; charset=utf-8")
    picture = ElementTree.fromstring(answer.content)  # noqa: S314  our own
    assert picture.findtext(f"{SVG}title") == picture.get("aria-label")
    words = [each.text for each in picture.iter(f"{SVG}text")]
    assert ": ".join(filter(None, words)) == picture.get("aria-label")
    return picture.get("aria-label", "")


@pytest.mark.nightly
def test_without_a_release_it_is_the_newest_runs_range(viewer: Client) -> None:
    build.suite()
    assert label(viewer) == "colours: no run"
    build.finished_run()
    assert label(viewer) == "colours: 33.3–66.7"
    build.finished_run(("blue", "blue", "blue"))
    assert label(viewer) == "colours: 100.0"
    newest = build.run()
    assert label(viewer) == "colours: queued"
    RunRecord.objects.filter(pk=newest.pk).update(status="failed")
    assert label(viewer) == "colours: failed"


def test_a_run_of_two_buckets_has_no_range(viewer: Client) -> None:
    run = build.run(repeats=1)
    first, second = build.process(build.bucket("float32")), build.process(build.bucket("bfloat16"))
    build.decode(run, 1, ("blue",) * 3, by=[first, first, second])
    assert label(viewer) == "colours: 2 buckets"


@pytest.mark.nightly
def test_with_releases_it_is_the_verdict_of_the_newest_on_this_very_suite(viewer: Client) -> None:
    judged.policy()
    shapes = judged.suite("shapes")
    by = build.process(build.bucket(weights=judged.WORSE))
    colours, ours, theirs = judged.run(), judged.run(by=by), judged.run(version=shapes)
    worse = judged.run(N_CASES // 2, by=by, version=shapes)
    gates = [
        {"suite": "colours", "candidate": ours.pk, "baseline": colours.pk, "tier": "critical"},
        {"suite": "shapes", "candidate": worse.pk, "baseline": theirs.pk, "tier": "advisory"},
    ]
    create_release(gates=gates, policy="lenient")
    assert (label(viewer), label(viewer, "/suites/shapes/badge.svg")) == ("colours: ship", "shapes: no-ship")
    create_release(gates=gates[:1], policy="strict")
    assert label(viewer) == "colours: inconclusive"


@pytest.mark.parametrize("role", ["viewer", "engineer", "release manager", "admin"])
def test_a_session_sees_it(client_of: Callable[[str], Client], role: str) -> None:
    build.suite()
    assert label(client_of(role)) == "colours: no run"


def test_a_token_sees_it_with_the_scope_read_alone() -> None:
    build.suite()
    person = build.user()
    assert label(Client(), Authorization=f"Bearer {build.token(person, 'read')}") == "colours: no run"
    for secret, status in ((build.token(person, "run"), 403), ("evb_nonsense", 401)):
        assert Client().get(BADGE, headers={"Authorization": f"Bearer {secret}"}).status_code == status
    gone = build.token(person, "read")
    person.is_active = False
    person.save()
    assert Client().get(BADGE, headers={"Authorization": f"Bearer {gone}"}).status_code == 401


def test_nobody_else_does_unless_badges_are_public(settings: Any) -> None:
    build.suite()
    answer = Client().get(BADGE)
    assert (answer.status_code, answer["Location"]) == (302, f"/login/?next={BADGE}")
    settings.PUBLIC_BADGES = True
    assert label(Client()) == "colours: no run"
    assert Client().post(BADGE).status_code == 405
    assert Client().get("/suites/colours/").status_code == 302, "the badge and nothing else"


def test_it_is_kept_for_a_minute_and_not_sent_again_while_it_says_the_same(viewer: Client, settings: Any) -> None:
    build.suite()
    first = viewer.get(BADGE)
    assert first["Cache-Control"] == "private, max-age=60"
    assert {"Authorization", "Cookie"} <= set(first["Vary"].split(", "))
    again = viewer.get(BADGE, headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
    build.finished_run()
    assert viewer.get(BADGE, headers={"If-None-Match": first["ETag"]}).status_code == 200
    settings.PUBLIC_BADGES = True
    assert Client().get(BADGE)["Cache-Control"] == "public, max-age=60"


def test_a_suite_that_is_not_there_has_none(viewer: Client) -> None:
    assert viewer.get("/suites/nothing/badge.svg").status_code == 404


@pytest.mark.parametrize(
    ("ink", "token"),
    [
        (badges.SUITE_INK, "text-2"),
        (badges.RUN_INK, "candidate"),
        (badges.OTHER_INK, "text-3"),
        *((ink, verdict.replace("_", "-")) for verdict, ink in badges.VERDICT_INKS.items()),
    ],
)
def test_its_colours_are_those_of_the_style_sheet(ink: str, token: str) -> None:
    linear = [min(max(part, 0.0), 1.0) for part in linear_rgb(TOKENS[token][0])]
    encoded = [12.92 * part if part <= 0.0031308 else 1.055 * part ** (1 / 2.4) - 0.055 for part in linear]
    assert ink == "#" + "".join(f"{round(255 * part):02x}" for part in encoded)


@pytest.mark.parametrize("verdict", list(badges.VERDICT_INKS))
def test_no_verdict_is_told_by_its_colour_alone(verdict: str) -> None:
    shown = badges.picture(SuiteBadge("colours", verdict, None))
    assert shown.glyph.startswith("<path ")
    assert shown.right.text in ("ship", "no-ship", "inconclusive", "not comparable")

"""Pages of people, sessions and comments: what admins and everybody do there, and what is refused."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.test import Client

from frontend.shell.markdown import render_markdown
from frontend.templatetags.comments import MAX_SHOWN
from runs.access import roles, use_token
from runs.comments import create_comment
from runs.models import CommentRecord
from tests import build
from tests.api.conftest import Api
from tests.frontend.stage import SLUG

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def with_key(settings: Any) -> None:
    settings.HAS_SECRET_KEY = True


def test_an_added_person_signs_in_by_the_link_that_is_shown_once(admin: Client) -> None:
    answer = admin.post("/settings/people/", {"name": "grace", "role": "engineer"})
    assert answer.status_code == 201
    link = re.search(r'data-copy="(http[^"]+)"', answer.content.decode())[1]
    assert "sesame" not in admin.get("/settings/people/").content.decode()
    assert Client().post("/signin/", dict(parse_qsl(urlsplit(link).query))).status_code == 302
    again = admin.post("/settings/people/", {"name": "grace", "role": "admin"})
    assert again.status_code == 422
    assert "is there already" in again.content.decode()


def test_a_role_applies_at_once_and_the_last_admin_stays(admin: Client, engineer: Client) -> None:
    assert engineer.get("/runs/new/").status_code == 200
    admin.post("/settings/people/engineer/role/", {"role": "viewer"})
    assert engineer.get("/runs/new/").status_code == 403
    for act, fields in (("role", {"role": "viewer"}), ("remove", {})):
        page = admin.post(f"/settings/people/admin/{act}/", fields, follow=True).content.decode()
        assert "admin is the only admin. Make another person admin first." in page
    admin.post("/settings/people/engineer/role/", {"role": "admin"})
    assert admin.post("/settings/people/admin/role/", {"role": "viewer"}, follow=True).status_code == 403


def test_a_removed_person_is_out_and_what_they_did_stays(admin: Client, engineer: Client) -> None:
    secret = build.token(build.user("eve", "engineer"), "read")
    admin.post("/settings/people/eve/remove/")
    assert use_token(secret=secret) is None
    admin.post("/settings/people/engineer/remove/")
    assert engineer.get("/").status_code == 302
    assert "2 removed" in admin.get("/settings/people/").content.decode()


def test_people_see_and_end_their_own_sessions_and_admins_anybodys(
    client_of: Callable[[str], Client], admin: Client
) -> None:
    first, second = client_of("engineer"), client_of("engineer")
    page = second.get("/settings/sessions/").content.decode()
    assert page.count("this browser") == 1
    ends = re.findall(r'action="(/settings/sessions/\w+/end/)"', page)
    assert len(ends) == 2
    other = client_of("viewer")
    assert other.post(ends[0]).status_code == 404
    own = re.search(r"/settings/sessions/\w+/end/", page.partition("this browser")[2])[0]
    second.post(next(end for end in ends if end != own))
    assert (first.get("/").status_code, second.get("/").status_code) == (302, 200)
    assert admin.post(own).status_code == 302
    assert second.get("/").status_code == 302


def test_a_comment_is_shown_where_it_belongs_and_withdrawn_by_its_author(
    stage: Any, engineer: Client, viewer: Client, client_of: Callable[[str], Client]
) -> None:
    run = stage.run_in("finished")
    for kind, name, page in (
        ("run", str(run.pk), f"/runs/{run.pk}/"),
        ("case", f"{SLUG}/case-002", f"/suites/{SLUG}/cases/case-002/"),
    ):
        made = engineer.post("/comments/", {"kind": kind, "name": name, "text": f"This {kind} is **odd**."})
        comment = CommentRecord.objects.latest("id")
        assert made["Location"] == f"{page}#comment-{comment.pk}"
        shown = viewer.get(page).content.decode()
        assert "<strong><bdi>odd</bdi></strong>" in shown
        assert "Write a comment" not in shown
        client_of("release manager").post(f"/comments/{comment.pk}/withdraw/")
        assert CommentRecord.objects.get(pk=comment.pk).text != ""
        engineer.post(f"/comments/{comment.pk}/withdraw/")
        after = viewer.get(page).content.decode()
        assert "odd" not in after.partition("Comments</h2>")[2]
        assert "Withdrawn" in after
    assert viewer.post("/comments/", {"kind": "run", "name": str(run.pk), "text": "No."}).status_code == 403


def test_a_page_draws_the_newest_comments_and_names_the_command_for_all(stage: Any, viewer: Client) -> None:
    run = stage.run_in("finished")
    for n in range(MAX_SHOWN + 1):
        create_comment(kind="run", name=str(run.pk), text=f"Remark {n}.", user=None)
    page = viewer.get(f"/runs/{run.pk}/").content.decode()
    remarks = re.findall(r"Remark (\d+)\.", page)
    assert [int(remark) for remark in remarks] == list(range(1, MAX_SHOWN + 1))
    assert f"evalboard comment run <bdi>{run.pk}</bdi>" in page


def test_a_comment_over_rest_names_what_is_wrong(stage: Any) -> None:
    run = stage.run_in("finished")
    ada = Api(build.token(build.user("ada", "engineer"), "run", "read"))
    bob = Api(build.token(build.user("bob", "engineer"), "run", "read"))
    made = ada.post("/comments/", {"kind": "run", "name": str(run.pk), "text": "First."})
    assert (made.status_code, made.json()["person"]) == (201, "ada")
    assert bob.send("DELETE", f"/comments/{made.json()['id']}/").status_code == 403
    gone = ada.send("DELETE", f"/comments/{made.json()['id']}/").json()
    assert (gone["text"], gone["withdrawn_at"] is None) == ("", False)
    assert ada.post("/comments/", {"kind": "run", "name": "999999", "text": "x"}).status_code == 404
    assert ada.post("/comments/", {"kind": "suite", "name": SLUG, "text": "x"}).status_code == 400
    for text in ("", " \n", "x" * 10_001):
        assert "text" in ada.post("/comments/", {"kind": "run", "name": str(run.pk), "text": text}).json()["fields"]
    create_comment(kind="run", name=str(run.pk), text="Second.", user=None)
    listed = ada.get(f"/comments/?kind=run&name={run.pk}").json()["results"]
    assert [(each["person"], each["text"]) for each in listed] == [(None, "Second."), ("ada", "")]


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;"),
        ("[x](javascript:alert(1))", "[x](javascript:alert(1))"),
        ("[x](data:text/html,hi)", "[x](data:"),
        ("![i](https://e.org/i.png)", "<bdi>!</bdi><a href"),
        ("# head", "<p><bdi># head</bdi></p>"),
        ('[x](https://e.org "a\u202eb")', 'href="https://e.org" rel="nofollow noopener noreferrer"'),
        ("a\u202eb", "⟨U+202E⟩"),
        ("`<b>`", "<code><bdi>&lt;b&gt;</bdi></code>"),
        ('```x"onload=y\ncode\n```', '<pre tabindex="0"><code><bdi>code'),
    ],
)
def test_markdown_of_people_is_drawn_without_anything_that_acts(text: str, html: str) -> None:
    drawn = render_markdown(text)
    assert html in drawn
    assert not re.search(r"<(?:script|img|h\d|iframe)|\son\w+=|href=\"(?!https?:|mailto:)", drawn)


def test_roles_are_those_of_the_product(admin: Client) -> None:
    page = admin.get("/settings/people/").content.decode()
    for role in roles.ROLES:
        assert f"<option>{role}</option>" in page or f"<option selected>{role}</option>" in page

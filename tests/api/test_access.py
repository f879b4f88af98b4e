"""Every route, with every role and every token scope. A route that states no policy fails here."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from runs.access.roles import ANYONE, ROLES, SCOPES
from tests import build
from tests.api.conftest import Api
from tests.nightly import nightly

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
SAMPLES = {"<int:": "999999", "<text:": "nothing", "<text_path:": "no/thing", "<slug:": "nothing"}


@dataclass(frozen=True)
class Route:
    pattern: str
    path: str
    view: Any

    @property
    def is_api(self) -> bool:
        return hasattr(self.view, "required_scopes")

    def scope_for(self, method: str) -> str | None:
        """What the view states for a method; None where it answers none such."""
        method = "GET" if method == "HEAD" else method
        if self.is_api:
            return self.view.required_scopes.get(method)
        stated = self.view.required_scope_for_post
        return stated if method == "POST" and stated is not None else self.view.required_scope


def routes() -> list[Route]:
    return [Route(pattern, f"/{_filled(pattern)}", view) for pattern, view in _walk(get_resolver().url_patterns, "")]


def _walk(patterns: list[Any], before: str) -> Iterator[tuple[str, Any]]:
    for found in patterns:
        whole = before + str(found.pattern).replace("^", "").replace("/?$", "")
        if isinstance(found, URLResolver):
            yield from _walk(found.url_patterns, whole)
        else:
            assert isinstance(found, URLPattern)
            yield whole, found.callback


def _filled(pattern: str) -> str:
    parts = pattern.split("/")
    return "/".join(next((SAMPLES[kind] for kind in SAMPLES if part.startswith(kind)), part) for part in parts)


ROUTES = routes()
API_ROUTES = [route for route in ROUTES if route.is_api]
PAGES = [route for route in ROUTES if not route.is_api]


def name(route: Route) -> str:
    return route.pattern or "/"


def test_the_walk_finds_the_api_and_the_pages() -> None:
    patterns = {route.pattern for route in ROUTES}
    assert {
        "api/v1/runs/",
        "runs/",
        "",
        "metrics",
        "api/v1/runs/<int:run_id>/responses/<int:repeat>/<text_path:case>/trace/",
    } <= patterns


def test_every_route_states_the_scope_it_needs() -> None:
    stated = {name(route): getattr(route.view, "required_scope", None) for route in ROUTES}
    assert {route: scope for route, scope in stated.items() if scope not in (*SCOPES, ANYONE)} == {}


def test_the_pages_of_admins_and_signers_are_these() -> None:
    """The walks below hold a page to the right that it states; here stands which pages must not state less."""
    own = "releases/<int:release_id>/signoffs/", "suites/<text:slug>/baselines/"
    assert {name(page) for page in PAGES if page.scope_for("POST") == "sign"} == set(own)
    admins = {name(page) for page in PAGES if page.scope_for("GET") == "admin"}
    assert {each for each in admins if not each.startswith("settings/")} == {
        "runs/<int:run_id>/delete/",
        "endpoints/<text:endpoint>/price/",
        "endpoints/<text:endpoint>/fingerprint/",
    }
    others = {name(page) for page in PAGES if name(page).startswith("settings/")} - admins
    assert {each for each in others if each.split("/")[1] in ("audit", "people", "retention", "webhooks")} == set()
    assert {"settings/endpoints/new/", "settings/policies/new/", "settings/profiles/new/"} <= admins
    assert {"settings/model-names/new/", "settings/model-names/<int:same_model_id>/take-back/"} <= admins


@pytest.mark.django_db
@pytest.mark.parametrize("role", ["anonymous", "engineer", *nightly(sorted(ROLES.keys() - {"engineer"}))])
def test_roles_decide_what_the_api_does(role: str, as_role: Callable[[str], Api]) -> None:
    granted = ROLES.get(role, frozenset())
    problems = []
    for route, method, needed, status in api_answers(as_role(role), is_whole=role in ("anonymous", "admin")):
        if needed is None:
            is_right = status == 405
        elif needed == ANYONE or needed in granted:
            is_right = status not in (401, 403)
        else:
            is_right = status == (401 if role == "anonymous" else 403)
        if not is_right:
            problems.append((method, name(route), needed, status))
    assert problems == []


@pytest.mark.django_db
@pytest.mark.parametrize("scope", SCOPES)
def test_a_token_does_what_its_scopes_say_and_no_more(scope: str) -> None:
    problems = []
    for route, method, needed, status in api_answers(Api(build.token(build.user("root", "admin"), scope))):
        is_right = status == 405 if needed is None else (status == 403) == (needed not in (scope, ANYONE))
        if not is_right:
            problems.append((method, name(route), needed, status))
    assert problems == []


@pytest.mark.django_db
@pytest.mark.parametrize("scope", ["run", *nightly(each for each in SCOPES if each != "run")])
def test_a_token_does_not_lift_its_person(scope: str) -> None:
    """A viewer's token with another scope than read may do nothing at all."""
    problems = []
    for route, method, needed, status in api_answers(Api(build.token(build.user("eve", "viewer"), scope))):
        if needed not in (None, ANYONE) and not needed == scope == "read" and status != 403:
            problems.append((method, name(route), needed, status))
    assert problems == []


def api_answers(caller: Api, *, is_whole: bool = False) -> Iterator[tuple[Route, str, str | None, int]]:
    """Every method that a route of the API answers: the scope that it needs, and the status of the answer.

    is_whole: HEAD and the methods that it does not answer too. The frame refuses those before anybody's rights are
    looked at, so one caller is enough.
    """
    for route in API_ROUTES:
        for method in METHODS:
            if not is_whole and (method == "HEAD" or route.scope_for(method) is None):
                continue
            answer = caller.send(method, route.path, "{}" if method != "GET" else None)
            yield route, method, route.scope_for(method), answer.status_code


@pytest.mark.django_db
@pytest.mark.parametrize("role", ["anonymous", "viewer", *nightly(sorted(ROLES.keys() - {"viewer"}))])
def test_roles_decide_what_the_pages_do(role: str) -> None:
    granted = ROLES.get(role, frozenset())
    client = Client(raise_request_exception=False)
    person = None if role == "anonymous" else build.user(role, role)
    problems = []
    for route in PAGES:
        for method in ("GET", "POST"):
            needed = route.scope_for(method)
            if person is not None:
                client.force_login(person)  # each time: one of the pages ends the session
            answer = client.generic(method, route.path)
            sent_to_login = answer.status_code == 302 and answer["Location"].startswith("/login/?next=")
            if needed == ANYONE or needed in granted:
                is_right = not sent_to_login and (answer.status_code != 403 or route.path == "/signin/")
            elif role == "anonymous":
                is_right = sent_to_login
            else:
                is_right = answer.status_code == 403
            if not is_right:
                problems.append((method, name(route), needed, answer.status_code))
    assert problems == []


# Forms that may be sent again: what they do is done already, has a name that is taken, states for what it was read, is
# stored by its content, or has a secret that only the first answer shows.
REPEATABLE = """
    endpoints/<text:endpoint>/fingerprint/ endpoints/<text:endpoint>/price/
    endpoints/<text:endpoint>/try/ rollouts/<text:series>/delete/ follows/ follows/<int:follow_id>/stop/
    lab/<int:experiment_id>/cancel/ lab/<int:experiment_id>/delete/ lab/<int:experiment_id>/resume/
    lab/<int:experiment_id>/start/ login/ logout/ logout/everywhere/ runs/<int:run_id>/cancel/
    runs/<int:run_id>/complete/ runs/<int:run_id>/delete/ schedules/<int:schedule_id>/delete/
    schedules/<int:schedule_id>/pause/ schedules/<int:schedule_id>/resume/ signin/ tour/end/
    settings/model-names/<int:same_model_id>/take-back/ settings/notifications/<int:webhook_id>/delete/
    settings/notifications/<int:webhook_id>/on/ settings/notifications/<int:webhook_id>/test/
    settings/tokens/<int:token_id>/revoke/ settings/webhooks/<int:webhook_id>/delete/
    settings/webhooks/<int:webhook_id>/on/ settings/webhooks/<int:webhook_id>/test/
    settings/retention/<int:rule_id>/delete/ settings/retention/case/ api/docs/
    settings/endpoints/new/ settings/policies/new/ settings/profiles/new/ settings/model-names/new/
    releases/<int:release_id>/settle/ releases/<int:release_id>/signoffs/ suites/<text:slug>/baselines/
    imports/ suites/<text:slug>/scorers/ suites/new/ settings/notifications/
    settings/tokens/ settings/webhooks/ unsubscribe/<text:stop_link>/
    settings/people/ settings/people/<text:name>/link/ settings/people/<text:name>/remove/
    settings/people/<text:name>/role/ settings/sessions/<text:session>/end/ comments/<int:comment_id>/withdraw/
"""


@pytest.mark.django_db
def test_a_page_whose_form_makes_something_makes_it_once() -> None:
    client = Client(raise_request_exception=False)
    ada = build.user("ada", "admin")
    takes_forms = {}
    for route in PAGES:
        client.force_login(ada)  # each time: one of the pages ends the session
        if client.post(route.path).status_code != 405:
            takes_forms[name(route)] = route.view
    repeated = {each for each, view in takes_forms.items() if not getattr(view, "is_once", False)}
    assert repeated == set(REPEATABLE.split())


@pytest.mark.nightly
@pytest.mark.django_db
def test_a_get_of_a_page_that_only_takes_forms_leads_to_its_form() -> None:
    client = Client()
    client.force_login(build.user("ada", "admin"))
    answers = {name(route): client.get(f"{route.path}?repeat=2,2") for route in PAGES}
    assert not [each for each, answer in answers.items() if answer.status_code == 405]
    led = {each: answer["Location"] for each, answer in answers.items() if answer.status_code == 302}
    assert led["runs/<int:run_id>/cancel/"] == "/runs/999999/?repeat=2%2C2"
    assert led["releases/<int:release_id>/signoffs/"] == "/releases/999999/?repeat=2%2C2#sign"
    assert len(led) > 20
    assert Client().get("/runs/999999/cancel/")["Location"].startswith("/login/?next=")
    assert client.delete("/runs/999999/cancel/").status_code == 405


def test_what_the_right_to_sign_is_needed_for() -> None:
    """Judging is not signing: whoever may run may ask for a verdict, settle one, and run its sides again."""
    signing = {
        (method, route.pattern) for route in API_ROUTES for method in METHODS if route.scope_for(method) == "sign"
    }
    assert signing == {
        ("POST", "api/v1/suites/<text:slug>/baselines/"),
        ("POST", "api/v1/releases/<int:release_id>/signoffs/"),
    }
    judging = {
        route.pattern for route in API_ROUTES if "releases" in route.pattern and route.scope_for("POST") == "run"
    }
    of_one = "api/v1/releases/<int:release_id>"
    assert judging == {"api/v1/releases/", f"{of_one}/settle/", f"{of_one}/rerun/"}


@pytest.mark.django_db
def test_a_person_without_a_role_may_read_and_no_more() -> None:
    caller = Api(build.token(build.user("new", None), *SCOPES))
    assert caller.get("/runs/").status_code == 200
    assert caller.post("/runs/", {}).status_code == 403

"""Sign-in through a provider: a served installation, a provider beside it, and a browser's way between the two."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from django.core.exceptions import ImproperlyConfigured
from environs import FileAwareEnv

from evalboard import oidc
from tests.cluster import serve_cluster
from tests.faults.site import Site, site
from tests.nursery import Nursery
from tests.oidc_provider import CLIENT_ID, CLIENT_SECRET, Provider, provider

ADA = {"sub": "248289761001", "preferred_username": "ada", "email": "ada@example.com", "name": "Ada"}
ROLES = "ml=engineer, release=release manager, eval-admins=admin"

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def own_database() -> Iterator[str]:
    """A database of its own: with a provider configured there are more tables than the other tests' one has."""
    with serve_cluster() as url:
        yield url


@pytest.fixture(scope="module")
def idp() -> Iterator[Provider]:
    with provider() as found:
        yield found


@pytest.fixture(scope="module")
def served(
    own_database: str, idp: Provider, tmp_path_factory: pytest.TempPathFactory, nursery: Nursery
) -> Iterator[Site]:
    environment = {
        "EVALBOARD_OIDC_ISSUER": idp.issuer,
        "EVALBOARD_OIDC_CLIENT_ID": CLIENT_ID,
        "EVALBOARD_OIDC_CLIENT_SECRET": CLIENT_SECRET,
        "EVALBOARD_OIDC_NAME": "Acme",
        "EVALBOARD_OIDC_ROLE_CLAIM": "groups",
        "EVALBOARD_OIDC_ROLES": ROLES,
    }
    with site(tmp_path_factory.mktemp("sso"), own_database, nursery, **environment) as found:
        found.manage("migrate", "--no-input")  # what the provider adds
        found.serve()
        yield found


@pytest.fixture(autouse=True)
def as_it_was(idp: Provider) -> Iterator[None]:
    yield
    idp.person, idp.changes, idp.told_by_userinfo = {}, {}, None
    idp.signs_with, idp.algorithm = idp.key, "RS256"


def comes(served: Site, idp: Provider, person: dict[str, Any] | None, at: str = "/") -> httpx.Response:
    """Somebody new to this browser opens a page, is sent to the login, and takes the button; where they end up."""
    idp.person = person
    with httpx.Client(base_url=served._address, follow_redirects=True, timeout=30) as browser:
        login = browser.get(at)
        assert login.url.path == "/login/"
        button = re.search(r'href="(/sso/[^"]+)"[^>]*>Sign in with Acme<', login.text)
        assert button is not None
        return browser.get(button[1].replace("&amp;", "&"))


def test_somebody_new_comes_in_as_a_viewer_at_the_page_they_wanted(served: Site, idp: Provider) -> None:
    page = comes(served, idp, ADA, at="/settings/")
    assert (page.status_code, page.url.path) == (200, "/settings/")
    assert "signed in as ada" in page.text
    assert "Webhooks" not in page.text
    again = comes(served, idp, ADA)
    assert "signed in as ada" in again.text, "the same person, not a second one"


def test_a_claim_decides_the_role_each_time(served: Site, idp: Provider) -> None:
    grace = {**ADA, "sub": "grace-1", "preferred_username": "grace"}
    assert "Webhooks" in comes(served, idp, {**grace, "groups": ["ml", "eval-admins"]}, at="/settings/").text
    page = comes(served, idp, {**grace, "groups": ["ml", "unheard of"]}, at="/settings/")
    assert "signed in as grace" in page.text
    assert "Webhooks" not in page.text
    assert comes(served, idp, {**grace, "groups": "eval-admins"}, at="/settings/webhooks/").status_code == 200


def test_nobody_gets_the_account_of_somebody_of_the_same_name(served: Site, idp: Provider) -> None:
    served.manage("add_person", "root", "--role", "admin")
    page = comes(served, idp, {**ADA, "sub": "impostor", "preferred_username": "root"}, at="/settings/")
    assert page.status_code == 200
    assert re.search(r'signed in as (?!root")\w+', page.text), "somebody new"
    assert "Webhooks" not in page.text


def test_who_was_removed_stays_out(served: Site, idp: Provider) -> None:
    eve = {**ADA, "sub": "eve-1", "preferred_username": "eve"}
    assert comes(served, idp, eve).status_code == 200
    served.manage("remove_person", "eve")
    page = comes(served, idp, eve)
    assert (page.status_code, "may no longer sign in" in page.text) == (403, True)


def test_who_is_refused_there_is_told_so_here(served: Site, idp: Provider) -> None:
    page = comes(served, idp, None)
    assert (page.status_code, "Acme did not sign you in" in page.text) == (403, True)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"changes": {"aud": "somebody-else"}}, id="for another installation"),
        pytest.param(
            {"changes": {"iss": "https://elsewhere.example"}}, id="of another provider", marks=pytest.mark.nightly
        ),
        pytest.param({"changes": {"exp": 1}}, id="too old"),
        pytest.param({"signs_with": rsa.generate_private_key(public_exponent=65537, key_size=2048)}, id="another key"),
        pytest.param({"algorithm": "HS256"}, id="signed by what is public"),
        pytest.param({"told_by_userinfo": {**ADA, "sub": "somebody-else"}}, id="two people", marks=pytest.mark.nightly),
    ],
)
def test_an_id_token_that_is_not_right_signs_nobody_in(served: Site, idp: Provider, change: dict[str, Any]) -> None:
    for name, value in change.items():
        setattr(idp, name, value)
    page = comes(served, idp, {**ADA, "sub": "mallory"})
    assert page.status_code == 403
    assert "signed in as" not in page.text


def test_an_answer_that_was_not_asked_for_signs_nobody_in(served: Site, idp: Provider) -> None:
    """Another's code, put into somebody's browser: its state is not known there."""
    idp.person = ADA
    with httpx.Client(base_url=served._address, timeout=30) as attacker:
        to_provider = attacker.get("/sso/oidc/").headers["Location"]
        back = httpx.get(to_provider).headers["Location"]
    with httpx.Client(timeout=30) as victim:
        page = victim.get(back)
        assert page.status_code == 403
        assert victim.get(f"{served._address}/runs/").status_code == 302


def test_nobody_is_sent_elsewhere_afterwards(served: Site, idp: Provider) -> None:
    idp.person = ADA
    with httpx.Client(base_url=served._address, follow_redirects=True, timeout=30) as browser:
        page = browser.get("/sso/oidc/?next=https://elsewhere.example/")
        assert str(page.url).startswith(served._address)


@pytest.mark.nightly
def test_a_provider_that_is_away_is_said(own_database: str, tmp_path: Path, nursery: Nursery) -> None:
    away = {"EVALBOARD_OIDC_ISSUER": "http://127.0.0.1:9", "EVALBOARD_OIDC_NAME": "Acme"}
    known = {"EVALBOARD_OIDC_CLIENT_ID": CLIENT_ID, "EVALBOARD_OIDC_CLIENT_SECRET": CLIENT_SECRET}
    with site(tmp_path, own_database, nursery, **away, **known) as found:
        found.manage("migrate", "--no-input")  # a process that runs this test alone has nobody else who did
        found.serve()
        page = found.get("/sso/oidc/")
        assert (page.status_code, "Acme does not answer" in page.text) == (502, True)
        assert found.get("/login/").status_code == 200


def test_no_secret_and_no_code_is_logged(served: Site, idp: Provider) -> None:
    comes(served, idp, ADA)
    log = (served._folder / "web.log").read_text()
    assert CLIENT_SECRET not in log
    assert "code=" not in log


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"ISSUER": "http://idp.example"}, "must start with https://"),
        ({"CLIENT_SECRET": ""}, "EVALBOARD_OIDC_CLIENT_SECRET as well"),
        ({"ROLE": "boss"}, "EVALBOARD_OIDC_ROLE='boss' must be one of"),
        ({"ROLE_CLAIM": "groups"}, "set together or not at all"),
        ({"ROLE_CLAIM": "groups", "ROLES": "a=boss"}, "EVALBOARD_OIDC_ROLES has 'a=boss'"),
    ],
)
def test_a_setting_that_is_not_right_stops_the_start(
    given: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = {"ISSUER": "https://idp.example", "CLIENT_ID": "a", "CLIENT_SECRET": "b", **given}
    for name, value in whole.items():
        monkeypatch.setenv(f"EVALBOARD_OIDC_{name}", value)
    with pytest.raises(ImproperlyConfigured, match=re.escape(said)):
        oidc.read(FileAwareEnv())


def test_without_a_provider_there_is_nothing_of_it(client: Any, db: None) -> None:
    assert "/sso/" not in client.get("/login/").content.decode()
    assert client.get("/sso/oidc/").status_code == 404

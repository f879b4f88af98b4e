"""Names of models on the settings page: which count as one, and how an admin says so and takes it back."""

from html import unescape

import pytest

from evalboard.core.compare import digest_model_name
from runs.models import Model, SameModelRecord

pytestmark = pytest.mark.django_db
NEW = "/settings/model-names/new/"
HOSTILE = "lab/<b>paint</b>"
BODY = {"name": HOSTILE, "other_name": "lab/paint-1b", "reason": "One file <i>under</i> two names."}


@pytest.fixture
def names(db):
    for name in (HOSTILE, "lab/paint-1b"):
        Model.objects.create(name=name, line="paint", digest=digest_model_name(name))


def test_without_names_of_logs_the_page_says_nothing_of_them(admin):
    assert "Names of models" not in admin.get("/settings/").content.decode()


def test_an_admin_joins_two_names_and_takes_it_back(names, admin, viewer):
    assert viewer.post(NEW, BODY).status_code == 403
    assert NEW not in viewer.get("/settings/").content.decode()
    assert NEW in admin.get("/settings/").content.decode()
    offered = admin.get(NEW).content.decode()
    assert offered.count(" selected>") == 1  # of the second list; the first name of the first is chosen anyway
    assert admin.post(NEW, BODY).headers["Location"] == "/settings/"
    said = SameModelRecord.objects.get()
    page = viewer.get("/settings/").content.decode()
    assert "<b>paint" not in page
    assert "<i>under" not in page
    assert "lab/<b>paint</b>" in unescape(page)
    back = f"/settings/model-names/{said.pk}/take-back/"
    assert back not in page
    assert back in admin.get("/settings/").content.decode()
    assert viewer.post(back).status_code == 403
    assert admin.post(back).headers["Location"] == "/settings/"
    assert "withdrawn" in viewer.get("/settings/").content.decode()
    assert admin.post(back).status_code == 404


def test_what_cannot_be_said_is_said_at_its_field(names, admin):
    admin.post(NEW, BODY)
    refused = admin.post(NEW, BODY)
    assert refused.status_code == 422
    assert "count as one model already" in unescape(refused.content.decode())
    same = admin.post(NEW, BODY | {"other_name": HOSTILE})
    assert same.status_code == 422
    assert "Must be another name." in same.content.decode()

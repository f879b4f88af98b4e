"""Names of models over REST: everybody reads which count as one, admins say it and take it back."""

from collections.abc import Callable

import pytest

from evalboard.core.compare import digest_model_name
from runs.models import Model
from tests.api.conftest import Api

pytestmark = pytest.mark.django_db
TWO = {"name": "lab/paint-2b", "other_name": "lab/paint-1b", "reason": "One file under two names."}


@pytest.fixture
def names(db: None) -> None:
    for name in ("lab/paint-1b", "lab/paint-2b"):
        Model.objects.create(name=name, line="paint", digest=digest_model_name(name))


def test_an_admin_says_it_everybody_reads_it_and_the_row_stays_once_taken_back(
    names: None, as_role: Callable[[str], Api]
) -> None:
    admin_api, api = as_role("admin"), as_role("release manager")
    assert api.post("/model-names/", TWO).status_code == 403
    made = admin_api.post("/model-names/", TWO)
    assert made.status_code == 201
    assert admin_api.post("/model-names/", TWO).status_code == 409
    found = api.get("/model-names/").json()["results"]
    assert found == [made.json()]
    assert (found[0]["name"], found[0]["other_name"], found[0]["taken_back_at"]) == (
        "lab/paint-1b",
        "lab/paint-2b",
        None,
    )
    assert found[0]["said_by"]
    path = f"/model-names/{found[0]['id']}/"
    assert api.delete(path).status_code == 403
    assert admin_api.delete(path).status_code == 204
    assert admin_api.delete(path).status_code == 404
    assert api.get(path).json()["taken_back_by"] == found[0]["said_by"]


def test_a_name_that_no_log_gave_is_refused_at_its_field(names: None, api: Api) -> None:
    refused = api.post("/model-names/", TWO | {"name": "nobody"})
    assert refused.status_code == 400
    assert list(refused.json()["fields"]) == ["name"]

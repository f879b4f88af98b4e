"""The page of the vendor card."""

import pytest
from django.test import Client

from tests import probes
from tests.vendors import without_choice

pytestmark = pytest.mark.django_db


def test_the_page_shows_the_card_and_sends_it_as_csv(viewer: Client) -> None:
    probes.vendor_probed("a", without_choice)
    text = viewer.get("/vendors/?endpoints=a").content.decode()
    assert "10 of 10 calls do not follow tool_choice" in text
    assert "evalboard vendors SUITE --endpoints a --format markdown" in text
    lines = viewer.get("/vendors/?endpoints=a&as=csv").content.decode().splitlines()
    assert lines[0] == "row,endpoint,state,sentence,n,at,probe"
    assert any(line.startswith('tool_choice,a,fault,"10 of 10 calls') for line in lines)
    assert viewer.get("/vendors/?endpoints=nothing").status_code == 422
    assert viewer.get("/vendors/").status_code == 200

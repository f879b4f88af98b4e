"""The page of the vendor card in a real browser: it fits and has no barrier."""

import pytest

from tests import probes
from tests.browser import looks
from tests.vendors import without_choice

pytestmark = pytest.mark.browser


@pytest.mark.nightly
@pytest.mark.parametrize(looks.THEME_AND_WIDTH, looks.PHONE)
def test_the_card_is_quiet_fits_and_has_no_barrier(stage, watch, theme, width):
    probes.vendor_probed("maker")
    probes.vendor_probed("a", without_choice, base_url="https://openrouter.ai/api/v1")
    probes.remote("b")
    watched = watch(theme=theme, width=width)
    for address in ("/vendors/", "/vendors/?endpoints=maker,a,b&reference=maker"):
        watched.open(address)
        assert watched.overflow() == 0, address
        assert watched.barriers() == [], address
    watched.check()

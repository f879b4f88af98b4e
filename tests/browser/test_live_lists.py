"""Lists in a real browser: they follow what changes, and keep what a reader has ticked, chosen and looks at."""

import re

import pytest
from playwright.sync_api import expect

from tests import probes

pytestmark = pytest.mark.browser


@pytest.mark.nightly
def test_a_list_of_runs_follows_and_keeps_ticks_focus_and_place(stage, watch):
    runs = [stage.start() for _ in range(30)]
    watched = watch()
    page = watched.open("/runs/")
    looked_at = page.locator(f"#run-{runs[3].pk}")
    page.locator(f"#tick-{runs[3].pk}").check()
    looked_at.focus()
    page.evaluate("scrollBy(0, 400)")
    top = looked_at.bounding_box()["y"]
    new = stage.start()
    expect(page.locator(f"#run-{new.pk}")).to_have_count(1)
    assert abs(looked_at.bounding_box()["y"] - top) < 1
    expect(page.locator(f"#tick-{runs[3].pk}")).to_be_checked()
    expect(looked_at).to_be_focused()
    page.get_by_label(f"run {new.pk}, to compare").check()
    expect(page.locator("input[name=run]:checked")).to_have_count(2)
    watched.check()


@pytest.mark.nightly
def test_lists_of_runs_and_probes_show_what_ended(stage, watch):
    run = stage.start()
    watched = watch()
    page = watched.open("/runs/")
    row = page.locator("tr", has=page.locator(f"#run-{run.pk}"))
    expect(row).to_contain_text("queued")
    by = stage.worker()
    stage.serve(by, stage.engine(by))
    expect(row).to_contain_text("finished")
    probe = probes.ask("seed", parameters={"prompts": 2, "calls_per_group": 3})
    page = watched.open("/probes/")
    row = page.locator("tr", has=page.locator(f"#probe-{probe.pk}"))
    expect(row).to_contain_text("queued")
    probes.served(probes.honoured)
    expect(row).to_contain_text("finished")
    watched.check()


@pytest.mark.nightly
def test_the_tab_of_a_probe_says_when_it_has_ended(stage, watch):
    probe = probes.ask("seed", parameters={"prompts": 2, "calls_per_group": 3})
    watched = watch()
    page = watched.open(f"/probes/{probe.pk}/")
    expect(page).to_have_title(re.compile(rf"^probe {probe.pk} queued · "))
    probes.served(probes.honoured)
    expect(page).to_have_title(re.compile(rf"^probe {probe.pk} finished · "))
    watched.check()

"""Labelling in a real browser: two keys, a third that undoes, and a key held down that presses nothing."""

from typing import Any

import pytest
from playwright.sync_api import expect

from runs.models import LabelRecord
from tests.browser import looks

pytestmark = pytest.mark.browser


@pytest.mark.nightly
@pytest.mark.parametrize(looks.THEME_AND_WIDTH, looks.PHONE)
def test_answers_are_labelled_with_two_keys(stage: Any, watch: Any, theme: str, width: int) -> None:
    run = stage.run_in("finished")
    watched = watch(theme=theme, width=width)
    page = watched.open(f"/runs/{run.pk}/labels/")
    page.get_by_role("link", name="Label 20 answers").click()
    for number in range(1, 21):
        expect(page.get_by_text(f"answer {number} of 20").first).to_be_visible()
        if number in (1, 20):
            assert watched.barriers() == []
            assert watched.overflow() == 0
        if number == 1:
            page.keyboard.down("r")
            expect(page.get_by_text("answer 2 of 20").first).to_be_visible()
            page.keyboard.down("r")  # still down: the browser says that it repeats
            page.keyboard.up("r")
            continue
        page.keyboard.press("r" if number % 2 else "w")
        if number == 5:
            expect(page.get_by_text("answer 6 of 20").first).to_be_visible()
            page.keyboard.press("u")
            expect(page.get_by_text("answer 5 of 20").first).to_be_visible()
            page.keyboard.press("r")
    expect(page.get_by_role("heading", name="Scorers and labels")).to_be_visible()
    assert sorted(LabelRecord.objects.values_list("value", flat=True)) == [0.0] * 10 + [1.0] * 10
    assert watched.barriers() == []
    assert watched.overflow() == 0
    watched.check()

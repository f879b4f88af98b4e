"""The pages of labels: one answer at a time without its score, by plain forms, then what the labels show."""

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from runs.models import LabelRecord, RunRecord


def text_of(client: Client, address: str) -> str:
    return unescape(re.sub(r"</?bdi>", "", client.get(address).content.decode()))


def say(client: Client, run: RunRecord, page: str, said: str, query: str = "?from=0") -> Any:
    fields = dict(re.findall(r'type="hidden" name="(case|repeat)" value="([^"]+)"', page))
    return client.post(f"/runs/{run.pk}/labels/next/{query}", fields | {"said": said})


def test_twenty_answers_are_labelled_by_plain_forms_and_then_summed_up(stage: Any, engineer: Client) -> None:
    run = stage.run_in("finished")
    assert "Label answers…" in text_of(engineer, f"/runs/{run.pk}/")
    place = f"/runs/{run.pk}/labels/next/"
    seen = []
    for number in range(1, 21):
        page = text_of(engineer, f"{place}?from=0")
        assert f"<span>answer {number} of 20</span>" in page
        assert not re.search(r'class="(pass|fail|partly)"|Score', page), "a score would lead the person"
        seen.append(tuple(re.findall(r'type="hidden" name="(case|repeat)" value="([^"]+)"', page)))
        assert say(engineer, run, page, "right").headers["Location"] == f"{place}?from=0"
    assert engineer.get(f"{place}?from=0").headers["Location"] == f"/runs/{run.pk}/labels/"
    page = text_of(engineer, f"/runs/{run.pk}/labels/")
    assert re.search(r"Labels: 20 answers; corrected pass rate [\d.]+ \([\d.]+ to [\d.]+\), raw [\d.]+\.", page)
    assert len({*seen}) == LabelRecord.objects.count() == 20
    assert "Labels: 20 answers; corrected pass rate" in text_of(engineer, f"/runs/{run.pk}/")
    answers = page.split("Labelled answers, those")[1]
    marks = re.findall(r'data-head="Score"><span class="(\w+)"', answers)
    assert marks == sorted(marks), "fail is before pass: everything was called right"
    assert "<span>answer 1 of 20</span>" in text_of(engineer, place), "the next 20"


@pytest.mark.nightly
def test_a_label_is_undone_changed_and_removed(stage: Any, engineer: Client) -> None:
    run = stage.run_in("finished")
    place = f"/runs/{run.pk}/labels/next/?from=0"
    first = text_of(engineer, place)
    assert "Undo" not in first
    say(engineer, run, first, "wrong")
    assert LabelRecord.objects.get().value == 0
    assert "Undo the last label" in text_of(engineer, place)
    say(engineer, run, first, "undo")
    assert not LabelRecord.objects.exists()
    assert "answer 1 of 20" in text_of(engineer, place)
    say(engineer, run, first, "wrong")
    listed = text_of(engineer, f"/runs/{run.pk}/labels/")
    assert say(engineer, run, listed, "right", "").headers["Location"] == f"/runs/{run.pk}/labels/#answers"
    assert LabelRecord.objects.get().value == 1
    say(engineer, run, listed, "remove", "")
    assert not LabelRecord.objects.exists()


@pytest.mark.nightly
def test_a_form_that_says_neither_stores_nothing_and_says_so(stage: Any, engineer: Client) -> None:
    run = stage.run_in("finished")
    page = text_of(engineer, f"/runs/{run.pk}/labels/next/?from=0")
    say(engineer, run, page, "perhaps")
    assert "say whether the answer is right or wrong" in text_of(engineer, f"/runs/{run.pk}/labels/")
    engineer.post(f"/runs/{run.pk}/labels/next/", {"said": "right", "case": "no-such", "repeat": "x"})
    assert "has no case no-such" in text_of(engineer, f"/runs/{run.pk}/labels/")
    assert not LabelRecord.objects.exists()


def test_a_viewer_reads_labels_and_gives_none(stage: Any, viewer: Client) -> None:
    run = stage.run_in("finished")
    page = text_of(viewer, f"/runs/{run.pk}/labels/")
    assert "No answer is labelled yet." in page
    assert "Label 20 answers" not in page
    assert viewer.get(f"/runs/{run.pk}/labels/next/").status_code == 403


def test_a_run_at_work_says_when_its_answers_can_be_labelled(stage: Any, engineer: Client) -> None:
    run = stage.run_in("running")
    assert "label its answers when it has ended" in text_of(engineer, f"/runs/{run.pk}/labels/")
    assert engineer.get(f"/runs/{run.pk}/labels/next/").headers["Location"] == f"/runs/{run.pk}/labels/"

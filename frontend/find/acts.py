"""The acts that the search offers: on the page behind it, and on a run or release that it found."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from evalboard.contract.find import Hit
from evalboard.core.errors import NotFound
from runs import acts
from runs.models import ReleaseRecord, RunRecord

PLACE = re.compile(r"/(runs|releases)/([0-9]{1,18})/")
KINDS = {"runs": RunRecord, "releases": ReleaseRecord}


@dataclass(frozen=True, slots=True)
class FoundAct:
    """An act on a run or a release. is_post: it is done at once; else its form opens."""

    label: str
    subject: str
    url: str
    match: str = "part"
    is_post: bool = False


def find_acts(text: str, path: str, hits: Sequence[Hit], viewer: Any) -> tuple[FoundAct, ...]:
    """Return what may be done to the page at `path`, and to a hit that is exactly what was typed."""
    named = [each for each in _on(path, viewer) if text.lower() in each.label.lower()]
    exact = [hit.url for hit in hits[:1] if hit.match == "exact"] if text else []
    match = "exact" if text else "part"
    shown = [(each, match) for each in named] + [(each, "exact") for url in exact for each in _on(url, viewer)]
    known = {each.url: FoundAct(each.label, each.subject, each.url, near, each.is_post) for each, near in shown}
    return tuple(known.values())


def _on(path: str, viewer: Any) -> Iterator[FoundAct]:
    place = PLACE.search(path)
    if place is None:
        return
    kind, subject_id = KINDS[place[1]], int(place[2])
    try:
        record = acts.load_subject(kind, subject_id)
    except NotFound:
        return
    if kind is RunRecord:
        page, subject = reverse("run", args=[subject_id]), f"run {subject_id}"
        known = {
            "again": ("Run again", reverse("run_again", args=[subject_id])),
            "compare": ("Compare with…", f"{page}#compare-with"),
            "baseline": ("Set as baseline", f"{page}#baseline-reason"),
        }
    else:
        page, subject = reverse("release", args=[subject_id]), f"release {subject_id}"
        known = {"sign": ("Sign off", f"{page}#sign")}
    for act, (label, url) in known.items():
        if acts.can(act, record, viewer):
            yield FoundAct(label, subject, url, is_post=act == "again")

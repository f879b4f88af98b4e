"""One fact has one text: on every page, in REST's sentences, on the command line, in Markdown, badges and messages.

Every number with decimals, and every share, is collected with its label: the heads of its row and column, the name of
its definition, or the words before it in its sentence. Two texts of one label that are at most one unit of their last
decimal apart are one fact written twice, unless one is a rounding of the other. The runs are made so that values lie on
half steps, and different facts further apart. A second rule needs no label: a text next to a half step is its rounding
by `evalboard.core.rounding`.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from django.test import Client
from django.urls import reverse
from typer.testing import CliRunner

from evalboard.cli.main import app
from evalboard.core.rounding import shown
from runs import models
from runs.baselines import set_baseline
from runs.compare import compare
from runs.release import create_release
from runs.webhooks import create_webhook
from runs.webhooks.webhooks import EVENTS
from tests import build, judged
from tests.api.conftest import SCOPES
from tests.runs import logs

REPEATS = 5
CASES = tuple(f"case-{number:02}" for number in range(40))
BROKEN, FIXED = 32, 34
NUMBER = re.compile(r"(?<![\w.,:/-])([+−-]?)(\d[\d,]*(?:\.\d+)?)(?![\d:/]|\.\d)\s?(%|points|nats|[a-z]*)")
WORD = re.compile(r"[a-z][\w-]*", re.IGNORECASE)
SENTENCE = re.compile(r"(?<=[.;:!?])\s+|\n")
N_WORDS = 3  # before a number
EPSILON = 1e-6


class Number(NamedTuple):
    """A number as a reader sees it. label: what it is of, with its unit; place: where it stands."""

    label: tuple[str, ...]
    text: str
    place: str

    @property
    def value(self) -> float:
        return abs(float(self.text.replace(",", "")))

    @property
    def digits(self) -> int:
        return len(self.text.partition(".")[2])


def read_sentence(text: str, place: str, heads: tuple[str, ...] = ()) -> Iterator[Number]:
    """Yield the numbers of a text with the words before them; heads stand for these words where there are some."""
    for sentence in SENTENCE.split(text.replace("\xa0", " ")):
        for found in NUMBER.finditer(sentence):
            unit = found[3] if found[3] in ("%", "points", "nats") else ""
            if "." in found[2] or unit == "%":
                before = tuple(word.lower() for word in WORD.findall(sentence[: found.start()]))[-N_WORDS:]
                yield Number((*(heads or before), unit), found[2], place)


class Reader(HTMLParser):
    """Collects the numbers of a page."""

    BLOCKS = frozenset(
        (
            "p",
            "li",
            "h1",
            "h2",
            "h3",
            "td",
            "th",
            "dt",
            "dd",
            "caption",
            "figcaption",
            "summary",
            "option",
            "text",
            "title",
            "div",
        )
    )
    HIDDEN = frozenset(("script", "style", "pre", "code", "time"))
    VOID = frozenset(("br", "img", "input", "use", "meta", "link", "hr", "rect", "line", "path", "circle"))

    def __init__(self, place: str) -> None:
        super().__init__(convert_charrefs=True)
        self.place, self.numbers = place, list[Number]()
        self._stack, self._text = list[str](), ""
        self._columns, self._row, self._at, self._term = list[str](), "", 0, ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        for name in ("aria-label", "title"):
            self.numbers += read_sentence(given.get(name) or "", self.place)
        if tag in self.BLOCKS:
            self._end_block()
        if tag == "thead":
            self._columns = []
        elif tag == "tr":
            self._row, self._at = "", -1
        elif tag in ("td", "th"):
            self._at += 1
        if tag not in self.VOID:
            self._stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self._stack.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag in self.BLOCKS:
            self._end_block()
        while tag in self._stack and self._stack.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not self.HIDDEN.intersection(self._stack):
            self._text += data

    def _end_block(self) -> None:
        text, self._text = " ".join(self._text.split()), ""
        if not text:
            return
        cell = next((tag for tag in reversed(self._stack) if tag in ("td", "th", "dt", "dd")), "")
        heads: tuple[str, ...] = ()
        if cell == "th" and "thead" in self._stack:
            self._columns += [""] * (self._at - len(self._columns)) + [text.lower()]
        elif cell == "th":
            self._row = text.lower()
        elif cell == "dt":
            self._term = text.lower()
        elif cell == "td":
            heads = (self._row, self._columns[self._at] if self._at < len(self._columns) else "")
        elif cell == "dd":
            heads = (self._term,)
        self.numbers += read_sentence(text, self.place, heads)


def read_json(value: Any, place: str) -> Iterator[Number]:
    """Yield the numbers in the sentences of a REST answer or a message."""
    if isinstance(value, Mapping):
        for each in value.values():
            yield from read_json(each, place)
    elif isinstance(value, list):
        for each in value:
            yield from read_json(each, place)
    elif isinstance(value, str):
        yield from read_sentence(value, place)


def list_values(value: Any) -> Iterator[float]:
    """Yield every number with decimals in a REST answer."""
    if isinstance(value, float):
        yield abs(value)
    elif isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from list_values(each)


def are_one_fact_in_two_texts(one: Number, other: Number) -> bool:
    """Whether two texts are as close as two ways to round one value, and none is a rounding of the other."""
    fine, coarse = sorted((one, other), key=lambda each: -each.digits)
    is_close = abs(one.value - other.value) <= 10.0**-coarse.digits + EPSILON
    return is_close and abs(shown(fine.value, coarse.digits) - coarse.value) > EPSILON


def find_conflicts(numbers: list[Number]) -> list[str]:
    by_label: dict[tuple[str, ...], dict[str, Number]] = defaultdict(dict)
    for number in (each for each in numbers if any(each.label)):
        by_label[number.label].setdefault(number.text, number)
    return [
        f"{' '.join(label)}: {one.text} ({one.place}) and {other.text} ({other.place})"
        for label, texts in by_label.items()
        for one in texts.values()
        for other in texts.values()
        if one.text < other.text and are_one_fact_in_two_texts(one, other)
    ]


def find_misrounded(numbers: list[Number], values: set[float]) -> list[str]:
    """List the texts beside a value on a half step that are no rounding of it, nor of any other value."""
    wrong = []
    for number in numbers:
        scale = 10.0**number.digits
        halves = [each for each in values if abs((each * scale) % 1 - 0.5) < EPSILON]
        near = [each for each in halves if abs(each - number.value) <= 1 / scale]
        if near and not any(abs(shown(each, number.digits) - number.value) < EPSILON for each in values):
            wrong.append(f"{number.text} for {near[0]:g} ({number.place})")
    return wrong


PAGE = """
<table><thead><tr><th>Suite</th><th>Change</th></tr></thead><tbody><tr><th>colours</th><td><b>−2.1</b></td></tr>
<tr><th>sea</th><td>−2.2</td></tr></tbody></table>
<dl><dt>Range</dt><dd>82.3</dd></dl><p>The range is 82.25 points. The score fell to <b>80.0</b> points.</p>
<svg aria-label="the score fell to 80.1 points"></svg><p>It rose to 80.1 points</p><pre>fell to 79.9 points</pre>
"""


def test_a_label_is_a_head_a_term_or_the_words_before() -> None:
    reader = Reader("page")
    reader.feed(PAGE)
    assert {(*number.label, number.text) for number in reader.numbers} == {
        ("colours", "change", "", "2.1"),
        ("sea", "change", "", "2.2"),
        ("range", "", "82.3"),
        ("the", "range", "is", "points", "82.25"),
        ("score", "fell", "to", "points", "80.0"),
        ("score", "fell", "to", "points", "80.1"),
        ("it", "rose", "to", "points", "80.1"),
    }
    assert find_conflicts(reader.numbers) == ["score fell to points: 80.0 (page) and 80.1 (page)"]


@pytest.mark.parametrize(
    ("texts", "is_conflict"),
    [
        (("2.1", "2.2"), True),
        (("82.25", "82.2"), True),
        (("82.25", "82.3"), False),  # a rounding of the other
        (("82.2", "80.0"), False),  # another fact
        (("77", "77.6"), True),
    ],
)
def test_two_texts_are_one_fact_where_they_are_close_and_none_rounds_the_other(
    texts: tuple[str, str], is_conflict: bool
) -> None:
    assert bool(find_conflicts([Number(("score",), text, "page") for text in texts])) == is_conflict


@pytest.mark.parametrize(("text", "is_wrong"), [("2.1", True), ("2.2", False), ("2.15", False), ("2.4", False)])
def test_a_text_beside_a_half_step_is_its_rounding(text: str, is_wrong: bool) -> None:
    assert bool(find_misrounded([Number(("change",), text, "page")], {2.15, 2.4})) == is_wrong


def _logged(scores: Mapping[int, float], *, model: str, day: int) -> models.RunRecord:
    """A log of 40 cases whose repeats differ in two that take turns, so that every repeat scores the same."""
    answers = [
        logs.response(
            case,
            repeat,
            text=f"{model} says {'yes' if score else 'no'}",
            score=score,
            served_by=logs.FLOAT32,
        )
        for repeat in range(1, REPEATS + 1)
        for at, case in enumerate(CASES)
        for score in [float(at % 2 == repeat % 2) if at > 37 else scores.get(at, float(at < 32))]
    ]
    cases = tuple(map(logs.case, CASES))
    return logs.stored(logs.log(*answers, model=model, cases=cases), name=f"{model} {day}")


@pytest.fixture
def surfaces(transactional_db: None, live_server: Any, tmp_path: Path) -> tuple[list[Number], set[float]]:
    """What people read of runs that score 84.75, 82.6 and 86.375, and of releases of them; and all values."""
    user = build.user("root", "admin")
    create_webhook(url="https://example.com/told", events=list(EVENTS), user=user)
    judged.policy()
    before = _logged({BROKEN: 0.9}, model="lab/paint-1b", day=1)
    after = _logged({BROKEN: 0.04}, model="lab/paint-2b", day=2)
    third = _logged({BROKEN: 0.9, FIXED: 0.65}, model="lab/paint-3b", day=3)
    set_baseline(suite="colours", run=before.pk, reason="As shipped.", user=user)
    pairs = [(before, after), (before, third)]
    for baseline, candidate in pairs:
        gate = {"suite": "colours", "baseline": baseline.pk, "candidate": candidate.pk, "tier": "critical"}
        create_release(gates=[gate], policy="lenient", nothing_caches=True)
        compare(baseline=baseline.pk, candidate=candidate.pk)
    numbers, values = list[Number](), set[float]()
    pages, rest = Client(), Client(headers={"authorization": f"Bearer {build.token(user, *SCOPES)}"})
    pages.force_login(user)
    runs = [run.pk for run in (before, after, third)]
    releases = list(models.ReleaseRecord.objects.values_list("pk", flat=True))
    compared = [f"/compare/{ours.pk}/{theirs.pk}/" for ours, theirs in pairs]
    addresses = ["/", "/runs/", "/suites/", "/suites/colours/", "/releases/", "/compare/", "/imports/", "/endpoints/"]
    addresses += [*compared, *(f"{each}?outcome={part}" for each in compared for part in ("broken", "all"))]
    addresses += [f"{each}cases/{CASES[BROKEN]}/" for each in compared]
    addresses += [*(f"/runs/{run}/" for run in runs), *(f"/releases/{release}/" for release in releases)]
    addresses.append(reverse("suite_badge", args=["colours"]))
    for address in addresses:
        answer = pages.get(address)
        assert answer.status_code == 200, address
        reader = Reader(address)
        reader.feed(answer.content.decode())
        numbers += reader.numbers
    pairs_sent = [f"?baseline={ours.pk}&candidate={theirs.pk}" for ours, theirs in pairs]
    for address in (
        *(f"/api/v1/runs/{run}/" for run in runs),
        *(f"/api/v1/releases/{release}/" for release in releases),
        *(f"/api/v1/compare/{sent}" for sent in pairs_sent),
        "/api/v1/suites/colours/",
    ):
        answer = rest.get(address)
        assert answer.status_code == 200, address
        numbers += read_json(answer.json(), address)
        values |= {each * scale for each in list_values(answer.json()) for scale in (1, 100)}
    for message in models.OutboxMessage.objects.all():
        numbers += read_json(message.payload, f"message {message.event}")
    place = {"EVALBOARD_URL": live_server.url, "EVALBOARD_TOKEN": build.token(user, *SCOPES)}
    files = [f"--{kind}={tmp_path / kind}" for kind in ("summary", "comment", "junit")]
    judge = [str(after.pk), "--baseline", str(before.pk), "--policy", "lenient", "--nothing-caches", *files]
    for arguments in (
        ["wait", str(before.pk), *files],
        ["compare", str(before.pk), str(after.pk)],
        ["release", *judge],
    ):
        done = CliRunner().invoke(app, arguments, env=place)
        assert done.output, arguments
        for text in (done.output, *(unescape(path.read_text()) for path in tmp_path.iterdir())):
            numbers += read_sentence(re.sub(r"<[^>]*>|\*", " ", text), f"evalboard {arguments[0]}")
    return numbers, values


@pytest.mark.nightly
def test_no_label_has_two_texts_and_every_half_step_one(surfaces: tuple[list[Number], set[float]]) -> None:
    numbers, values = surfaces
    texts = {number.text for number in numbers}
    assert {"84.8", "82.6", "2.2", "86.4"} <= texts
    assert not (conflicts := find_conflicts(numbers)), "\n".join(conflicts)
    assert not (misrounded := find_misrounded(numbers, values)), "\n".join(misrounded)

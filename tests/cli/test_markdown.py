"""Whatever a model or a case says stays text: read back with a Markdown reader that lets raw HTML through."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from evalboard.cli.summary import code, escape, fence, link, shorten, table

READER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
NASTY = [
    "a | b",
    "line\nbreak",
    "| --- |",
    "<script>alert(1)</script>",
    "</code><img src=x onerror=alert(1)>",
    "[click](javascript:alert(1))",
    "![](https://evil.example/pixel.png)",
    "`code` ``more`` \\",
    "**bold** _it_ ~~gone~~ # head",
    "&lt;b&gt; &#124; &amp;",
    "<!-- evalboard: sample -->",
    "-->",
    "\u202egnp.exe",
    "1. one",
    "> quoted",
    "https://evil.example www.evil.example",
    "@everyone #12 !3 $1 %4",
    "\\|",
    "    indented",
    "\ud800 half a pair",
    "\x1b[31m\x00",
]
TEXTS = st.text(st.characters(codec=None), max_size=60) | st.sampled_from(NASTY)


class Seen(HTMLParser):
    """Tags and text of what a browser would show."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.cells: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag in ("td", "p"):
            self.cells.append("")

    def handle_comment(self, data: str) -> None:
        self.tags.append("comment")

    def handle_data(self, data: str) -> None:
        if self.cells and data.strip():
            self.cells[-1] += data


def seen(markdown: str) -> Seen:
    found = Seen()
    found.feed(READER.render(markdown))
    return found


def plain(text: str) -> str:
    """As a reader sees it: the joiners that keep links from being made are not to be seen."""
    return text.replace("\u2060", "")


def drawn(text: str) -> str:
    return re.sub(r"\\u\{([0-9a-f]+)\}", lambda found: chr(int(found[1], 16)), text)


@given(TEXTS, TEXTS)
def test_nothing_breaks_out_of_a_cell(first: str, second: str) -> None:
    page = seen(table(("a", "b", "c"), [(code(first or "x"), escape(second or "x"), "end")]))
    assert page.tags == ["table", "thead", "tr", "th", "th", "th", "tbody", "tr", "td", "code", "td", "td"]
    assert page.cells[-1] == "end"


@given(st.lists(TEXTS | st.sampled_from(["```", "````", "~~~"]), max_size=4))
def test_nothing_ends_a_block_of_code(lines: list[str]) -> None:
    [block] = READER.parse(fence([f" {line}" for line in lines], "diff"))
    assert (block.type, block.info) == ("fence", "diff")
    assert drawn(block.content) == "".join(f" {line}\n" for line in lines)


@given(TEXTS)
def test_a_sentence_is_one_paragraph_of_text(text: str) -> None:
    page = seen(f"Said: {escape(text)}")
    assert page.tags == ["p"]


@pytest.mark.parametrize("text", [each for each in NASTY if each.isprintable()])
def test_what_is_shown_is_what_was_said(text: str) -> None:
    page = seen(table(("a",), [(code(text),)]))
    assert page.cells == [" ".join(text.split())]
    assert plain(seen(f"x{escape(text)}").cells[0]) == f"x{' '.join(text.split())}"


@pytest.mark.parametrize("text", ["\u202egnp", "\x1b[31m", "a\u2066b", "\ud800"])
def test_what_cannot_be_seen_is_shown_by_its_code(text: str) -> None:
    assert re.search(r"\\u\{[0-9a-f]+\}", seen(f"x{escape(text)}").cells[0])
    assert drawn(plain(seen(table(("a",), [(code(text),)])).cells[0])) == text


def test_nobody_is_mentioned_and_no_number_becomes_a_reference() -> None:
    shown = seen(escape("ask @ada about #12, !3 and www.evil.example at https://evil.example")).cells[0]
    assert not re.search(r"[@#!]\w|www\.\w|://", shown)


@given(st.text(max_size=40))
def test_a_link_goes_where_it_says_and_nowhere_else(tail: str) -> None:
    page = READER.render(link("there", f"https://board.example/runs/1/{tail}"))
    [address] = re.findall(r'<a href="([^"]*)">there</a>', page)
    assert address.startswith("https://board.example/runs/1/")


@pytest.mark.parametrize("url", ["javascript:alert(1)", "", "//evil.example", "data:text/html,x"])
def test_what_is_no_web_address_is_no_link(url: str) -> None:
    assert link("there", url) == "there"


def test_long_text_is_cut_and_an_empty_cell_is_a_dash() -> None:
    assert (shorten("abcdef", 4), shorten("abcd", 4)) == ("abc…", "abcd")
    assert seen(table(("a", "b"), [("", "x")])).cells == ["–", "x"]

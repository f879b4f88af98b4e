"""What list pages share: filters of the address, and pages from a place on."""

from dataclasses import dataclass

import pytest

from frontend.shell.lists import Filter, filter_by, newest_first, parse_number, read_filters, slice_page

STATUS = filter_by("status", ["queued", "running"])


def test_a_filter_of_the_address_is_read_and_what_no_filter_knows_is_named():
    filters = read_filters({"status": "running ", "verdict": "maybe", "label": "a=b", "page": "3"}, STATUS, VERDICT)
    assert filters.values == {"status": "running", "verdict": ""}
    assert filters.active == {"status": "running"}
    assert filters.unknown == (("verdict", "maybe"),)
    assert [(each.label, each.value) for each in filters.known] == [("Status", "running"), ("Verdict", "")]


def test_a_free_filter_takes_any_value():
    assert read_filters({"label": "branch=main"}, STATUS, free=["label"]).active == {"label": "branch=main"}


VERDICT = Filter("verdict", "Verdict", (("ship", "Ship"), ("no_ship", "No ship")))


@dataclass(frozen=True)
class Row:
    id: int


ROWS = [Row(number) for number in (9, 8, 7)]


def test_one_row_more_than_the_page_leads_to_the_older_ones():
    page = newest_first(ROWS, limit=2, active={"status": "running"}, since=None)
    assert page.rows == (Row(9), Row(8))
    assert page.older_url == "?status=running&before=8"
    assert (page.newest_url, page.is_filtered, page.is_continued) == ("?status=running", True, False)


def test_the_last_page_leads_back_only():
    page = newest_first(ROWS, limit=3, active={}, since=12, parameter="after")
    assert (page.older_url, page.newest_url, page.is_continued) == ("", "?", True)


@pytest.mark.parametrize(("text", "number"), [("12", 12), ("", None), ("²", None), ("-1", None), ("9" * 18, None)])
def test_nonsense_in_an_address_is_no_number(text, number):
    assert parse_number(text) == number


def test_a_page_by_offset_knows_its_neighbours():
    page = slice_page(list(range(10)), offset=4, limit=3)
    assert (page.rows, page.first, page.last, page.previous, page.next, page.total) == ((4, 5, 6), 5, 7, 1, 7, 10)

"""What list pages share: filters of the address, and pages from a place on."""

from dataclasses import dataclass
from typing import Any

import pytest

from frontend.shell.lists import Filter, ListView, SortHead, filter_by, parse_number, read_filters, read_view
from frontend.shell.tags import sort_head
from runs.store import MAX_COUNTED, RowWindow

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
    name: str
    n: int | None


ROWS = [Row(f"r{i}", i % 7 if i else None) for i in range(60)]
ORDERS = {"name": "name", "size": "n"}


def view_of(query: dict[str, str], **options: Any) -> ListView:
    return read_view(query, orders=ORDERS, default="name", size=50, **options)


def test_a_page_says_where_it_is_and_leads_to_its_neighbours_with_all_settings():
    page = view_of({"size": "25", "offset": "25", "ordering": "-size"}, active={"status": "running"}).slice(ROWS)
    assert (page.first, page.last, page.total, page.is_continued) == (26, 50, "60", True)
    assert page.next_url == "?status=running&ordering=-size&size=25&offset=50"
    assert page.previous_url == "?status=running&ordering=-size&size=25"
    assert [(size, is_on) for size, _, is_on in page.sizes] == [(25, True), (50, False), (100, False)]
    assert page.sizes[1][1] == "?status=running&ordering=-size&size=50"


def test_the_last_page_leads_back_only():
    page = view_of({"offset": "50"}).slice(ROWS)
    assert (page.last, page.next_url, page.previous_url) == (60, "", "?")


def test_what_an_address_says_of_a_list_is_read_as_its_own_where_it_is_nonsense():
    view = view_of({"ordering": "-secret", "size": "1000000", "offset": "-3"})
    assert (view.ordering, view.size, view.offset, dict(view.settings)) == ("name", 50, 0, {})


def test_a_list_is_sorted_and_rows_without_a_value_are_last_in_both_directions():
    assert [row.n for row in view_of({"ordering": "size"}).slice(ROWS).rows][:3] == [0, 0, 0]
    assert view_of({"ordering": "size", "offset": "59"}).slice(ROWS).rows == (ROWS[0],)
    assert view_of({"ordering": "-size", "offset": "59"}).slice(ROWS).rows == (ROWS[0],)


def test_a_head_sorts_and_a_second_press_turns_the_order_around():
    page = view_of({"ordering": "size"}).slice(ROWS)
    assert page.head("name") == SortHead("?ordering=name", "")
    assert page.head("size") == SortHead("?ordering=-size", "ascending")
    assert 'aria-sort="ascending"><a class="sort" href="?ordering=-size">Size<' in sort_head(page, "size", "Size")
    assert sort_head("", "size", "Size", "number") == '<th scope="col" class="number">Size</th>'


def test_a_list_longer_than_what_is_counted_says_so_and_goes_on():
    page = view_of({}).page(RowWindow(tuple(ROWS[:50]), MAX_COUNTED + 1))
    assert (page.total, page.next_url) == ("over 10,000", "?offset=50")


@pytest.mark.parametrize(("text", "number"), [("12", 12), ("", None), ("²", None), ("-1", None), ("9" * 18, None)])
def test_nonsense_in_an_address_is_no_number(text, number):
    assert parse_number(text) == number

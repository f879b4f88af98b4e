"""Page addresses that `reverse` would get wrong, and those of page content as files."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlencode

from evalboard.path_converters import reverse_case


@dataclass(frozen=True, slots=True)
class Export:
    """A page's content from REST, with the page's filters."""

    label: str
    url: str


def response_url(run_id: int, repeat: int, case_id: str) -> str:
    """Return the address of a response's page."""
    return reverse_case("response", run_id, repeat, case_id)


def filtered_url(address: str, filters: Mapping[str, str]) -> str:
    query = urlencode({name: value for name, value in filters.items() if value}, safe=",")
    return f"{address}?{query}" if query else address


@lru_cache(maxsize=1024)  # of every row of a list
def case_url(slug: str, case_id: str) -> str:
    """Return the address of a case's page."""
    return reverse_case("suite_case", slug, case_id)

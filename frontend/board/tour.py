"""The tour's four stops in order (run, comparison, token, release), and what to see at each."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.urls import reverse

from evalboard.contract.release import ReleaseRow
from evalboard.wording.messages import Messages
from frontend.compare.pair_address import comparison_url, pair_url
from runs.tour import Tour

PARAMETER = "tour"  # of an address: the number of the stop, from 1
VERDICTS = Messages(
    "tour_release",
    {
        ("verdict", "asserts"): {"ship": "may ship", "no_ship": "must not ship"},
        ("verdict", "unknown"): {"inconclusive": "is not settled by so few cases"},
        ("verdict", "denies"): {
            "not_comparable": "cannot be judged as a new serving stack, as the weights are others too",
        },
    },
)
LOOKS = Messages(
    "tour",
    {
        ("page", "advises"): {
            "run": "The score has the range of its repeats next to it, and every case is below with its answer. The "
            "folded lines say what served them, down to each pinned setting.",
            "comparison": "The first line is the change. The ledger breaks it down by cause and adds up exactly. The "
            "list below has the cases that broke, with both answers from the outlined token on.",
            "token": "Both answers, token by token. Up to the outlined one they are the same. The bars below are what "
            "each model held likely there.",
            "release": "One word, with its interval and the drop that its policy accepts. Signing it off is left to "
            "people.",
        },
    },
)


@dataclass(frozen=True, slots=True)
class Stop:
    """A page of the tour. label: of its link. look: what to look at, in a sentence or two."""

    number: int
    label: str
    url: str
    look: str


@dataclass(frozen=True, slots=True)
class OtherRelease:
    """One of the sample's other releases, with its verdict in words."""

    row: ReleaseRow
    words: str


def stops(tour: Tour) -> tuple[Stop, ...]:
    """Return the stops with their addresses, which say by their number that they are part of the tour."""
    runs = (int(tour.release.baseline.run), int(tour.release.candidate.run))
    pair = tour.case.outcome.pair
    repeats, at = (pair.repeats, pair.at) if pair else ((1, 1), None)
    case = tour.case.outcome.case
    pages = (
        ("run", f"run {runs[0]}", reverse("run", args=[runs[0]])),
        ("comparison", "the two held against each other", comparison_url(*runs)),
        ("token", f"the token at which {case} parted", pair_url(*runs, case, repeats=repeats, at=at)),
        ("release", f"release {tour.release.id}", tour.release.url),
    )
    return tuple(
        Stop(number, label, _on_tour(url, number), LOOKS.write(code))
        for number, (code, label, url) in enumerate(pages, start=1)
    )


def others(tour: Tour) -> tuple[OtherRelease, ...]:
    """Return the sample's other releases that are decided."""
    return tuple(OtherRelease(row, VERDICTS.write(row.verdict)) for row in tour.others if row.verdict is not None)


def find_stop(address: Mapping[str, str], every: tuple[Stop, ...]) -> Stop | None:
    """Return the tour stop that a page's address names; None outside the tour."""
    return next((stop for stop in every if address.get(PARAMETER) == str(stop.number)), None)


def _on_tour(url: str, number: int) -> str:
    path, mark, fragment = url.partition("#")
    return f"{path}{'&' if '?' in path else '?'}{PARAMETER}={number}{mark}{fragment}"

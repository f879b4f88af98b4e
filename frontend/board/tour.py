"""The tour's four stops in order (run, comparison, token, release), and what to see at each."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.urls import reverse

from evalboard.contract.release import ReleaseRow
from frontend.compare.pair_address import comparison_url, pair_url
from runs.tour import Tour

PARAMETER = "tour"  # of an address: the number of the stop, from 1
VERDICTS = {
    "ship": "may ship",
    "no_ship": "must not ship",
    "inconclusive": "is not settled by so few cases",
    "not_comparable": "cannot be judged as a new serving stack, as the weights are others too",
}


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
        (
            f"run {runs[0]}",
            reverse("run", args=[runs[0]]),
            "The score stands beside the range of its repeats, and every case with its answer below. The folded lines "
            "say what served them, down to each pinned setting.",
        ),
        (
            "the two held against each other",
            comparison_url(*runs),
            "The first line is the change. The ledger takes it apart by cause and adds up exactly; the list below has "
            "the cases that broke, both answers parting at the outlined token.",
        ),
        (
            f"the token at which {case} parted",
            pair_url(*runs, case, repeats=repeats, at=at),
            "Both answers, token by token. Up to the outlined one they are the same; the bars below are what "
            "each model held likely there.",
        ),
        (
            f"release {tour.release.id}",
            tour.release.url,
            "One word, with the interval it rests on and the drop that its policy accepts. Signing it off "
            "is left to people.",
        ),
    )
    return tuple(Stop(at, label, _on_tour(url, at), look) for at, (label, url, look) in enumerate(pages, start=1))


def others(tour: Tour) -> tuple[OtherRelease, ...]:
    """Return the sample's other releases that are decided."""
    return tuple(OtherRelease(row, VERDICTS[row.verdict]) for row in tour.others if row.verdict is not None)


def find_stop(address: Mapping[str, str], every: tuple[Stop, ...]) -> Stop | None:
    """Return the tour stop that a page's address names; None outside the tour."""
    return next((stop for stop in every if address.get(PARAMETER) == str(stop.number)), None)


def _on_tour(url: str, number: int) -> str:
    path, mark, fragment = url.partition("#")
    return f"{path}{'&' if '?' in path else '?'}{PARAMETER}={number}{mark}{fragment}"

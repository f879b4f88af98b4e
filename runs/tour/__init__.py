"""The sample of the tour: its runs and releases, loaded and taken away; who has seen enough of it."""

from runs.tour.read import Tour, tour_of
from runs.tour.tour import LABELS, SUITE, end_tour, load_tour, remove_tour

__all__ = ["LABELS", "SUITE", "Tour", "end_tour", "load_tour", "remove_tour", "tour_of"]

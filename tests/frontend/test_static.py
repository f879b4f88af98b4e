"""Static files: Plotly's one script, and the style elements that it must find ready."""

from pathlib import Path

from django.contrib.staticfiles import finders

from frontend import plotly
from frontend.finders import PlotlyFinder


def test_the_finder_yields_one_file_and_nothing_else():
    assert [name for name, _ in PlotlyFinder().list(None)] == ["plotly.min.js"]
    assert PlotlyFinder().find("plotly/widgetbundle.js") == []


def test_plotly_is_found_where_pages_ask_for_it():
    found = finders.find("plotly/plotly.min.js")
    assert found is not None
    assert Path(found).stat().st_size > 1_000_000


def test_the_style_elements_of_this_plotly_are_known():
    assert plotly.style_ids()[0] == "plotly.js-style-global"
    assert len(plotly.style_ids()) == 2

"""Static files: the scripts taken from packages, and the style elements that Plotly must find ready."""

from pathlib import Path

from django.contrib.staticfiles import finders

from frontend import plotly
from frontend.finders import ScriptFinder


def test_the_finder_yields_what_pages_ask_for_and_nothing_else():
    found = {f"{storage.prefix}/{name}" for name, storage in ScriptFinder().list(None)}
    assert found == {
        "plotly/plotly.min.js",
        "redoc/redoc.standalone.js",
        "django_htmx/htmx-2.min.js",
        "django_htmx/django-htmx.js",
    }
    assert ScriptFinder().find("plotly/widgetbundle.js") == []


def test_plotly_is_found_where_pages_ask_for_it():
    found = finders.find("plotly/plotly.min.js")
    assert found is not None
    assert Path(found).stat().st_size > 1_000_000


def test_the_style_elements_of_this_plotly_are_known():
    assert plotly.style_ids()[0] == "plotly.js-style-global"
    assert len(plotly.style_ids()) == 2

"""Static files: scripts out of packages, which Plotly serves, what is collected, and what is sent compressed."""

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.core.management import call_command
from django.test import Client

from frontend.shell import static_files
from frontend.shell.static_files import ScriptFinder
from tests import build
from tools import plotly_basic

ROOT = Path(__file__).resolve().parents[2]
KINDS_OF_THE_BASIC_BUNDLE = {"bar", "pie", "scatter"}


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
    assert static_files.plotly_style_ids()[0] == "plotly.js-style-global"
    assert len(static_files.plotly_style_ids()) == 2


@pytest.fixture
def basic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder that a basic bundle is looked for in."""
    monkeypatch.setattr(static_files, "BASIC_PLOTLY", tmp_path)
    static_files.plotly_folder.cache_clear()
    yield tmp_path
    static_files.plotly_folder.cache_clear()


@pytest.mark.parametrize(("version", "serves"), [(plotly_basic.VERSION, True), ("1.2.3", False), (None, False)])
def test_the_basic_bundle_serves_where_it_is_of_the_packages_version(basic, version, serves):
    if version is not None:
        (basic / "plotly.min.js").write_text(f"/**\n* plotly.js (basic - minified) v{version}\n*/")
    assert (static_files.plotly_folder() == basic) is serves


def test_the_bundle_that_installing_takes_is_of_the_packages_version(basic):
    """Where this fails after `make lock`: VERSION and SHA256 of tools/plotly_basic.py are of the Plotly before."""
    assert static_files.plotly_version(static_files.plotly_folder()) == plotly_basic.VERSION


def test_pages_draw_only_kinds_that_the_basic_bundle_has():
    sources = [path.read_text() for path in (ROOT / "frontend").rglob("*.py")]
    kinds = {kind for text in sources if '"hoverinfo"' in text for kind in re.findall(r'"type": "(\w+)"', text)}
    traces = kinds - {"date", "line", "rect"}  # of axes and of shapes
    assert traces
    assert traces <= KINDS_OF_THE_BASIC_BUNDLE


def test_static_files_are_collected_once_for_each_change(tmp_path, settings, capsys):
    settings.STATIC_ROOT = str(tmp_path)
    storage = "django.contrib.staticfiles.storage.StaticFilesStorage"  # quick: it neither names anew nor compresses
    settings.STORAGES = settings.STORAGES | {"staticfiles": {"BACKEND": storage}}
    for _ in range(2):
        call_command("collect_static")
    (tmp_path / "collected-from").write_text("something else")
    call_command("collect_static")
    collected, unchanged = "Static files were collected.", "No static file has changed."
    assert capsys.readouterr().out.splitlines() == [collected, unchanged, collected]
    assert (tmp_path / "shell" / "base.css").exists()


@pytest.mark.django_db
def test_a_page_is_sent_compressed_and_a_rest_answer_as_it_is():
    client = Client(headers={"Accept-Encoding": "gzip"})
    page = client.get("/login/")
    assert page.headers["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in page.headers["Vary"]
    assert "<!doctype html>" in gzip.decompress(page.content).decode()
    client.force_login(build.user("ada", "engineer"))
    assert "Content-Encoding" not in client.get("/api/v1/runs/").headers

"""`evalboard signin`: a fresh link for a second browser, without a restart."""

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from django.conf import settings
from django.test import Client

from evalboard.local.folder import DataFolder
from tests import build

URL = "http://127.0.0.1:8899"


def run_signin(data_dir: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "evalboard", "signin"],
        env={**os.environ, "EVALBOARD_DATA_DIR": str(data_dir), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_fresh_link_signs_in_at_what_runs_here(database_url: str, tmp_path: Path) -> None:
    build.user("local", "admin")
    folder = DataFolder(tmp_path)
    folder.prepare()
    folder.hold({"pid": os.getpid(), "url": URL})
    done = run_signin(tmp_path, DATABASE_URL=database_url, EVALBOARD_SECRET_KEY=settings.SECRET_KEY)
    folder.release()
    assert done.returncode == 0, done.stderr
    link = urlsplit(done.stdout.strip())
    assert f"{link.scheme}://{link.netloc}" == URL
    assert Client().post(link.path, dict(parse_qsl(link.query))).status_code == 302


def test_where_nothing_runs_it_says_so(tmp_path: Path) -> None:
    done = run_signin(tmp_path)
    assert done.returncode == 4
    assert "`make up` starts it" in done.stderr

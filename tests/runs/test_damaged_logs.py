"""A damaged log is stored whole or not at all: refused and nothing else, and nothing stays of what is refused."""

import os
import random
from pathlib import Path
from typing import Any

import pytest

from evalboard.core.errors import Conflict, InvalidInput
from evalboard.importers.formats import read_logs
from runs.imports import import_logs, import_reading
from runs.models import ImportRecord, ResponseRecord, RunRecord, SuiteVersionRecord
from tests.importers.mutants import SAMPLES, damage, written
from tests.nightly import few

IS_SOAK = bool(os.environ.get("EVALBOARD_SOAK"))
N_MUTANTS = 300 if IS_SOAK else 3
FIRST = random.SystemRandom().randrange(10**9) if IS_SOAK else 0
STORED = (ImportRecord, RunRecord, ResponseRecord, SuiteVersionRecord)

pytestmark = [pytest.mark.django_db, pytest.mark.drawn]


@pytest.mark.parametrize("sample", few(SAMPLES, 4))
def test_it_is_stored_or_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sample: str) -> None:
    monkeypatch.setattr(import_reading, "read", lambda files, **options: read_here(files, **options))
    for seed in range(FIRST, FIRST + N_MUTANTS):
        what, content = damage(sample, seed)
        before = [kind.objects.count() for kind in STORED]
        try:
            _, runs, _ = import_logs(files=written(tmp_path, content), user=None)
        except (InvalidInput, Conflict):
            assert [kind.objects.count() for kind in STORED] == before, what
        except Exception as error:
            raise AssertionError(f"{what}: {error!r}") from error
        else:
            assert all(run.status in RunRecord.Status.values for run in runs), what


def read_here(files: Any, **options: Any) -> Any:
    """Read in this process: a process for each of thousands takes longer than all else."""
    options.pop("is_wanted")
    return read_logs(files, **options)

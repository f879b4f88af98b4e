"""The cache of models from buckets: what its limit deletes, and what stays."""

import fcntl
import os
from pathlib import Path

import pytest

from worker.vllm_sources import GIB, make_room

MODEL = 1000  # bytes of each


@pytest.mark.parametrize(
    ("limit", "need", "kept"),
    [
        (0, MODEL, "abcd"),
        (5 * MODEL, MODEL, "abcd"),
        (5 * MODEL, MODEL + 1, "bcd"),
        (3 * MODEL, MODEL, "bd"),  # b is in use
        (MODEL, MODEL, "b"),
    ],
)
def test_the_least_recently_used_models_go_and_none_that_is_in_use(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limit: int, need: int, kept: str
) -> None:
    monkeypatch.setenv("EVALBOARD_MODEL_CACHE_GB", str(limit / GIB))
    for age, name in enumerate("dcba"):
        folder = tmp_path / (f"{name}.partial" if name == "c" else name)  # an interrupted download counts, too
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(bytes(MODEL))
        lock = tmp_path / f"{name}.lock"
        lock.touch()
        os.utime(lock, (1_000_000 - age, 1_000_000 - age))
    with (tmp_path / "b.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        make_room(tmp_path, need)
    assert "".join(sorted(each.name[0] for each in tmp_path.iterdir() if each.is_dir())) == kept

"""A run's archive that is read back is that run: every response, trace and score, and who served it."""

import io
from typing import Any

import pytest
from django.contrib.auth import get_user_model

from evalboard.core.archive import RunArchive
from evalboard.core.errors import EvalboardError, NotFound
from runs import exports
from runs.imports import store_archive
from runs.models import EndpointRecord, ImportRecord, ResponseRecord, RunRecord, Suite
from runs.run import delete_run
from tests import build

pytestmark = pytest.mark.django_db(transaction=True)
LABELS = {"sample": "tour"}
# Of this board, not of the run: the ids of what answered, and which blocks its traces stand in.
OWN = {"provenance": ("engine_process", "bucket"), "trace": ("offset", "size", "slot")}


def packed(run: RunRecord) -> bytes:
    return b"".join(exports.run_archive(run.pk))


def told(content: bytes) -> list[dict[str, Any]]:
    """Return the lines of an archive without what is of one board."""
    lines = [response.row for response in RunArchive(io.BytesIO(content)).responses()]
    return [
        line
        | {
            part: line[part] and {key: value for key, value in line[part].items() if key not in own}
            for part, own in OWN.items()
        }
        for line in lines
    ]


@pytest.fixture
def run() -> RunRecord:
    return build.finished_run(("blue", "red", None), ("blue", "=2+2", "red"))


def store(content: bytes) -> RunRecord:
    person, _ = get_user_model().objects.get_or_create(username="mira")
    return store_archive(content, name="run.zip", labels=LABELS, user=person)


def test_what_is_read_back_is_what_was_written(run: RunRecord) -> None:
    content = packed(run)
    before = {"status": run.status, "ran_at": run.ran_at, "profile": run.profile, "bucket": run.bucket}
    delete_run(run_id=run.pk)
    back = store(content)
    assert told(packed(back)) == told(content)
    assert {name: getattr(back, name) for name in before} == before
    stated, again = (RunArchive(io.BytesIO(each)).manifest for each in (content, packed(back)))
    for part in ("suite", "scorers", "repeats", "models", "profile"):
        assert again[part] == stated[part]
    assert (back.labels, back.source.tool if back.source else "") == (LABELS, "Evalboard")


def test_it_is_attested_and_nothing_decodes_it_here(run: RunRecord) -> None:
    EndpointRecord.objects.filter(pk=run.endpoint_id).update(model_adapter="/models/tone")
    back = store(packed(run))
    assert back.endpoint.model_repo == "adapter tone on paint-1b"
    assert (back.is_reported, back.is_log) == (False, False)
    assert back.endpoint.engine == "imported"
    assert not back.repeats.filter(shards__status="queued").exists()


@pytest.mark.nightly
def test_an_archive_is_stored_once(run: RunRecord) -> None:
    content = packed(run)
    assert store(content) == store(content)
    assert ImportRecord.objects.count() == 1


def test_a_damaged_one_is_refused_and_leaves_nothing(run: RunRecord) -> None:
    content = packed(run)
    n = ResponseRecord.objects.count()
    at = content.index(b"EvT") + 12  # in the first block of its traces
    with pytest.raises(EvalboardError, match="damaged"):
        store(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    assert (ImportRecord.objects.count(), ResponseRecord.objects.count()) == (0, n)


def test_without_its_suite_it_is_refused(run: RunRecord) -> None:
    content = packed(run)
    Suite.objects.update(slug="another")
    with pytest.raises(NotFound, match="push it first"):
        store(content)
    assert not ImportRecord.objects.exists()

"""A name is not a weight: two names are two models until a person says that they are one, and none says of weights."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from evalboard.core.errors import Conflict, InvalidInput, NotFound
from evalboard.importers import formats
from evalboard.importers.files import LogFile
from runs import compare as compare_slice
from runs.compare import trace_pair
from runs.fingerprints import logged_names, say_same_model, take_back_same_model
from runs.models import BucketRecord, ComparisonRecord, DivergenceRecord, Model, RunRecord, SameModelRecord
from runs.pairs import pair_facts
from runs.release import decide_release
from tests import build
from tests.runs import judged, logs
from tests.runs.test_imports import causes, codes

pytestmark = pytest.mark.django_db
OLD, NEW = "lab/paint-1b", "lab/paint-2b"


@pytest.fixture
def admin(db: None) -> User:
    return User.objects.create_user("ada")


def logged(model: str, name: str, *, says: str = "blue", revision: str = "") -> RunRecord:
    """A log of five repeats of a model, served by the one stack that all these logs report."""
    by = replace(logs.FLOAT32, model=model)
    given = [
        logs.response(case, repeat, "it", " is", f" {says}", score=float(says == "blue"), served_by=by)
        for case in logs.CASES
        for repeat in range(1, 6)
    ]
    return logs.stored(logs.log(*given, model=model, revision=revision), name)


def compare(one: RunRecord, other: RunRecord) -> ComparisonRecord:
    return compare_slice.compare(baseline=one.pk, candidate=other.pk)


@pytest.mark.nightly
def test_another_name_on_one_reported_stack_is_judged_and_says_how_the_stack_is_known(admin: User) -> None:
    old, new = logged(OLD, "old"), logged(NEW, "new", says="red")
    compared = compare(old, new)
    assert (codes(compared), compared.summary["comparable"]) == (["stack_reported"], True)
    assert [moved["field"] for moved in compared.summary["moved"]] == ["model"]
    assert causes(compared) == {"model_name_changed": 15}
    page = trace_pair(old.pk, new.pk, case_id="sky", repeats=(1, 1))
    assert page.cause == "model_name_changed"
    assert page.text.startswith(f"The model has another name: {OLD} → {NEW}. Its weights may be the same.")
    verdict = judged.release(old, new, policy="paired", nothing_caches=True, user=admin).verdict
    assert verdict is not None
    assert verdict.word == "no_ship"
    assert "stack_reported" in judged.codes(verdict.document["warnings"])


@pytest.mark.nightly
def test_two_names_that_are_said_to_be_one_model_count_as_one_until_that_is_taken_back(admin: User) -> None:
    old, new = logged(OLD, "old"), logged(NEW, "new", says="red")
    first, release = compare(old, new), judged.release(old, new, policy="paired", treatment="stack", user=admin)
    assert release.verdict is not None
    assert judged.codes(release.verdict.document["reasons"])[0] == "model_changed"
    said = say_same_model(name=NEW, other_name=OLD, reason="One file under two names.", user=admin)
    joined = compare(old, new)
    assert joined.pk != first.pk
    assert joined.summary["moved"] == []
    assert "model_name_changed" not in causes(joined)
    assert trace_pair(old.pk, new.pk, case_id="sky", repeats=(1, 1)).cause == "larger_shift"
    again = decide_release(release_id=release.pk)
    assert judged.codes(again.document["reasons"])[0] != "model_changed"
    take_back_same_model(same_model_id=said.pk, user=admin)
    assert causes(compare(old, new)) == {"model_name_changed": 15}
    kept = SameModelRecord.objects.get()
    assert (kept.said_by, kept.taken_back_by, kept.name, kept.other_name) == (admin, admin, OLD, NEW)
    assert kept.taken_back_at is not None
    with pytest.raises(NotFound):
        take_back_same_model(same_model_id=said.pk, user=admin)
    say_same_model(name=OLD, other_name=NEW, reason="It was right.", user=admin)


def test_names_are_joined_through_others(admin: User) -> None:
    runs = [logged(name, name) for name in ("a/x", "b/x", "c/x")]
    say_same_model(name="a/x", other_name="b/x", reason="one", user=admin)
    say_same_model(name="c/x", other_name="b/x", reason="one", user=admin)
    assert compare(runs[0], runs[2]).summary["moved"] == []
    with pytest.raises(Conflict, match="one model already"):
        say_same_model(name="a/x", other_name="c/x", reason="one", user=admin)


def test_only_names_of_logs_are_joined_and_with_a_reason(admin: User) -> None:
    logged(OLD, "old")
    build.bucket()  # of paint-1b, whose weights are known
    assert logged_names() == (OLD,)
    for names in ((OLD, OLD), (OLD, "paint-1b"), (OLD, "nobody"), (OLD, "a\0b")):
        with pytest.raises(InvalidInput) as refused:
            say_same_model(name=names[0], other_name=names[1], reason="one", user=admin)
        assert list(refused.value.fields) == ["other_name"]
    logged(NEW, "new")
    with pytest.raises(InvalidInput) as refused:
        say_same_model(name=OLD, other_name=NEW, reason=" ", user=admin)
    assert list(refused.value.fields) == ["reason"]
    assert not SameModelRecord.objects.exists()


@pytest.mark.nightly
def test_revisions_that_logs_declare_are_weights() -> None:
    one, other = logged(OLD, "one", revision="1f3a"), logged(OLD, "two", says="red", revision="77c0")
    compared = compare(one, other)
    assert causes(compared) == {"model_changed": 15}
    assert codes(compared) == ["stack_reported"]
    row = DivergenceRecord.objects.filter(comparison=compared).first()
    assert row is not None
    assert (row.evidence["model_revision_baseline"], row.evidence["model_revision_candidate"]) == ("1f3a", "77c0")
    undeclared = logged(OLD, "three", says="red")
    assert "model_changed" not in causes(compare(one, undeclared))


def test_the_same_weights_under_other_file_names_are_the_same_weights() -> None:
    weights = {"size": 9, "sha256": "c" * 64}
    models = [
        Model.objects.create(digest=str(number) * 64, name=f"m{number}", line="m", files=files)
        for number, files in enumerate(
            [
                {"model.safetensors": weights, "README.md": {"size": 1, "sha256": "d" * 64}},
                {"model-00001-of-00001.safetensors": weights},
                {"model.safetensors": weights | {"sha256": "e" * 64}},
            ]
        )
    ]
    version, found = build.suite(), []
    for model in models:
        bucket = BucketRecord.objects.create(model=model, fingerprint=build.bucket().fingerprint, batch_class="alone")
        run = build.run(version)
        found.append(pair_facts.served_beside(run, run, [bucket])[bucket.pk].weights_digest)
    assert found[0] == found[1] != found[2]


def test_lm_eval_declares_the_commit_of_the_model(tmp_path: Path) -> None:
    results = {
        "results": {"task": {}},
        "config": {"model": "hf", "model_args": "pretrained=lab/paint-1b,revision=main", "model_sha": "1f3a"},
        "n-shot": {"task": 0},
    }
    sample = {"doc_id": 0, "doc": {"q": "sky"}, "target": "blue", "arguments": [["Sky?", {}]], "resps": [["blue"]]}
    files = []
    for name, text in (("results_2026-11-21.json", results), ("samples_task_2026-11-21.jsonl", sample)):
        path = tmp_path / name
        path.write_text(json.dumps(text))
        files.append(LogFile(name, path))
    _, [run] = formats.read_logs(files, format="lm_eval")
    assert (run.model, run.revision) == (OLD, "1f3a")

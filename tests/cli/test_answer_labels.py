"""`evalboard labels`: the figures, and labels made elsewhere as CSV or JSONL."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from runs.models import LabelRecord, RunRecord
from tests import build
from tests.nightly import few

Call = Callable[..., "CompletedProcess[str]"]
CSV = "case,repeat,text,label\nsky,1,,right\nsea,,red,wrong\na/b c,2,,Right\n"
JSONL = '{"case": "sky", "repeat": 1, "label": "right"}\n\n{"case": "sea", "text": "red", "label": "wrong"}\n'


@pytest.fixture
def run(transactional_db: None) -> RunRecord:
    return build.finished_run()


def test_labels_of_a_file_are_stored_and_the_figures_printed(evalboard: Call, run: RunRecord, tmp_path: Path) -> None:
    assert evalboard("labels", str(run.pk)).stdout.splitlines()[0] == "No answer is labelled yet."
    (tmp_path / "labels.csv").write_text(CSV)
    (tmp_path / "labels.jsonl").write_text(JSONL + '{"case": "sea", "text": "blue", "label": true}\n')
    for name in ("labels.csv", "labels.jsonl"):
        done = evalboard("labels", str(run.pk), "--import", str(tmp_path / name))
        assert (done.returncode, done.stderr) == (0, "")
    assert sorted(LabelRecord.objects.values_list("value", flat=True)) == [0.0, 1.0, 1.0, 1.0]
    lines = done.stdout.splitlines()
    assert lines[0] == "Labels: 4 answers; corrected pass rate 83.3 (83.3 to 83.3), raw 50.0."
    assert lines[2].split() == ["scorer", "kappa", "true", "positives", "false", "positives", "pass", "rate"]
    assert lines[3].split()[1] == "(own)"
    assert lines[-1].endswith(f"/runs/{run.pk}/labels/")
    told = json.loads(evalboard("labels", str(run.pk), "--json").stdout)
    assert (told["n_labelled"], told["n_answers"]) == (4, 4)


BAD = {
    "empty.csv": ("case,repeat,label\n", "has no label"),
    "word.csv": ("case,repeat,label\nsky,1,perhaps\n", "label 1: the label is perhaps; write right or wrong"),
    "repeat.csv": ("case,repeat,label\nsky,one,right\n", "label 1: the repeat is one; write a whole number"),
    "more.csv": ("case,label\nsky,right,left\n", "label 1: give case, label, and repeat or text"),
    "list.jsonl": ("[1]\n", "label 1: give case, label, and repeat or text"),
    "broken.jsonl": ('{"case"\n', "cannot be read"),
    "bytes.csv": ("case,label\nsk\udcff,right\n", "cannot be read"),
    "unknown.csv": ("case,repeat,label\nno-such,1,right\n", "labels[0].case: The suite of run"),
}


@pytest.mark.parametrize("name", few(BAD, 3))
def test_a_file_that_names_no_answer_is_refused_with_its_place(
    evalboard: Call, run: RunRecord, tmp_path: Path, name: str
) -> None:
    text, said = BAD[name]
    (tmp_path / name).write_bytes(text.encode(errors="surrogateescape"))
    done = evalboard("labels", str(run.pk), "--import", str(tmp_path / name))
    assert (done.returncode, said in done.stderr) == (64, True), done.stderr
    assert not LabelRecord.objects.exists()
    assert evalboard("labels", str(run.pk), "--import", str(tmp_path / "none.csv")).returncode == 64

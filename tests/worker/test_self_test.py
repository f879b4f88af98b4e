"""The node's self-test: that it can tell, what it tells of this machine, and what waits for it."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from evalboard.core.profile import DEFAULT_PROFILES, TESTED_BATCH_SIZES, check_self_test, digest_node
from runs.catalogue import create_profile
from runs.models import RunRecord, SelfTestRecord, Shard
from runs.run import create_run
from runs.work import record_self_test
from tests import build
from tests.self_tests import result
from worker import self_test
from worker.engines import kernels
from worker.engines.base import EngineDied, EngineSpec
from worker.runner import Runner

ROOT = Path(__file__).resolve().parents[2]
GPU = {"kind": "cuda", "gpus": [{"name": "NVIDIA H100", "capability": 9.0}], "n_cores": 32}
VERSIONS = {"vllm": "0.32.0"}
DESCRIBED = {
    "hardware": {name: value for name, value in GPU.items() if name != "n_cores"},
    "n_cores": 32,
    "versions": VERSIONS,
}
# Sums whose order is written out, so that no kernel of this machine has a say in them.
PLANTED = """
import json, sys
sys.path.insert(0, sys.argv[1])
import torch, torch_check as check

inputs = check.SeededInputs("cpu", "float32")
sizes = [2, 3, 4, 8, 16, 32, 64]
terms = inputs.normal(max(sizes), 64)

def in_order(parts):
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total

def product(first, last, n_parts):
    columns = terms[first:last].unbind(1)
    size = len(columns) // n_parts
    return in_order([in_order(columns[at : at + size]) for at in range(0, len(columns), size)])

def cut_from_8_on(first, last):
    return product(first, last, 4 if last - first >= 8 else 1)

def last_row_of_64_alone(first, last):
    found = product(first, last, 1)
    if last - first == 64:
        found[-1] = torch.nextafter(found[-1], torch.tensor(100.0))
    return found

n_calls = 0
def every_third_repeat():
    global n_calls
    n_calls += 1
    return product(0, 64, 4 if n_calls > 1 and (n_calls - 1) % 3 == 0 else 1)

def refuses():
    raise NotImplementedError("not implemented for 'Half'")

print(json.dumps({
    "steady": check.facts_of_step(lambda first, last: product(first, last, 1), sizes),
    "cut": check.facts_of_step(cut_from_8_on, sizes),
    "one_bit": check.facts_of_step(last_row_of_64_alone, sizes),
    "third": check.facts_of_repeats(every_third_repeat),
    "refused": check.facts_or_problem(refuses, check.facts_of_repeats),
    "infinite": check.facts_or_problem(lambda: lambda: torch.tensor([float("inf")]), check.facts_of_repeats),
    "signed_zero": check.same_bits(torch.tensor([0.0]), torch.tensor([-0.0])),
    "same_nan": check.same_bits(torch.tensor([float("nan")]), torch.tensor([float("nan")])),
    "n_repeats": check.N_REPEATS,
}))
"""


@pytest.fixture(scope="module")
def planted(vllm_python: Path) -> dict[str, Any]:
    """What the check's own measures say of sums that were planted to differ, and of one that was not."""
    done = subprocess.run(
        [vllm_python, "-c", PLANTED, str(ROOT / "worker")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.engine
@pytest.mark.nightly
def test_a_sum_cut_by_the_batch_size_is_found_at_each_size(planted: dict[str, Any]) -> None:
    assert planted["cut"]["differing_batch_sizes"] == [8, 16, 32, 64]
    assert planted["cut"]["largest_batch_difference"] > 0
    assert planted["cut"]["first_differing_repeat"] is None


@pytest.mark.engine
@pytest.mark.nightly
def test_one_bit_of_one_row_is_found(planted: dict[str, Any]) -> None:
    assert planted["one_bit"]["differing_batch_sizes"] == [64]


@pytest.mark.engine
@pytest.mark.nightly
def test_the_first_repeat_with_other_bits_is_found(planted: dict[str, Any]) -> None:
    assert planted["third"]["first_differing_repeat"] == 3
    assert planted["third"]["largest_repeat_difference"] > 0
    assert planted["n_repeats"] > 3


@pytest.mark.engine
@pytest.mark.nightly
def test_a_sum_in_one_order_is_the_same_everywhere(planted: dict[str, Any]) -> None:
    assert planted["steady"] == {
        "differing_batch_sizes": [],
        "largest_batch_difference": 0.0,
        "first_differing_repeat": None,
        "largest_repeat_difference": 0.0,
    }


@pytest.mark.engine
@pytest.mark.nightly
def test_bits_are_compared_and_not_values(planted: dict[str, Any]) -> None:
    assert (planted["signed_zero"], planted["same_nan"]) == (False, True)


@pytest.mark.engine
@pytest.mark.nightly
def test_what_cannot_be_measured_says_why(planted: dict[str, Any]) -> None:
    assert planted["refused"] == {"problem": "NotImplementedError: not implemented for 'Half'"}
    assert planted["infinite"] == {"problem": "ArithmeticError: The result is not finite."}


@pytest.mark.engine
@pytest.mark.nightly
@pytest.mark.django_db
def test_this_machine_is_measured_and_its_result_kept(
    vllm_python: Path, settings: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every operation in every dtype, in small batches: the large ones take most of a minute and the same path."""
    settings.VLLM_PYTHON = str(vllm_python)
    monkeypatch.setattr(kernels, "TESTED_BATCH_SIZES", TESTED_BATCH_SIZES[:2])
    assert self_test.run(as_json=True) == 0
    told = json.loads(capsys.readouterr().out)
    test = SelfTestRecord.objects.get()
    assert (told["id"], told["result"]) == (str(test.pk), test.result)
    check_self_test(test.result)
    given = [measured for measured in test.result["kernels"].values() if measured is not None]
    for measured in given:
        assert not [row for row in measured["steps"] + measured["varying"] if row["problem"]]
        assert measured["env"]["VLLM_BATCH_INVARIANT"] in ("0", "1")
        if measured["device"] == "cpu":
            assert str(measured["n_threads"]) == measured["env"]["OMP_NUM_THREADS"]


@pytest.fixture
def scripted(tmp_path: Path, settings: Any) -> Callable[[str], None]:
    """Make a shell script the engine's interpreter: it describes a GPU, and does this for a check of $2."""

    def install(check: str) -> None:
        python = tmp_path / "python"
        python.write_text(
            f"#!/bin/sh\nif [ $2 = --describe ]; then echo '{json.dumps(DESCRIBED)}'; exit; fi\n{check}\n"
        )
        python.chmod(0o755)
        settings.VLLM_PYTHON = str(python)

    return install


def measured_by(given: Mapping[str, Any], folder: Path) -> str:
    """A check that logs like vLLM, sees under which kernels it was asked for, and tells these results."""
    for kind, told in given["kernels"].items():
        (folder / f"{kind}-{int(kind == 'invariant')}.json").write_text(json.dumps(told))
    return f'echo INFO an import; cat "{folder}/$2-$VLLM_BATCH_INVARIANT.json"'


@pytest.mark.django_db
def test_a_gpu_is_measured_under_both_kinds_of_kernels(
    scripted: Callable[[str], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted(measured_by(result(device="cuda", differing=[("plain", "product", "bfloat16")]), tmp_path))
    assert self_test.run(as_json=False) == 0
    test = SelfTestRecord.objects.get()
    assert test.is_invariant
    assert test.node_digest == digest_node(GPU, VERSIONS)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if "kernels" in line] == ["plain", "invariant"]
    [plain, invariant] = [line for line in lines if line.startswith("matrix product")]
    assert "other bits in batches of 3, 8" in plain
    assert "other bits" not in invariant
    assert f"{test.host} is invariant" in "\n".join(lines)


@pytest.mark.django_db
def test_a_node_that_varies_is_measured_all_the_same(
    scripted: Callable[[str], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted(measured_by(result(device="cuda", varying=[("invariant", "attention", "float16")]), tmp_path))
    assert self_test.run(as_json=False) == 0
    assert "is not invariant" in capsys.readouterr().out


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("check", "words"),
    [
        pytest.param("echo no kernel image >&2; exit 1", "no kernel image", id="check-fails"),
        pytest.param("sleep 5", "were not measured in 0.5 seconds", id="check-hangs"),
        pytest.param("echo '{}'", "kernels.plain.steps", id="check-tells-nothing"),
    ],
)
def test_a_node_that_cannot_be_measured_is_told_in_words(
    scripted: Callable[[str], None],
    check: str,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(kernels, "MEASURE_SECONDS", 0.5)
    scripted(check)
    assert self_test.run(as_json=False) == 4
    assert words in caplog.text
    assert not SelfTestRecord.objects.exists()


@pytest.mark.django_db
def test_an_interpreter_without_vllm_cannot_be_tested(settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    settings.VLLM_PYTHON = sys.executable
    assert self_test.run(as_json=False) == 4
    assert "cannot load vLLM" in caplog.text


@pytest.fixture
def invariant_run(transactional_db: None) -> RunRecord:
    build.suite()
    build.endpoint()
    create_profile(slug="invariant", title="", settings=DEFAULT_PROFILES["invariant"]["settings"])
    return create_run(suite="colours", endpoint="local", profile="invariant", repeats=1)


def test_a_worker_leaves_an_invariant_run_alone_until_its_node_has_passed(invariant_run: RunRecord) -> None:
    asked: list[EngineSpec] = []

    def make_engine(spec: EngineSpec) -> Any:
        asked.append(spec)
        raise EngineDied("engine_error", "There is no engine in this test.")

    untested = Runner(pool="default", hardware={**GPU, "versions": VERSIONS}, make_engine=make_engine)
    tested = Runner(pool="default", hardware={**GPU, "versions": VERSIONS}, make_engine=make_engine)
    assert untested.claim_and_run()
    untested.worker.refresh_from_db()
    assert "evalboard worker --self-test" in untested.worker.left_alone["why"]
    assert (asked, Shard.objects.get().status) == ([], Shard.Status.QUEUED)

    record_self_test(host=tested.worker.host, hardware=GPU, versions=VERSIONS, result=result(device="cuda"))
    assert tested.claim_and_run()
    assert len(asked) == 1

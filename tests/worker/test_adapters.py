"""LoRA adapters: each is a model of its own on one stack, and one engine serves those of a base in turn."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalboard.core.profile import DEFAULT_PROFILES
from runs.catalogue import create_endpoint, create_profile
from runs.models import BucketRecord, EngineProcess, ResponseRecord, RunRecord
from runs.release import create_release, release_report
from runs.run import create_run, run_report
from runs.suites import push_suite
from tests.worker.conftest import Join, Start, Wait, ended
from worker import vllm_start

CASES = [{"id": f"case-{n}", "prompt": "tune", "target": "blue"} for n in range(20)]
QUESTIONS = ("What is the capital of France?", "Name a colour.", "List five animals.", "Count to ten.")
RANK = 8
SHAPES = {"q_proj": (576, 576), "v_proj": (576, 192)}  # of the sample model: inputs and outputs
MAKE = """
import json, sys
import numpy as np
from pathlib import Path
from safetensors.numpy import save_file

folder, seed, scale, rank, shapes = json.loads(sys.argv[1])
draw, tensors = np.random.default_rng(seed), {}
for layer in range(30):
    for name, (n_in, n_out) in shapes.items():
        place = f"base_model.model.model.layers.{layer}.self_attn.{name}"
        tensors[f"{place}.lora_A.weight"] = (draw.standard_normal((rank, n_in)) * 0.02).astype(np.float32)
        tensors[f"{place}.lora_B.weight"] = (draw.standard_normal((n_out, rank)) * scale).astype(np.float32)
save_file(tensors, Path(folder) / "adapter_model.safetensors")
"""


@pytest.mark.django_db
def test_a_release_of_one_adapter_against_another_is_judged_as_a_model_by_one_engine(
    new_run: Callable[..., RunRecord], join_worker: Join, work_until: Wait, settings: Any
) -> None:
    roots = settings.MODEL_ROOTS[0]
    new_run(["say blue"], repeats=1)  # the base itself, without an adapter
    push_suite(document={"slug": "tuned", "title": "Tuned", "scorer": {"kind": "exact"}, "cases": CASES})
    create_endpoint(
        slug="tuned",
        model_path=str(roots / "scripted"),
        model_adapter=str(roots / "blue"),
        dtype="float32",
        line="scripted",
    )
    named: dict[str, Any] = {"suite": "tuned", "endpoint": "tuned", "profile": "pinned"}
    before = create_run(**named)
    worse = create_run(**named, model={"adapter": str(roots / "red")})
    create_run(**named, model={"adapter": str(roots / "wide")}, repeats=1)
    worker = join_worker()
    for run in RunRecord.objects.order_by("pk"):
        work_until(lambda run=run: ended(run), "the run ends")  # type: ignore[misc]

    base = BucketRecord.objects.get(model__name="scripted")
    report = run_report(worse.pk)
    [bucket] = report.buckets
    assert bucket.model.name == "adapter red on scripted"
    assert bucket.model.adapter is not None
    assert bucket.model.adapter.base_digest == base.model.digest
    assert bucket.fingerprint.id == str(base.fingerprint_id)
    names = BucketRecord.objects.values_list("model__name", flat=True)
    assert set(names) == {"scripted", *(f"adapter {name} on scripted" for name in ("blue", "red", "wide"))}
    assert ResponseRecord.objects.filter(repeat__run=worse, text="red").count() == 5 * len(CASES)
    # One for the base, two for blue's halves, one for red's second half, one for the adapter of another rank: red's
    # first half is decoded by the engine that blue left.
    assert len(worker.engines) == 5
    checks = EngineProcess.objects.filter(bucket__model__name__startswith="adapter red").values_list(
        "self_checks", flat=True
    )
    assert all(check["same"] for process in checks for check in process)

    verdicts = []
    for candidate, baseline in ((worse, before), (before, worse)):
        gate = {"suite": "tuned", "candidate": candidate.pk, "baseline": baseline.pk}
        judged = release_report(create_release(gates=[gate]).pk)
        [side] = judged.gates
        verdicts.append((judged.verdict, judged.treatment, side.candidate.model, side.baseline.model))
    assert verdicts == [
        ("no_ship", "model", "adapter red on scripted", "adapter blue on scripted"),
        ("ship", "model", "adapter blue on scripted", "adapter red on scripted"),
    ]


@pytest.mark.parametrize(
    ("config", "rank"), [({"r": 8}, 8), ({"r": 12}, 16), ({"r": 8, "rank_pattern": {"q_proj": 33}}, 64)]
)
def test_an_engine_has_the_smallest_rank_that_an_adapter_fits(
    config: dict[str, Any], rank: int, tmp_path: Path
) -> None:
    file = tmp_path / "adapter_config.json"
    file.write_text(json.dumps(config))
    assert vllm_start.lora_rank(file, (1, 8, 16, 32, 64)) == rank


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"r": 65}', "has rank 65; vLLM takes ranks up to 64"),
        ('{"peft_type": "PREFIX_TUNING"}', "says no rank"),
        ('{"r": null}', "says no rank"),
        ('{"r": 8', "says no rank"),
    ],
)
def test_an_adapter_that_no_engine_fits_is_refused_in_a_sentence(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "adapter_config.json"
    file.write_text(text)
    with pytest.raises(vllm_start.AdapterRefused, match=words):
        vllm_start.lora_rank(file, (8, 64))


def test_an_engine_takes_what_is_free_of_its_fullest_gpu_and_no_more_than_vllm_would() -> None:
    gib = 1 << 30
    assert vllm_start.memory_share([(79 * gib, 80 * gib)], most=0.92) == 0.92
    assert vllm_start.memory_share([(79 * gib, 80 * gib), (40 * gib, 80 * gib)], most=0.92) == 0.49


@pytest.fixture
def adapters(vllm_python: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Two adapters of the sample model, as PEFT would write them."""
    folders = tmp_path / "first", tmp_path / "second"
    for seed, (folder, scale) in enumerate(zip(folders, (0.02, 0.05), strict=True)):
        folder.mkdir()
        described = {"peft_type": "LORA", "r": RANK, "lora_alpha": 2 * RANK, "target_modules": list(SHAPES)}
        (folder / "adapter_config.json").write_text(json.dumps(described))
        given = json.dumps([str(folder), seed, scale, RANK, SHAPES])
        subprocess.run([vllm_python, "-c", MAKE, given], check=True)
    return folders


@pytest.mark.engine
@pytest.mark.nightly
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("setup", ["one machine"], indirect=True)
def test_one_real_engine_serves_two_adapters_whose_bits_come_back(
    adapters: tuple[Path, Path],
    sample_model: Path,
    vllm_python: Path,
    settings: Any,
    start_worker: Start,
    wait_until: Wait,
) -> None:
    settings.MODEL_ROOTS = [sample_model.parent, adapters[0].parent]
    cases = [{"id": f"case-{n}", "prompt": prompt, "target": "blue"} for n, prompt in enumerate(QUESTIONS)]
    scorer = {"kind": "contains"}
    push_suite(document={"slug": "real", "title": "Real", "max_tokens": 8, "scorer": scorer, "cases": cases})
    create_profile(slug="pinned", title="", settings=DEFAULT_PROFILES["pinned"]["settings"])
    base = {"model_path": str(sample_model), "dtype": "float32", "line": "smollm2", "max_model_len": 512}
    for name, folder in zip(("first", "second"), adapters, strict=True):
        create_endpoint(slug=name, model_adapter=str(folder), **base)
    start_worker(EVALBOARD_VLLM_PYTHON=str(vllm_python), EVALBOARD_RESPONSE_SECONDS="120")

    def decode(endpoint: str) -> RunRecord:
        run = create_run(suite="real", endpoint=endpoint, profile="pinned", repeats=1)
        wait_until(lambda: ended(run), "the run has ended")
        return run

    first, second, again = decode("first"), decode("second"), decode("first")
    reports = [run_report(run.pk) for run in (first, second, again)]
    assert [report.status for report in reports] == ["finished"] * 3
    assert [report.pins.broken for report in reports] == [()] * 3
    served = [report.buckets[0] for report in reports]
    assert [bucket.model.name for bucket in served] == [
        f"adapter {name} on {sample_model.name}" for name in ("first", "second", "first")
    ]
    assert len({bucket.fingerprint.digest for bucket in served}) == 1
    assert len(set(EngineProcess.objects.values_list("manifest__host__pid", flat=True))) == 1
    assert reports[2].twin is not None
    assert (reports[2].twin.run, reports[2].twin.n_equal) == (str(first.pk), len(QUESTIONS))
    gate = {"suite": "real", "candidate": second.pk, "baseline": first.pk}
    judged = release_report(create_release(gates=[gate]).pk)
    assert judged.treatment == "model"
    assert judged.verdict == "inconclusive"  # of one repeat of four cases, and comparable
    texts = [
        list(ResponseRecord.objects.filter(repeat__run=run).values_list("text", flat=True)) for run in (first, second)
    ]
    assert texts[0] != texts[1]

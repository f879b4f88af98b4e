"""A probe on the real engine and the real model: its sampler honours seeds, and is given every one of them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalboard.core.profile_defaults import DEFAULT_PROFILES
from runs import services
from runs.selectors.probe import probe_calls, probe_detail
from tests.worker.conftest import WorkerProcess

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]


# How a probe is claimed in each set-up is tested with the scripted engine, in test_probe.py.
@pytest.mark.parametrize("setup", ["one machine"], indirect=True)
def test_seeds_are_honoured_by_the_real_sampler(
    start_worker: Callable[..., WorkerProcess],
    wait_until: Callable[[Callable[[], object], str], None],
    settings: Any,
    vllm_python: Path,
    sample_model: Path,
) -> None:
    settings.MODEL_ROOTS = [sample_model.parent]
    services.create_profile(slug="pinned", title="", settings=DEFAULT_PROFILES["pinned"]["settings"])
    services.create_endpoint(
        slug="float32", model_path=str(sample_model), dtype="float32", line="smollm2", max_model_len=256
    )
    asked = {"prompts": 2, "calls_per_group": 5, "max_tokens": 12}
    probe = services.create_probe(endpoint="float32", kind="seed", parameters=asked)
    start_worker(
        EVALBOARD_VLLM_PYTHON=str(vllm_python),
        EVALBOARD_MODEL_ROOTS=str(sample_model.parent),
        EVALBOARD_RESPONSE_SECONDS="120",
        EVALBOARD_LEASE_SECONDS="30",
    )
    wait_until(lambda: probe_detail(probe.pk).row.is_terminal, "the probe has ended")

    detail = probe_detail(probe.pk)
    assert (detail.row.status, detail.error, detail.n_done) == ("finished", "", 22)
    assert detail.row.state == "honoured", detail.row.sentence
    calls = probe_calls(probe.pk)
    for prompt in (0, 1):
        same = {call.text for call in calls if (call.prompt, call.group) == (prompt, "same")}
        different = {call.text for call in calls if (call.prompt, call.group) == (prompt, "different")}
        assert len(same) == 1  # alone in each step, an answer follows from its seed to the bit
        assert len(different) == 5
    assert all(len(call.tokens) == 12 for call in calls)  # drawn with the real vocabulary
    assert not any("token" in word for call in calls for word in call.tokens if word.startswith("⟨"))

"""`ENGINE=none make up`: when no engine is started. tests/local/test_readme.py has what can be done there."""

from pathlib import Path

import pytest

from evalboard.local import engine
from evalboard.local.report import CannotStart
from evalboard.local.up import Options
from tests.local.test_up import assert_refused, run_up


def test_another_word_for_the_engine_is_refused(tmp_path: Path) -> None:
    assert_refused(run_up(tmp_path, ENGINE="gpu"), "ENGINE=gpu", "ENGINE=none")


@pytest.mark.parametrize(
    ("system", "processor", "variables", "reason"),
    [
        ("Linux", "x86_64", {}, None),
        ("Linux", "x86_64", {"ENGINE": ""}, None),
        ("Linux", "x86_64", {"ENGINE": "none"}, "ENGINE=none"),
        ("Linux", "aarch64", {}, "this is Linux aarch64"),
        ("Linux", "aarch64", {"EVALBOARD_VLLM_PYTHON": "/opt/vllm/bin/python"}, None),
        ("Darwin", "arm64", {}, "this is Darwin arm64"),
    ],
)
def test_where_there_is_no_build_of_the_engine_none_is_started(
    monkeypatch: pytest.MonkeyPatch, system: str, processor: str, variables: dict[str, str], reason: str | None
) -> None:
    monkeypatch.setattr("platform.system", lambda: system)
    monkeypatch.setattr("platform.machine", lambda: processor)
    options = Options.read(variables, port=8800)
    assert (options.without_engine is None) == (reason is None)
    assert reason is None or reason in str(options.without_engine)


def test_an_unknown_choice_is_no_platform() -> None:
    with pytest.raises(CannotStart, match="ENGINE=cpu"):
        engine.missing_reason({"ENGINE": "cpu"})

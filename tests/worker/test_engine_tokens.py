"""What the engine process makes of token spellings, model files and its environment; no engine is started."""

from pathlib import Path

import pytest

from worker import vllm_manifest, vllm_start, vllm_tokens


@pytest.mark.parametrize(
    ("spelling", "data"),
    [
        ("Ġworld", b" world"),
        ("Ċ", b"\n"),
        ("âĢ", b"\xe2\x80"),
        ("né", b"n\xe9"),
        ("", b""),
        ("!~", b"!~"),
        ("Ń", b"\xad"),
    ],
)
def test_byte_level_spellings_stand_for_bytes(spelling: str, data: bytes) -> None:
    assert vllm_tokens.spelt_bytes(spelling, vllm_tokens.BYTE_OF_CHARACTER) == data


def test_every_byte_has_one_spelling() -> None:
    assert sorted(vllm_tokens.BYTE_OF_CHARACTER.values()) == list(range(256))


@pytest.mark.parametrize(
    ("spelling", "data"), [("▁world", b" world"), ("<0xE2>", b"\xe2"), ("<0xE2", b"<0xE2"), ("東", "東".encode())]
)
def test_sentencepiece_spellings_stand_for_text_or_one_byte(spelling: str, data: bytes) -> None:
    assert vllm_tokens.spelt_bytes(spelling, None) == data


def test_an_id_without_a_spelling_stands_for_nothing() -> None:
    assert vllm_tokens.spelt_bytes(None, None) is None


@pytest.mark.parametrize("messages", [[], [{"role": "user", "content": ""}], [{"role": "user", "content": " \n"}]])
def test_messages_that_say_nothing_are_an_empty_prompt(messages: list[dict[str, str]]) -> None:
    with pytest.raises(vllm_tokens.RequestRefused) as refused:
        vllm_tokens.render(object(), messages, None, {})
    assert refused.value.code == "prompt_empty"


def test_a_completion_is_the_text_alone_and_messages_need_a_template() -> None:
    class Tokenizer:
        chat_template = None

        def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
            return [1] * add_special_tokens + list(text.encode())

    assert vllm_tokens.render(Tokenizer(), [{"role": "completion", "content": "ab"}], None, {"x": 1}) == [1, 97, 98]
    with pytest.raises(vllm_tokens.RequestRefused, match="give the suite's cases `completion`") as refused:
        vllm_tokens.render(Tokenizer(), [{"role": "user", "content": "ab"}], None, {})
    assert refused.value.code == "template_error"


def test_secrets_and_unrelated_variables_are_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "hush")
    monkeypatch.setenv("NCCL_AUTH_TOKEN", "hush")
    monkeypatch.setenv("DATABASE_URL", "postgres://hush")
    monkeypatch.setenv("VLLM_MARLIN_USE_ATOMIC_ADD", "0")
    monkeypatch.setenv("LD_PRELOAD", "")
    found = vllm_manifest.relevant_environment()
    assert found["VLLM_MARLIN_USE_ATOMIC_ADD"] == "0"
    assert not {"VLLM_API_KEY", "NCCL_AUTH_TOKEN", "DATABASE_URL"} & set(found)


def test_the_model_s_files_are_read_to_the_last_byte(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"\0" * 1000 + b"a")
    (tmp_path / "README.md").write_text("not the model")
    (tmp_path / "onnx").mkdir()
    before = vllm_manifest.model_files(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"\0" * 1000 + b"b")
    after = vllm_manifest.model_files(tmp_path)
    assert list(before) == ["model.safetensors"]
    assert before["model.safetensors"]["size"] == after["model.safetensors"]["size"] == 1001
    assert before["model.safetensors"]["sha256"] != after["model.safetensors"]["sha256"]


@pytest.mark.parametrize(
    ("name", "is_tokenizer"),
    [
        ("tokenizer.json", True),
        ("tokenizer_config.json", True),
        ("tokenizer.model", True),
        ("merges.txt", True),
        ("config.json", False),
        ("model.safetensors", False),
        ("chat_template.jinja", False),
    ],
)
def test_a_tokenizer_is_known_by_its_own_files(name: str, is_tokenizer: bool) -> None:
    other = {"vocab.json": {"size": 1, "sha256": "aa"}}
    with_file = other | {name: {"size": 1, "sha256": "bb"}}
    differs = vllm_manifest.tokenizer_digest(with_file) != vllm_manifest.tokenizer_digest(other)
    assert differs is is_tokenizer


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        (MemoryError(), "out_of_memory"),
        (RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"), "out_of_memory"),
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), "out_of_memory"),
        (ValueError("No available memory for the cache blocks."), "out_of_memory"),
        (ValueError("unknown architecture"), "engine_error"),
        (AssertionError(), "engine_error"),
    ],
)
def test_want_of_memory_is_told_from_other_failures(problem: BaseException, code: str) -> None:
    assert vllm_start.failure_code(problem) == code

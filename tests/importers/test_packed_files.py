"""Compressed logs read as their content does; damage, a missing end and too large a content are named."""

import gzip
import io
import tracemalloc
from collections.abc import Callable
from contextlib import suppress

import pytest
import zstandard

from evalboard.core.errors import InvalidInput
from evalboard.importers import files
from evalboard.importers.files import LogFile
from evalboard.importers.formats import read_logs
from tests.recorded import LOGS

Written = Callable[[str, bytes], LogFile]
Pack = Callable[[bytes], bytes]
PACKS: dict[str, Pack] = {".gz": gzip.compress, ".zst": zstandard.compress}
PACKERS = pytest.mark.parametrize("ending", PACKS)
LINE = b'{"case": "a", "answer": "x"}\n'


@PACKERS
@pytest.mark.parametrize(
    "patterns",
    [
        ["inspect/fp32_baseline.eval"],
        ["lm_eval/results_*.json", "lm_eval/samples_*.jsonl"],
        ["promptfoo/out_fp32.json"],
        ["vllm_run_batch/batch_input.jsonl", "vllm_run_batch/batch_output.jsonl"],
        ["scored_lines/sentences.jsonl"],
        ["openai_chat/stream.sse"],
    ],
)
def test_a_compressed_log_is_the_log(written: Written, ending: str, patterns: list[str]) -> None:
    paths = [path for pattern in patterns for path in LOGS.glob(pattern)]
    packed = [written(f"{path.name}{ending}", PACKS[ending](path.read_bytes())) for path in paths]
    assert read_logs(packed) == read_logs([LogFile(path.name, path) for path in paths])


@PACKERS
def test_parts_one_after_another_are_one_content(written: Written, ending: str) -> None:
    pack = PACKS[ending]
    file = written(f"two{ending}", pack(LINE) + pack(LINE.replace(b"a", b"b")))
    assert file.read() == LINE + LINE.replace(b"a", b"b")
    assert file.content_size == 2 * len(LINE)
    assert file.size != file.content_size


@PACKERS
def test_without_the_ending_of_its_name_a_file_is_unpacked_too(written: Written, ending: str) -> None:
    assert read_logs([written("rows.jsonl", PACKS[ending](LINE))])[0] == "scores"


def test_a_name_alone_packs_nothing(written: Written) -> None:
    assert read_logs([written("rows.jsonl.gz", LINE)])[0] == "scores"


@PACKERS
def test_a_missing_end_is_named_wherever_it_is_cut(written: Written, ending: str) -> None:
    packed = PACKS[ending](b"".join(LINE.replace(b"a", b"%d" % n) for n in range(500)))
    for n in (5, len(packed) // 2, len(packed) - 1):
        with pytest.raises(InvalidInput) as refused:
            read_logs([written(f"rows.jsonl{ending}", packed[:n])])
        assert refused.value.fields == {
            f"rows.jsonl{ending}": "is compressed, and its end is missing. Was it cut short on its way?"
        }


@PACKERS
def test_damage_is_named(written: Written, ending: str) -> None:
    packed = bytearray(PACKS[ending](bytes(range(256)) * 20))
    packed[6:20] = b"\xff" * 14
    with pytest.raises(InvalidInput, match=f"rows.jsonl{ending}: is compressed, and (damaged|its end is missing)"):
        read_logs([written(f"rows.jsonl{ending}", bytes(packed))])


def pack_zeros(n_mib: int, ending: str) -> bytes:
    out = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=out, mode="wb")
        if ending == ".gz"
        else zstandard.ZstdCompressor().stream_writer(out, closefd=False) as packer
    ):
        for _ in range(n_mib):
            packer.write(bytes(1 << 20))
    return out.getvalue()


@PACKERS
def test_a_bomb_is_refused_before_it_is_large(written: Written, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    """Never more than a part of it is held, however much it unpacks to."""
    monkeypatch.setattr(files, "MAX_BYTES", 40 << 20)
    bomb = written(f"bomb.jsonl{ending}", pack_zeros(300, ending))
    assert bomb.size < 1 << 20
    with pytest.raises(InvalidInput, match=r"bomb.jsonl.* unpacks to more than 40 MiB"):
        read_logs([bomb])
    tracemalloc.start()
    with bomb.open() as content, suppress(InvalidInput):
        while content.read(1 << 20):
            pass
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 70 << 20
    assert len(bomb.head(100)) == 100

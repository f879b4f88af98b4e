"""What an engine would hand over: suite documents, outcomes and manifests for tests of the services."""

from typing import Any

from evalboard.core.digest import short_digest
from evalboard.core.trace import Decoded, Failed, Timings, make_trace


def suite_document(*, slug: str, n_cases: int) -> dict[str, Any]:
    cases = [{"id": f"case-{n}", "prompt": f"Say blue, number {n}.", "target": "blue"} for n in range(n_cases)]
    return {"slug": slug, "title": slug.title(), "max_tokens": 24, "scorer": {"kind": "exact"}, "cases": cases}


def decoded(case_index: int, *, text: str = "blue", logprob: float = -0.25) -> Decoded:
    return Decoded(
        case_index=case_index,
        text=text,
        finish_reason="stop",
        trace=make_trace([5, 0], [logprob, -0.5], [[(5, logprob), (6, -2.0)], [(0, -0.5), (7, -3.0)]], [1, 2, 3]),
        n_prompt_tokens=3,
        prompt_digest=short_digest(b"prompt"),
        seed_sent=42,
        request_id=f"request-{case_index}",
        n_cached_tokens=0,
        n_preemptions=0,
        batch_min=1,
        batch_max=1,
        timings=Timings(0.01, 0.02, 0.5),
    )


def failed(
    case_index: int, *, code: str = "prompt_too_long", detail: str = "1,100 tokens do not fit the context of 1,024."
) -> Failed:
    return Failed(case_index, code, detail)


def manifest(*, dtype: str = "float32", max_num_seqs: int = 1, seats: int | None = None) -> dict[str, Any]:
    engine = {"dtype": dtype, "max_num_seqs": max_num_seqs, "quantization": None}
    return {
        "engine": engine if seats is None else engine | {"seats": seats, "max_model_len": 8192},
        "versions": {"vllm": "0.32.0"},
        "hardware": {"kind": "cpu", "cpu_isa": "AVX2", "gpus": []},
        "env": {},
        "model": {
            "files": {"model.safetensors": {"size": 8, "sha256": "a" * 64}},
            "tokenizer_digest": "b" * 64,
            "template_digest": "c" * 64,
        },
        "host": {"name": "here"},
    }

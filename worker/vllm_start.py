"""Starting vLLM: which folder is loaded, with which settings. Part of `vllm_host.py`."""

from pathlib import Path
from typing import Any

# What every engine of ours has in common, so that no profile can turn it off.
COMMON_ENGINE = {
    "generation_config": "vllm",  # the checkpoint's own sampling defaults must not leak into requests
    "speculative_config": None,
    "logprobs_mode": "raw_logprobs",
    "max_logprobs": 20,
    "disable_log_stats": False,  # else there are no timings and no count of preemptions
}
COMMON_ENV = {
    # The engine in this process: it starts in seconds, and no request arrives between two steps.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "TOKENIZERS_PARALLELISM": "false",
    # OpenMP's threads spin while they wait for each other. Where other processes want the same cores, each then
    # waits for a thread that is not running: measured on two busy cores, 2 tokens/s against 34. Bits do not change.
    "OMP_WAIT_POLICY": "PASSIVE",
}
HUB_FILES = ["*.safetensors", "*.json", "*.jinja", "*.model", "*.txt", "*.tiktoken"]
OUT_OF_MEMORY = (
    "out of memory",
    "can't allocate memory",
    "No available memory for the cache blocks",
    "Free memory on device",
    "Available memory on node",
    "KV cache is needed, which is larger than",
)


def model_folder(path: str, repo: str, revision: str) -> Path:
    """Return the folder of the model; one of a hub is fetched first, unless HF_HUB_OFFLINE forbids it."""
    if path:
        folder = Path(path).resolve()
        if not (folder / "config.json").is_file():
            raise FileNotFoundError(f"{folder} is not a model: there is no config.json in it")
        return folder
    from huggingface_hub import snapshot_download

    return Path(snapshot_download(repo, revision=revision or None, allow_patterns=HUB_FILES))


def start_engine(folder: Path, settings: dict[str, Any]) -> Any:
    """Start vLLM on `folder`. `kv_cache_memory_bytes` may be "whole_batch": room for every sequence at full length."""
    from vllm.engine.arg_utils import EngineArgs
    from vllm.v1.engine.llm_engine import LLMEngine

    if settings.get("load_format") == "dummy":
        raise ValueError("load_format dummy means random weights: no response of such an engine is evidence")
    wanted = {**settings, **COMMON_ENGINE}
    whole_batch = wanted.get("kv_cache_memory_bytes") == "whole_batch"
    if whole_batch:
        wanted["kv_cache_memory_bytes"] = 1  # explicit, so that vLLM does not measure memory; replaced below
    config = EngineArgs(model=str(folder), **wanted).create_engine_config()
    if whole_batch:
        config.cache_config.kv_cache_memory_bytes = whole_batch_bytes(config)
    return LLMEngine.from_vllm_config(config)


def whole_batch_bytes(config: Any) -> int:
    """Return the bytes of a KV cache that holds max_num_seqs sequences of max_model_len tokens.

    Keys and values of every layer, in whole blocks, and two blocks more: vLLM keeps one for itself.
    """
    import torch

    model, parallel, cache = config.model_config, config.parallel_config, config.cache_config
    kind = model.dtype if cache.cache_dtype == "auto" else torch.uint8
    per_token = 2 * model.get_num_kv_heads(parallel) * model.get_head_size() * kind.itemsize
    per_token *= model.get_num_layers(parallel)
    block = cache.block_size or 16
    blocks = config.scheduler_config.max_num_seqs * -(-model.max_model_len // block) + 2
    return int(blocks * block * per_token)


def failure_code(problem: BaseException) -> str:
    """Return the error code of an exception that ends the engine."""
    if isinstance(problem, MemoryError) or type(problem).__name__ == "OutOfMemoryError":
        return "out_of_memory"
    return "out_of_memory" if any(words in str(problem) for words in OUT_OF_MEMORY) else "engine_error"

"""Starting vLLM: which folder is loaded, with which settings. Part of `vllm_host.py`."""

import gc
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

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
# One adapter decodes at a time, as a worker decodes one run at a time. So a case never shares a step with another
# adapter's cases, and never with the base's: on a CPU those get the adapter's answers (vLLM 0.32).
MAX_LORAS = 1
ADAPTER_CONFIG = "adapter_config.json"
OUT_OF_MEMORY = (
    "out of memory",
    "can't allocate memory",
    "No available memory for the cache blocks",
    "Free memory on device",
    "Available memory on node",
    "KV cache is needed, which is larger than",
)


class AdapterRefused(Exception):
    """An adapter cannot be taken. The text says why."""


def model_folder(path: str, repo: str, revision: str, token: str = "") -> Path:
    """Return the folder of a model; files of a bucket or a hub's repository are fetched first.

    path: a folder, or `s3://bucket/prefix`. token: for the hub. Raises FileNotFoundError or SourceFailed.
    """
    if path and not path.startswith("s3://"):
        local = Path(path).resolve()
        if not (local / "config.json").is_file():
            raise FileNotFoundError(f"{local} is not a model: there is no config.json in it")
        return local
    import vllm_sources  # next to this file, for the interpreter that runs vllm_host.py

    folder: Path = vllm_sources.fetch_bucket(path) if path else vllm_sources.fetch_repo(repo, revision, token)
    return folder


def adapter_folder(address: str, token: str = "") -> Path:
    """Return the folder of a LoRA adapter as PEFT writes it, which may be fetched first.

    address: a folder, `s3://bucket/prefix`, or `owner/name@commit`. token: for the hub. Raises SourceFailed or
    AdapterRefused.
    """
    import vllm_sources  # next to this file, for the interpreter that runs vllm_host.py

    repo, is_in_repo, commit = address.partition("@")
    if address.startswith(vllm_sources.BUCKET):
        folder: Path = vllm_sources.fetch_bucket(address, needs=ADAPTER_CONFIG)
    elif is_in_repo and not address.startswith("/"):
        folder = vllm_sources.fetch_repo(repo, commit, token)
    else:
        folder = Path(address).resolve()
    if not (folder / ADAPTER_CONFIG).is_file():
        raise AdapterRefused(f"{address} is no LoRA adapter: there is no {ADAPTER_CONFIG} in it.")
    return folder


def lora_settings(folder: Path) -> dict[str, Any]:
    """Return the engine's settings for an adapter, which depend on its rank only.

    `max_lora_rank` is the smallest that vLLM has buffers for and the adapter fits. Raises AdapterRefused if none is
    large enough, or the adapter says no rank.
    """
    from vllm.config.lora import MaxLoRARanks

    rank = lora_rank(folder / ADAPTER_CONFIG, get_args(MaxLoRARanks))
    return {"enable_lora": True, "max_loras": MAX_LORAS, "max_lora_rank": rank}


def lora_rank(file: Path, ranks: tuple[int, ...]) -> int:
    """Return the smallest of vLLM's ranks that an adapter fits. Raises AdapterRefused.

    file: its adapter_config.json.
    """
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
        needed = max(map(int, [config["r"], *(config.get("rank_pattern") or {}).values()]))
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        why = f"{file} says no rank (r) of a LoRA adapter"
        raise AdapterRefused(f"{why}. Other kinds of adapters, such as prefix tuning, are not taken.") from problem
    rank = min((each for each in ranks if each >= needed), default=None)
    if rank is None:
        raise AdapterRefused(f"The LoRA adapter of {file} has rank {needed}; vLLM takes ranks up to {max(ranks)}.")
    return rank


def start_engine(folder: Path, settings: dict[str, Any]) -> Any:
    """Start vLLM on `folder`.

    `kv_cache_memory_bytes` may be "whole_batch": room for max_num_seqs sequences at full length, or as much as is left.
    """
    import torch
    from vllm.engine.arg_utils import EngineArgs
    from vllm.v1.engine.llm_engine import LLMEngine

    gc.freeze()  # what was imported stays: vLLM collects garbage five times as it starts
    gc.enable()
    if settings.get("load_format") == "dummy":
        raise ValueError("load_format dummy means random weights: no response of such an engine is evidence")
    wanted = {**settings, **COMMON_ENGINE}
    whole_batch = wanted.get("kv_cache_memory_bytes") == "whole_batch"
    is_gpu = torch.cuda.is_available()
    if is_gpu and wanted.get("gpu_memory_utilization") is None:
        usable = [torch.cuda.mem_get_info(index) for index in range(n_gpus(wanted))]
        wanted["gpu_memory_utilization"] = memory_share(usable, most=EngineArgs.gpu_memory_utilization)
    if whole_batch:  # on a CPU vLLM would measure a share of the whole machine's memory: it is told a size, set below
        wanted["kv_cache_memory_bytes"] = None if is_gpu else 1
    config = EngineArgs(model=str(folder), **wanted).create_engine_config()
    if whole_batch:
        limit_kv_cache(config, is_measured=is_gpu)
    return LLMEngine.from_vllm_config(config)


def n_gpus(settings: dict[str, Any]) -> int:
    sizes = (settings.get(f"{name}_parallel_size") or 1 for name in ("tensor", "pipeline"))
    return math.prod(sizes)


def memory_share(usable: list[tuple[int, int]], *, most: float) -> float:
    """Return the share of a GPU's memory that an engine may take: vLLM's own, or less if less is free.

    usable: of each GPU, bytes that are free and bytes in all. One hundredth is left for what starts meanwhile.
    """
    free = min(math.floor(100 * free / total) - 1 for free, total in usable) / 100
    return max(min(free, most), 0.01)


def limit_kv_cache(config: Any, *, is_measured: bool) -> None:
    """Limit the engine's KV cache to what a whole batch needs, or to what is free if that is less.

    is_measured: vLLM measures what the weights and a largest step leave. Otherwise it checks that the need is free.
    """
    from vllm.v1.executor.abstract import Executor

    executor = Executor.get_class(config)
    measure = executor.determine_available_memory

    def determine_available_memory(self: Any) -> list[int]:
        needed = [whole_batch_bytes(config, layers) for layers in self.get_kv_cache_specs()]
        if not is_measured:
            self.collective_rpc(request_cache, args=(max(needed),))
        return [min(sizes) for sizes in zip(measure(self), needed, strict=True)]

    executor.determine_available_memory = determine_available_memory


def request_cache(worker: Any, n_bytes: int) -> None:
    """Request this much for the KV cache; runs in each of the engine's worker processes."""
    worker.cache_config.kv_cache_memory_bytes = n_bytes


def whole_batch_bytes(config: Any, layers: dict[str, Any]) -> int:
    """Return the bytes that max_num_seqs sequences of max_model_len tokens take in one worker's KV cache.

    layers: name → how vLLM stores this layer's keys and values. In whole blocks, and two more: vLLM keeps one for
    itself.
    """
    n_seqs, length = config.scheduler_config.max_num_seqs, config.model_config.max_model_len
    return sum((n_seqs * -(-length // layer.block_size) + 2) * layer.page_size_bytes for layer in layers.values())


def room(engine: Any) -> int:
    """Return how many sequences of max_model_len tokens fit into the KV cache, by vLLM's own accounting."""
    from vllm.v1.core.kv_cache_utils import get_max_concurrency_for_kv_cache_config

    cache = engine.engine_core.engine_core.scheduler.kv_cache_config
    usable = replace(cache, num_blocks=cache.num_blocks - 1)  # block 0 is a placeholder
    return int(get_max_concurrency_for_kv_cache_config(engine.vllm_config, usable))


def seats(engine: Any, *, least: int) -> int:
    """Return how many sequences fit at full length, so that none is ever preempted.

    Raises MemoryError if that is fewer than `least`.
    """
    there, length = room(engine), engine.vllm_config.model_config.max_model_len
    if there < least:
        raise MemoryError(
            f"{least} sequences of {length:,} tokens must have room in the KV cache together, and there is room for "
            f"{there} after the weights. Give the endpoint a shorter context, take a profile with smaller batches, or "
            "free memory on this node."
        )
    max_seqs: int = engine.vllm_config.scheduler_config.max_num_seqs
    return min(there, max_seqs)


def failure_code(problem: BaseException) -> str:
    """Return the error code of an exception that ends the engine."""
    if isinstance(problem, MemoryError) or type(problem).__name__ == "OutOfMemoryError":
        return "out_of_memory"
    return "out_of_memory" if any(words in str(problem) for words in OUT_OF_MEMORY) else "engine_error"

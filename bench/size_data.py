"""Made-up responses for bench_size and size_trials: recorded positions, and texts cut out of docs/."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.bench_trace import recorded
from evalboard.core.trace import Decoded, Timings, TokenTrace, join_traces

SEED = 20261121
N_RESPONSES = 2000
N_POSITIONS, N_CHARACTERS = 200, 660
N_PROMPT_TOKENS = 20
DOCS = Path(__file__).resolve().parents[1] / "docs"


def make_decoded(rng: np.random.Generator) -> list[Decoded]:
    positions = join_traces(recorded("float32"))
    text = " ".join(path.read_text() for path in sorted(DOCS.glob("*.md")))
    n = len(positions.token_ids)
    decoded = []
    for case in range(N_RESPONSES):
        at = np.arange(start := int(rng.integers(n)), start + N_POSITIONS) % n
        first = int(rng.integers(len(text) - N_CHARACTERS))
        trace = TokenTrace(
            positions.token_ids[at],
            positions.logprobs[at],
            positions.alternative_ids[at],
            positions.alternative_logprobs[at],
        )
        decoded.append(
            Decoded(
                case_index=case,
                text=text[first : first + N_CHARACTERS],
                finish_reason="length",
                trace=move(trace, rng),
                n_prompt_tokens=N_PROMPT_TOKENS,
                prompt_digest=rng.bytes(16),
                seed_sent=42,
                request_id=f"{case}-0",
                n_cached_tokens=0,
                n_preemptions=0,
                batch_min=1,
                batch_max=1,
                timings=Timings(0.0, 0.0, 0.0),
            )
        )
    return decoded


def move(trace: TokenTrace, rng: np.random.Generator) -> TokenTrace:
    """Return the trace with each position's logprobs moved together, as another log-sum moves them: no bits repeat."""
    listed = trace.alternative_logprobs - rng.exponential(1e-3, (len(trace), 1)).astype(np.float32)
    own = listed[np.arange(len(trace)), (trace.alternative_ids == trace.token_ids[:, None]).argmax(axis=1)]
    return replace(trace, logprobs=own, alternative_logprobs=listed)

"""Copy a model with its matrices rounded, run by the engine's own interpreter: `python rounded_model.py FROM TO BITS`.

Each group of 64 weights along a row has one scale, as the largest of them needs it, as weight-only quantisation has it.
The copy stays bfloat16, so that any engine serves it and nothing but the weights is other.
"""

import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

GROUP = 64


def main(source: Path, target: Path, bits: int) -> None:
    """Write the copy into a new folder."""
    target.mkdir(parents=True)
    for path in source.iterdir():
        if path.suffix != ".safetensors":
            shutil.copy(path, target / path.name)
            continue
        tensors = load_file(path)
        rounded = {name: round_rows(each, bits) if _is_rounded(name, each) else each for name, each in tensors.items()}
        save_file(rounded, target / path.name, metadata={"format": "pt"})


def round_rows(matrix: torch.Tensor, bits: int) -> torch.Tensor:
    """Return the matrix with each group of a row rounded to whole steps of its largest weight."""
    groups = matrix.float().reshape(len(matrix), -1, GROUP)
    most = 2 ** (bits - 1) - 1
    step = groups.abs().amax(dim=2, keepdim=True).clamp(min=1e-12) / most
    return ((groups / step).round() * step).reshape(matrix.shape).to(matrix.dtype)


def _is_rounded(name: str, tensor: torch.Tensor) -> bool:
    return "layers." in name and tensor.ndim == 2


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))

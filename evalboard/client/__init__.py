"""The REST API from Python: `from evalboard.client import Client` in a notebook or script. docs/client.md shows it."""

from evalboard.cli.errors import CommandError as EvalboardError
from evalboard.cli.errors import Unreachable, WrongUse
from evalboard.client.answers import Comparison, Release, Run
from evalboard.client.client import Client
from evalboard.client.rows import Rows

__all__ = ["Client", "Comparison", "EvalboardError", "Release", "Rows", "Run", "Unreachable", "WrongUse"]

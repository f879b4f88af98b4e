"""Where the logs and suites stand that tests read; each folder's README says what they are."""

from pathlib import Path

DATA = Path(__file__).resolve().parent / "data"
LOGS = DATA / "logs"
SUITES = DATA / "suites"

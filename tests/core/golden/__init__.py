"""Situations, and the sentences that a person reads in each: sentences.md is written by the code itself.

Each module has the situations of one subject, by a name in plain words. A situation runs the real core on inputs, and
what it returns is read in sentences.md. To add one, write it beside its neighbours, run
`python -m tests.core.golden --write`, and read what it says.
"""

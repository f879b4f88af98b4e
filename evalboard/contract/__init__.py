"""Contracts: what REST sends and JSON columns store, defined once (docs/api-reference.md).

Reads of `runs` return these models, templates show them, REST serialises them as they are, and the OpenAPI schema is
made of them. The client reads answers as the same models (`evalboard.client.answers`).
"""

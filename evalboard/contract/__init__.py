"""What goes over the wire and into JSON columns, written once. docs/api-reference.md has the addresses that answer it.

Reads of `runs` return these models, templates show them, REST serialises them as they are, and the OpenAPI schema is
made of them. The client reads answers as the same models (`evalboard.client.answers`).
"""

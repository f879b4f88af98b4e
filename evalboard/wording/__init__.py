"""Every sentence that a person reads, made from a code and its facts, and the formats of numbers in them.

What is decided stands in the core as codes and facts, and nothing takes a sentence apart again. Pages, REST, the
command line and messages read the same words here.
"""

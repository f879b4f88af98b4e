"""Make every sentence shown to people from codes and facts, and format the numbers in it.

The core decides codes and facts; nothing parses a sentence again. Pages, REST, the command line and messages all use
these texts.
"""

"""The limits of a suite document: docs/suites.md has them as well."""

MAX_CASES = 200_000
MAX_ID_CHARS = 200
MAX_TITLE_CHARS = 200
MAX_GROUP_CHARS = 200
MAX_TEXT_CHARS = 1_000_000  # of one prompt or message
MAX_PARTS = 64  # of one message
MAX_IMAGE_BYTES = 4_194_304
MAX_CASE_CHARS = 4_000_000  # of one case as JSON
MAX_MESSAGES = 1000
MAX_TOOLS = 256
MAX_TAGS = 50
MAX_TAG_CHARS = 100
MAX_STOPS = 16
MAX_STOP_CHARS = 200
MAX_TOKENS = 32_768

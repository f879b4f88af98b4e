"""Calls of external servers that speak OpenAI's protocol: requests, answers, retries, keys. Without Django."""

"""Call external servers that speak OpenAI's protocol: requests, answers, retries, keys; no Django."""

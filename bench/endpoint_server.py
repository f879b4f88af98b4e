"""A server of others for the bench: one ready answer, some time after each call. `python -m …endpoint_server SECONDS`.

Prints its port, and at the end of its stdin how many connections it has had.
"""

import asyncio
import json
import sys

from tests.scripted_answers import Answerer

N_TOKENS = 128
QUESTION = {"messages": [{"role": "user", "content": "Why?"}], "logprobs": True, "top_logprobs": 2, "temperature": 0}


def make_answer() -> bytes:
    """Return the whole answer, head included: 128 tokens with two alternatives each."""
    body = json.dumps(Answerer(n_tokens=N_TOKENS).answer("/v1/chat/completions", QUESTION)).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Connection(asyncio.Protocol):
    n_connections = 0
    seconds = 0.0
    answer = b""

    def __init__(self) -> None:
        self.received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        Connection.n_connections += 1
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, end, rest = bytes(self.received).partition(b"\r\n\r\n")
        if not end:
            return
        lines = head.lower().split(b"\r\n")
        length = next((int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:")), 0)
        if len(rest) >= length:  # callers wait for each answer before they send more
            self.received.clear()
            asyncio.get_running_loop().call_later(self.seconds, self.transport.write, self.answer)  # type: ignore[attr-defined]


async def serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", 0, backlog=256)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    print(Connection.n_connections, flush=True)


if __name__ == "__main__":
    Connection.seconds, Connection.answer = float(sys.argv[1]), make_answer()
    asyncio.run(serve())

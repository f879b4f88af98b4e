"""Load on the API from a process of its own, so that the clients' threads are not the server's.

`python -m bench.api_load` reads a plan as JSON from its input and writes what it saw as JSON. Latencies are in
seconds, as a client has them: connection kept, body read.
"""

import asyncio
import json
import sys
import time
from typing import Any

import httpx

RUNS = "/api/v1/runs/"


class Seen:
    """Latencies by kind, and what was no success."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}
        self.problems: list[str] = []

    async def ask(self, client: httpx.AsyncClient, kind: str, method: str, path: str, **more: Any) -> httpx.Response:
        began = time.perf_counter()
        answer = await client.request(method, path, **more)
        self.seconds.setdefault(kind, []).append(time.perf_counter() - began)
        if answer.status_code not in (200, 201, 304):
            self.problems.append(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
        return answer


async def polled(plan: dict[str, Any], client: httpx.AsyncClient, seen: Seen) -> None:
    """Each of so many clients polls a run of its own at fixed times while runs are posted at fixed times."""
    end = time.perf_counter() + plan["seconds"]

    async def poll(number: int) -> None:
        path = f"{RUNS}{plan['runs'][number % len(plan['runs'])]}/"
        tag = ""
        at = time.perf_counter() + plan["every"] * number / plan["n_clients"]
        while at < end:
            await asyncio.sleep(max(0.0, at - time.perf_counter()))
            headers = {"If-None-Match": tag} if tag and plan["uses_tags"] else {}
            answer = await seen.ask(client, "poll", "GET", path, headers=headers)
            tag = answer.headers.get("ETag", "")
            if answer.status_code == 304:
                seen.seconds.setdefault("poll, 304", []).append(seen.seconds["poll"][-1])
            at += plan["every"]

    async def post() -> None:
        at = time.perf_counter()
        while at < end:
            await asyncio.sleep(max(0.0, at - time.perf_counter()))
            await seen.ask(client, "post", "POST", RUNS, json=plan["body"])
            at += 1 / plan["posts_per_second"]

    await asyncio.gather(post(), *(poll(number) for number in range(plan["n_clients"])))


async def saturated(plan: dict[str, Any], client: httpx.AsyncClient, seen: Seen) -> None:
    """So many clients, each of which asks again as soon as it is answered."""
    end = time.perf_counter() + plan["seconds"]

    async def ask(number: int) -> None:
        path = f"{RUNS}{plan['runs'][number % len(plan['runs'])]}/"
        tag = ""
        while time.perf_counter() < end:
            headers = {"If-None-Match": tag} if tag and plan["uses_tags"] else {}
            answer = await seen.ask(client, "poll", "GET", path, headers=headers)
            tag = answer.headers.get("ETag", "")

    await asyncio.gather(*(ask(number) for number in range(plan["n_clients"])))


async def listed(plan: dict[str, Any], client: httpx.AsyncClient, seen: Seen) -> None:
    """One client reads lists, one after the other."""
    for _ in range(plan["rounds"]):
        for path in plan["paths"]:
            await seen.ask(client, path, "GET", path)


async def busy(plan: dict[str, Any], client: httpx.AsyncClient, seen: Seen) -> None:
    """Poll as `polled` does while a large log is imported and two large runs are compared, until both are done.

    Health checks are sent meanwhile, by the request threads and apart from them.
    """
    ended = asyncio.Event()

    async def poll(number: int) -> None:
        path = f"{RUNS}{plan['runs'][number % len(plan['runs'])]}/"
        await asyncio.sleep(plan["every"] * number / plan["n_clients"])
        while not ended.is_set():
            await seen.ask(client, "poll", "GET", path)
            await asyncio.sleep(plan["every"])

    async def check() -> None:
        while not ended.is_set():
            await seen.ask(client, "live", "GET", plan["live"])
            await seen.ask(client, "health", "GET", "/api/v1/health")
            await asyncio.sleep(0.2)

    async def import_log() -> None:
        began = time.perf_counter()
        with open(plan["log"], "rb") as log:  # noqa: PTH123 - a file of this machine
            answer = await client.post("/api/v1/imports/", files={"files": log}, timeout=600)
        seen.seconds["import, answered"] = [time.perf_counter() - began]
        if answer.status_code == 202:
            while (row := (await client.get(answer.headers["Location"])).json())["status"] == "reading":
                await asyncio.sleep(0.5)
            answer.status_code = 201 if row["status"] == "stored" else 500
        if answer.status_code != 201:
            seen.problems.append(f"import: {answer.status_code} {answer.text[:200]}")
        seen.seconds["import, stored"] = [time.perf_counter() - began]

    async def compare() -> None:
        began = time.perf_counter()
        query = {"baseline": plan["pair"][0], "candidate": plan["pair"][1]}
        while (answer := await client.get("/api/v1/compare/", params=query, timeout=600)).status_code == 202 or (
            answer.is_success and answer.json()["progress"]["status"] != "finished"
        ):
            await asyncio.sleep(0.5)
        if not answer.is_success:
            seen.problems.append(f"compare: {answer.status_code} {answer.text[:200]}")
        seen.seconds["compare"] = [time.perf_counter() - began]

    others = [asyncio.create_task(each) for each in (check(), *(poll(number) for number in range(plan["n_clients"])))]
    await asyncio.gather(import_log(), compare())
    ended.set()
    await asyncio.gather(*others)


async def main(plan: dict[str, Any]) -> dict[str, Any]:
    seen = Seen()
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    headers = {"Authorization": f"Bearer {plan['token']}"}
    async with httpx.AsyncClient(
        base_url=plan["address"], headers=headers, limits=limits, timeout=60, trust_env=False
    ) as client:
        began = time.perf_counter()
        await {"polled": polled, "saturated": saturated, "listed": listed, "busy": busy}[plan["kind"]](
            plan, client, seen
        )
        took = time.perf_counter() - began
    return {"seconds": seen.seconds, "problems": seen.problems, "took": took}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(json.load(sys.stdin)))))

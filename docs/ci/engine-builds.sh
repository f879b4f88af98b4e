#!/bin/sh -eu
# Compare two builds of vLLM: sh engine-builds.sh PYTHON_OF_MAIN PYTHON_OF_THE_BUILD MODEL PROMPTS
record() {
  "$1" -m vllm.entrypoints.cli.main serve "$3" --served-model-name model --port 8000 > "$2.log" 2>&1 &
  server=$!
  trap 'kill "$server" 2> /dev/null || true' EXIT
  evalboard trace "$4" --base-url http://127.0.0.1:8000/v1 --model model --repeats 3 --concurrency 1 \
    --again -o "$2.jsonl"
  kill "$server"
  wait "$server" || true
}
record "$1" main "$3" "$4"
record "$2" build "$3" "$4"
evalboard diff main.jsonl build.jsonl --fail-on shift

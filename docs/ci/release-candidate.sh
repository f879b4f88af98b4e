#!/bin/sh -eu
# Judge a suite's file on one endpoint, as CI would: sh release-candidate.sh FILE SUITE ENDPOINT
run() { evalboard run "$1" --endpoint "$2" --profile pinned --repeats 5 --json; }
id() { echo "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)["id"])'; }
evalboard suite push "$1" --slug "$2"
first=$(run "$2" "$3")
evalboard wait "$(id "$first")"
evalboard baseline set "$(id "$first")" --reason "First run of $1"
second=$(run "$2" "$3")
evalboard release "$(id "$second")" --baseline current --wait

#!/usr/bin/env bash
# The conformance suite of MCP, into tests/conformance/node_modules, unless it is there: about 240 MB, most of them
# the Node 22 that it needs. Without npm nothing is installed, and the tests that need it say so.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT/tests/conformance"

command -v npm >/dev/null 2>&1 || exit 0
wanted=$(cat package.json package-lock.json | sha256sum | cut -d ' ' -f 1)
[ "$(cat node_modules/.digest 2>/dev/null)" != "$wanted" ] || exit 0
# What runs here is named above: it needs no engine of npm's own choice.
npm --loglevel=error ci --ignore-scripts
printf '%s' "$wanted" >node_modules/.digest

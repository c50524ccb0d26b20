#!/usr/bin/env bash
# Reference servers of MCP for tests/conformance/test_reference_servers.py, about 160 MB, once: four of npm into
# tests/conformance/servers/node_modules; fetch, git and time into .venv/servers; sqlite, which needs the SDK before
# its second version, into .venv/sqlite_server. What cannot be had is no fault: .venv/servers.why says why, and so do
# the tests. Run by itself, or sourced by ./check.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/setup.sh
type install_apart >/dev/null 2>&1 || . "$ROOT/scripts/setup.sh"

why=$VENV/servers.why
: >"$why"

lacking() { # SERVERS REASON
  printf '%s: %s\n' "$1" "$(printf '%s' "$2" | tail -n 3 | tr '\n' ' ')" | tee -a "$why"
}

npm_servers() {
  local wanted
  cd "$ROOT/tests/conformance/servers"
  wanted=$(cat package.json package-lock.json | sha256sum | cut -d ' ' -f 1)
  [ "$(cat node_modules/.digest 2>/dev/null)" != "$wanted" ] || return 0
  command -v npm >/dev/null 2>&1 || { echo "there is no npm" && return 1; }
  npm --loglevel=error ci --ignore-scripts || return 1
  printf '%s' "$wanted" >node_modules/.digest
}

said=$(npm_servers 2>&1) || lacking "everything, filesystem, memory, sequential-thinking" "$said"
said=$(install_apart "fetch, git and time (about 60 MB, once)" servers 2>&1) || lacking "fetch, git, time" "$said"
said=$(install_apart "sqlite's server (about 40 MB, once)" sqlite_server 2>&1) || lacking "sqlite" "$said"

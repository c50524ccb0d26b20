#!/usr/bin/env bash
# The web page in ui/: built into src/antiphon/view/page/assets, where the package has it.
#   scripts/page.sh            builds it, unless nothing has changed since; needs Node 20 or newer
#   scripts/page.sh check      also its types and unit tests
#   scripts/page.sh browser    what people click, in Chromium, against runs that are made for it
#   scripts/page.sh bench      how fast it is, in figures
#   scripts/page.sh pictures   the pictures in docs/img, anew
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
UI=$ROOT/ui BUILT=$ROOT/src/antiphon/view/page/assets SHOWN=$ROOT/ui/.shown
PYTHON=$ROOT/.venv/bin/python
export PYTHON
cd "$ROOT"

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

is_new_enough() { node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' >/dev/null 2>&1; }
is_new_enough || die "the web page is built with Node 20 or newer and npm, and neither was found." \
  "Install them (Debian, Ubuntu: apt install nodejs npm; macOS: brew install node). The wheel has it built."

digest_of() { # FILES... - one digest for all that stands in them, and their names
  find "$@" -type f -not -path '*/node_modules/*' -not -path '*/.shown/*' -print0 | sort -z | xargs -0 sha256sum |
    sha256sum | cut -d ' ' -f 1
}

run_npm() { (cd "$UI" && npm --loglevel=error "$@"); }

install_packages() {
  local wanted
  wanted=$(digest_of "$UI/package.json" "$UI/package-lock.json")
  [ "$(cat "$UI/node_modules/.digest" 2>/dev/null)" != "$wanted" ] || return 0
  run_npm ci --ignore-scripts >"$UI/.npm.log" 2>&1 || die "npm ci failed: $(tail -n 3 "$UI/.npm.log")"
  rm -f "$UI/.npm.log"
  printf '%s' "$wanted" >"$UI/node_modules/.digest"
}

build() {
  local wanted
  wanted=$(digest_of "$UI/src" "$UI/index.html" "$UI/vite.config.ts" "$UI/package-lock.json")
  [ ! -f "$BUILT/file.js" ] || [ "$(cat "$UI/.built" 2>/dev/null)" != "$wanted" ] || return 0
  install_packages
  run_npm run --silent build
  printf '%s' "$wanted" >"$UI/.built"
}

# Only made anew when what makes them has changed.
make_shown_runs() {
  local wanted
  wanted=$(digest_of "$BUILT" tests/page tests/oracle src/antiphon/view/frames src/antiphon/view/page/__init__.py)
  [ "$(cat "$SHOWN/.digest" 2>/dev/null)" != "$wanted" ] || return 0
  "$PYTHON" -m tests.page.shown "$SHOWN" 2>/dev/null
  printf '%s' "$wanted" >"$SHOWN/.digest"
}

install_chromium() { apt-get install -y --no-install-recommends chromium >/dev/null 2>&1; }

find_chromium() { [ -n "${CHROMIUM:-}" ] || command -v chromium chromium-browser google-chrome >/dev/null; }

case "${1:-}" in
  "") build ;;
  check)
    build
    install_packages
    "$PYTHON" -m scripts.ui_types --check
    run_npm run --silent types
    make_shown_runs
    run_npm run --silent test
    ;;
  browser)
    build
    install_packages
    make_shown_runs
    if ! find_chromium && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
      install_chromium || { apt-get update && install_chromium; } >/dev/null 2>&1 || true
    fi
    if ! find_chromium; then
      printf 'not run: no Chromium was found (apt install chromium, or CHROMIUM=/path/to/it)\n'
      exit 0
    fi
    run_npm run --silent browser
    ;;
  bench)
    build
    install_packages
    make_shown_runs
    BENCH=1 run_npm run --silent browser -- browser/bench.test.ts --reporter=dot
    ;;
  pictures)
    build
    install_packages
    make_shown_runs
    mkdir -p docs/img
    PICTURES=$ROOT/docs/img run_npm run --silent browser -- browser/pictures.test.ts
    ;;
  *) die "$1 is none of: check, browser, bench, pictures" ;;
esac

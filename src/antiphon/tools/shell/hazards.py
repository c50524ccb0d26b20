"""Which commands start what their arguments say, so that the approval of a beginning must not cover them.

`git -c core.pager=…`, `find -exec`, `xargs`, `env`, `sudo`, `python -c` and their kind. A table cannot be
complete: a program that was not known here may take commands too, so confinement holds beside it. Where
it errs, it errs to asking.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


PLAIN_BUILTINS = _set(": cd echo exit false kill printf pwd test true type")
"""What bash itself does without starting or changing anything that later commands depend on."""
_BUILTINS = _set(""". alias bg bind break builtin caller command compgen complete compopt continue coproc
declare dirs
    disown enable eval exec export fc fg getopts hash help history jobs let local logout mapfile popd pushd
    read readarray readonly return set shift shopt source suspend times trap typeset ulimit umask unalias
    unset wait""")
_ALWAYS = _set("""ash at awk batch bash bpython bunx busybox bwrap capsh chroot chrt crontab csh dash
dbus-run-session
    doas docker dtach ed emacs entr env ex expect faketime fakeroot firejail fish flock gawk gdb
    git-shell ionice ipython ksh ld.so lftp less lldb ltrace lxc mawk mksh more most msfconsole nano nawk
    nerdctl nice nix-shell nohup npx nsenter numactl parallel perf pipx pkexec pnpx podman proot pwsh rbash
    rlwrap rsync rtx run-parts runuser scp screen script sed setarch setpriv setsid sftp sh sqlite3 ssh
    sshpass stdbuf start-stop-daemon strace su sudo systemctl systemd-run systemd-nspawn taskset tclsh time
    timeout tmux toybox tsocks unbuffer unshare uvx valgrind vi vim view watch wish xargs xterm zsh m4 dc
    osascript kubectl psql mysql mysqlsh sqlite mail mailx mutt man nvim pdb""")
"""Programs that are there to start others, or take programs as their arguments."""
_INTERPRETERS = _set(
    "bun deno guile julia lua luajit node nodejs octave perl php pypy python pythonw r rscript ruby scala"
)
"""Plain is a file to run, and of Python a module; not a text that is run."""
_FLAGS = _set("-B -E -I -O -OO -P -S -b -q -s -u -v --version -V")
"""Options of Python that say nothing of what is run."""
_MODULES = _set(
    "cProfile code ensurepip idlelib pdb profile runpy site timeit trace ptpython IPython pip._internal"
)
"""Modules that run what their arguments say."""
_OPTIONS: Mapping[str, str] = {
    "ag": "pager",
    "bat": "pager",
    "cargo": "config",
    "clang": "wrapper fplugin B",
    "cmake": "E P",
    "fd": "exec exec-batch x X",
    "fdfind": "exec exec-batch x X",
    "find": "delete exec execdir fls fprint fprint0 fprintf ok okdir",
    "g++": "wrapper fplugin B specs",
    "gcc": "wrapper fplugin B specs",
    "go": "exec overlay toolexec vettool ldflags gccgoflags gcflags",
    "gofmt": "r",
    "make": "E f C I eval file makefile directory include-dir",
    "gmake": "E f C I eval file makefile directory include-dir",
    "ninja": "C f t",
    "npm": "c call node-options prefix script-shell globalconfig userconfig",
    "pip": "config-settings global-option build-option python",
    "pytest": "c p o config-file override-ini rootdir confcutdir",
    "rg": "hostname-bin pre",
    "sort": "compress-program o output",
    "split": "filter",
    "tar": "F I P checkpoint-action info-script new-volume-script rmt-command rsh-command to-command "
    "use-compress-program",
    "bsdtar": "use-compress-program",
    "tcpdump": "z",
    "tox": "x override c conf workdir",
    "wget": "use-askpass e execute config post-file body-file input-file",
    "curl": "K config T upload-file d data data-binary F form o output data-urlencode data-raw json proxy x",
    "zip": "T TT unzip-command",
}
"""Options, without their dashes, by which a program starts another one or reads orders from elsewhere."""
_WORDS: Mapping[str, frozenset[str]] = {
    "cargo": _set("run r install fuzz"),
    "conda": _set("run"),
    "go": _set("run generate tool env"),
    "hatch": _set("run shell env"),
    "mise": _set("exec x run env"),
    "npm": _set("config create exec explore init innit set x"),
    "pdm": _set("run config"),
    "pip": _set("config"),
    "pipenv": _set("run shell"),
    "pnpm": _set("config create dlx exec init x"),
    "poetry": _set("run shell config"),
    "tox": _set("exec e"),
    "uv": _set("run tool x"),
    "yarn": _set("config create dlx exec init node"),
}
"""Words of a program, wherever they stand, behind which another one stands."""
_GIT = _set("""add am annotate apply blame branch cat-file check-attr check-ignore checkout cherry
cherry-pick clean
    commit count-objects describe diff diff-files diff-index diff-tree fetch for-each-ref format-patch fsck gc
    grep log ls-files ls-remote ls-tree merge merge-base merge-file mv name-rev notes prune pull push
    range-diff read-tree rebase reflog remote repack reset restore rev-list rev-parse revert rm shortlog show
    show-branch show-ref sparse-checkout stash status switch symbolic-ref tag update-index update-ref
    verify-commit verify-tag whatchanged worktree write-tree""")
"""Words of git that start nothing of their own; any other may be an alias, which may be a program."""
_GIT_REMOTE = _set("fetch ls-remote pull push remote")
_GIT_OPTIONS = sorted(
    _set(
        """config config-env exec exec-path ext-diff extcmd no-index open-files-in-pager output
        output-directory receive-pack template textconv upload-pack"""
    )
)
_GIT_SHORT: Mapping[str, list[str]] = {"rebase": ["x"], "grep": ["O"], "format-patch": ["o"]}
"""Letters that take a program, or write elsewhere."""


def changes_shell(words: Sequence[str]) -> bool:
    """Whether bash itself does it, and what follows in the line may then be something else than it says."""
    name = words[0]
    if name == "test":
        # Both evaluate the index of an array, which may hold a substitution.
        return any(each in ("-v", "-R") for each in words)
    if name == "printf":
        return any(each.startswith("-v") for each in words[1:2])
    return name in _BUILTINS


def starts_others(words: Sequence[str]) -> bool:
    """Whether the arguments of a program may say what else is started."""
    if words[0] in PLAIN_BUILTINS:
        return False
    name, rest = _program(words[0]), list(words[1:])
    if name in _ALWAYS or name in _BUILTINS:
        return True
    if name in _INTERPRETERS:
        return _runs_text(name, rest)
    if name == "git":
        return _is_odd_git(rest)
    if any(each in _WORDS.get(name, ()) for each in rest):
        return True
    taken = _OPTIONS.get(name, "").split()
    if name in ("make", "gmake") and any("=" in each for each in rest):
        return True
    if name in ("tar", "bsdtar") and rest:
        # Its letters need no dash.
        rest = ["-" + rest[0].lstrip("-"), *rest]
    return any(_is_option(each, taken) for each in rest)


def _program(word: str) -> str:
    """What a program is known by, wherever it lies and whatever its version."""
    name = word.rpartition("/")[2].casefold().removesuffix(".exe")
    return re.sub(r"(?<=[a-z+])[-.]?\d[\d.]*$", "", name) if name not in _ALWAYS else name


def _runs_text(name: str, rest: Sequence[str]) -> bool:
    """Whether an interpreter is given anything but a file, or, Python, a module."""
    python = name in ("python", "pythonw", "pypy")
    for at, each in enumerate(rest):
        if python and each == "-m":
            module = rest[at + 1 : at + 2]
            return not module or module[0].partition(".")[0] in _MODULES or not module[0].isprintable()
        if python and each in _FLAGS:
            continue
        return each.startswith("-") or not each
    return not rest or not any(each in ("--version", "-V") for each in rest)


def _is_odd_git(rest: Sequence[str]) -> bool:
    words = [each for each in rest if each != "--no-pager"]
    if not words or words in (["--version"], ["version"]):
        return not words
    name = words[0]
    if name not in _GIT:
        return True
    if name in _GIT_REMOTE and any("::" in each for each in words):
        # An address that names the program that is to speak with it.
        return True
    options = words[1 : words.index("--")] if "--" in words else words[1:]
    return any(_is_option(each, _GIT_OPTIONS + _GIT_SHORT.get(name, [])) for each in options)


def _is_option(word: str, taken: Sequence[str]) -> bool:
    """Whether a word is one of these options: as it is, with its value, shortened, or among other letters."""
    if not word.startswith("-") or word == "-":
        return False
    name = word.lstrip("-").partition("=")[0]
    for each in taken:
        if len(each) == 1:
            if not word.startswith("--") and each in word:
                return True
        elif name == each or (word.startswith("--") and name and each.startswith(name)):
            return True
    return False

"""Names that tools may not see: what is hidden, what looks like a secret, other people's files.

A rule on the name alone, so that it holds for what is not there yet too. Names are compared as the most
careless file system would: without regard to case, to letters that are not seen, to what Windows cuts off.
"""

from __future__ import annotations

import fnmatch
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})
"""Folders of other people's files."""

_VERSIONS = frozenset({".git", ".hg", ".svn", ".jj", ".bzr"})
"""What keeps the versions of a project: its hooks and settings are programs."""
_SHORT = re.compile(r"git~\d+")
"""How Windows calls `.git` as well."""
_SECRET_TEXT = """
.env .env.* .envrc .netrc _netrc .pgpass .npmrc .yarnrc.yml .pypirc .htpasswd .git-credentials .vault-token
.mcp.json .my.cnf .boto .s3cfg .dockercfg .terraformrc .*_history
id_rsa id_dsa id_ecdsa id_ecdsa_sk id_ed25519 id_ed25519_sk
*.pem *.key *.p12 *.pfx *.jks *.keystore *.kdbx *.ppk *.ovpn *.tfstate *.tfstate.* *.tfvars
credentials credentials.json credentials.yaml credentials.yml credentials.toml credentials.ini
secret.json secret.yaml secret.yml secret.toml secrets.json secrets.yaml secrets.yml secrets.toml
client_secret*.json service-account*.json service_account*.json
"""
_EXAMPLES = frozenset({".env.example", ".env.sample", ".env.template", ".env.dist"})
"""What looks like a secret and is written to be shown."""
_KNOWN_TEXT = """
.github .gitlab .gitlab-ci.yml .gitignore .gitattributes .gitmodules .gitkeep .mailmap .editorconfig
.pre-commit-config.yaml .pre-commit-hooks.yaml .dockerignore .npmignore .prettierrc* .prettierignore
.eslintrc* .eslintignore .stylelintrc* .babelrc* .browserslistrc .swcrc .mocharc.* .nycrc* .husky
.changeset .storybook .flake8 .pylintrc .isort.cfg .style.yapf .ruff.toml .coveragerc .codecov.yml
.python-version .nvmrc
.node-version .ruby-version .tool-versions .rubocop* .rspec .travis.yml .circleci .appveyor.yml
.readthedocs.yml .readthedocs.yaml .devcontainer .vscode .cargo .clang-format .clang-tidy .clangd
.rustfmt.toml .golangci.* .goreleaser.* .releaserc* .markdownlint* .yamllint* .hadolint.yaml .cursorrules
.clinerules .well-known .nojekyll .htaccess .bazelrc .bazelversion .bumpversion.cfg .all-contributorsrc
"""


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(fnmatch.translate(each) for each in patterns))


_SECRET = _any_of(_SECRET_TEXT.split())
_KNOWN = _any_of([*_KNOWN_TEXT.split(), *_EXAMPLES])
"""Hidden files and folders that are part of a project."""


PATTERNS = {
    "shown": [*_KNOWN_TEXT.split(), *sorted(_EXAMPLES)], "secret": _SECRET_TEXT.split(),
    "spared": sorted(_EXAMPLES), "passed": sorted(SKIPPED),
}  # fmt: skip
"""The same for who has neither this module nor `fnmatch`: hidden names that are shown, those that look like a
secret, those that are none all the same, folders that are passed by. Stars alone stand for other letters."""
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters, halves of surrogate pairs (no text), and what turns round the letters behind it."""


def has_unseen(path: str) -> bool:
    """Whether a path is no text, or would be shown as another one."""
    return _UNSEEN.search(path) is not None


@lru_cache(20_000)
def why_refused(name: str) -> str:
    """Why one part of a path is left out, as `is hidden ...`; empty when it is not."""
    plain = _plain(name)
    if plain in _VERSIONS or _SHORT.fullmatch(plain):
        return "keeps the versions of the project, which only its own program touches"
    if name in SKIPPED:
        return "holds other people's files, which are left out"
    if plain not in _EXAMPLES and _SECRET.match(plain):
        return "looks like a secret; such files are not touched"
    if (name.startswith(".") or plain.startswith(".")) and not _KNOWN.match(plain):
        return "is hidden; of hidden files only a project's own settings are seen, such as .github"
    return ""


def _plain(name: str) -> str:
    if name.isascii():
        plain = name.lower()
    else:
        seen = "".join(each for each in name if unicodedata.category(each) != "Cf")
        plain = unicodedata.normalize("NFKC", seen).casefold()
    # NTFS: behind a colon stands a stream of the same file; blanks and full stops at the end are dropped.
    return plain.partition(":")[0].rstrip(" .")

"""An assistant for one folder: it reads, changes and runs what lies there, asks its user and gives work away.

    run_sync(coder("project"), "Why does the test fail?")

Made of what the tools and the public face offer. `coder.py` puts it together, `prompt.py` says what it is
told. May import: `antiphon`, `config`, `tools`, `values`, `errors`. Never: `cli`, `server`, the kernel.
"""

from antiphon.assistant.coder import Coder, coder

__all__ = ["Coder", "coder"]

"""`antiphon` without a command: the assistant of `antiphon.assistant`, in this folder."""

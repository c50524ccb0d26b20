"""`antiphon knowledge`: `commands.py` holds its commands, `shown.py` what they show."""

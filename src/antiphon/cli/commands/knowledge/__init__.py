"""`antiphon knowledge`: `commands.py` holds its commands, `shown.py` what they show, `elsewhere.py` what they
ask of sources that are no folders."""

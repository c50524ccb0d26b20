"""Files and settings: bounded YAML with places for errors, and `.env`.

May import: `errors`. Never: what the settings are for.
"""

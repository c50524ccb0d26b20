"""Programs of the user's, asked before and after a tool is used, when something is asked, and at the end.

`file.py` reads which there are, `scripts.py` runs one, `runner.py` asks those that an event concerns,
`tools.py` puts them around tools, `turns.py` around what is asked and answered.
"""

"""What people write for agents, as they write it for others too: AGENTS.md, skills, commands, `.mcp.json`.

`found.py` puts together what there is for a folder, and leaves out what is not trusted.
"""

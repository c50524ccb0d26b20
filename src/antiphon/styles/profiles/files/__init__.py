"""Profile, LLM config and protocol files: keys, inheritance, checks, errors with places."""

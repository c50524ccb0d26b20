"""A turn of a profile: observers, inbox, prompt, routing, flow decider."""

"""Deltas: what effects say while they run, kept once for all who watch, and how far a tool has come."""

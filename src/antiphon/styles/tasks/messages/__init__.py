"""Structured messages: their values as JSON, replies, tool calls written into text."""

"""The data that rules of a profile read and change."""

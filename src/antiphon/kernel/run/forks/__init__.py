"""Forks: new runs that begin as others did."""

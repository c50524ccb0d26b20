"""The peers, each through its own public interface. One module per peer; its packages are imported inside."""

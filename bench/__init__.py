"""The benchmarks: Antiphon, its peers and the limits of bare Python, measured side by side."""

"""The routes over HTTP, by subject; `bodies` is what comes and goes, `loading` how a run is found."""

"""The kernel: a run is a journal, an agent is a rule over the folded journal.

`facts` is the journal's language and its fold, `rules` says what happens next, `context` shapes what a
model is shown: all pure. `run` alone awaits, performs and appends. Imports go one way: run -> rules ->
facts -> context -> values.
"""

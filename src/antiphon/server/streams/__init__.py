"""What goes on in a run, sent to many: what is said is put into bytes once, whoever reads it."""

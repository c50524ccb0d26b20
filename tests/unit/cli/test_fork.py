"""`antiphon runs fork`: a new run that begins as another one did."""

from antiphon.cli import exit_codes


def test_a_run_is_forked_and_the_fork_goes_on(shell):
    assert shell("run", "team.yaml", "How much is 2+3?", "--quiet").code == 0
    run_id = shell("runs", "ls", "--json").value[0]["run_id"]
    said = shell("runs", "fork", run_id[:6], "--json")
    made = said.value
    assert (said.code, made["origin"], made["at_work"]) == (0, run_id, [])
    shown = shell("runs", "show", made["run_id"])
    assert f"forked from run {run_id[:12]} after record {made['seq']}" in shown.out.splitlines()
    assert shell("runs", "show", run_id, "--json").value["fork"] is None
    assert f"run forked from {run_id} after record {made['seq']}" in shell("runs", "tail", made["run_id"]).out
    assert shell("runs", "verify", made["run_id"]).code == 0
    # Inside the request something is at work; before it nothing was asked yet.
    early = shell("runs", "fork", made["run_id"][:12], "--at", "5")
    assert early.code == 0
    assert early.out.endswith(f" begins as run {made['run_id'][:12]} did, up to record 1\n")
    assert "record 5 does not end where nothing is at work" in early.err
    assert "has the records 1 to " in shell("runs", "fork", run_id, "--at", "999").err
    assert shell("runs", "fork", run_id, "--at", "0").code == exit_codes.USAGE
    assert shell("runs", "fork", "nobody").code == exit_codes.NOT_FOUND
    assert len(shell("runs", "ls", "--json").value) == 3

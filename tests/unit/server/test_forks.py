"""Forks over HTTP: both runs go on."""

from tests.unit.server.teams import desk, in_time, served, started, until_done


def test_a_run_is_forked_and_both_go_on():
    async def work():
        async with served({"desk": desk("Hello.", "Again.")}) as (client, _):
            run_id = await started(client, project="tides")
            await until_done(client, run_id)
            forked = await client("POST", f"/runs/{run_id}/fork", {})
            assert (forked.status, forked.json["origin"], forked.json["at_work"]) == (201, run_id, [])
            other = forked.json["run_id"]
            line = (await client("GET", f"/runs/{other}")).json
            told = {key: line[key] for key in ("state", "name", "team", "owner", "project", "title")}
            assert told == {
                "state": "completed", "name": "", "team": "desk", "owner": "local", "project": "tides",
                "title": "Hi",
            }  # fmt: skip
            for each in (run_id, other):
                ask = {"agent": "desk", "message": f"More in {each}"}
                assert (await client("POST", f"/runs/{each}/requests", ask)).status == 202
                tree = await until_done(client, each, 2)
                assert [one["content"] for one in tree["messages"]][2] == f"More in {each}"
            early = (await client("POST", f"/runs/{run_id}/fork", {"at": 3})).json
            assert early["seq"] < 3
            for body, status in (({"at": 0}, 400), ({"at": "x"}, 400), ({"on": 1}, 400)):
                assert (await client("POST", f"/runs/{run_id}/fork", body)).status == status
            assert (await client("POST", "/runs/nobody/fork", {})).status == 404

    in_time(work)

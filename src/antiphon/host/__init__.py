"""A host for runs: many at once, of teams that it knows by name, without HTTP.

    async with Host("sqlite:///runs.db", {"desk": desk}) as host:
        started = await host.start("desk", "Hello")
        async with host.connect(started.run_id) as run:
            async for item in run.events():
                print(item)

`host` is the whole of it, `hosted` one run while this process drives or watches it, `team` what is known of
a team, `known_teams` which one a run is of, `labels` and `starting` how a run begins, `choices` what may be
chosen for it, `projects` folders that runs share, `removal` what must not cross when one is removed, `undo`
files made again what they were before a run. May import: the kernel, journals, `view`, the tools of a folder.
Never: styles, the command line.
"""

from antiphon.host.host import Host
from antiphon.host.starting import StartedRun
from antiphon.host.team import HostedTeam

__all__ = ["Host", "HostedTeam", "StartedRun"]

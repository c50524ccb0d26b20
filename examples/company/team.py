"""A company of four roles that leaves a tested program in a folder: an idea in, code, tests and a README out.

    antiphon run examples/company "A command line tool that …" --folder out --model openai:gpt-5-mini

Roles publish, and react to what they watch. The engineer writes the program while the tester writes the
tests, each from the design alone; then the tests run, and what fails goes back to the engineer until all pass
or the rounds are used up, which is a failed run. What runs is decided by code, what is written by models.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import msgspec
from msgspec import Struct
from workshop import TESTS, Report, claim, run_tool, write_tool

from antiphon import Agent, Hooks, Limits, ModelOptions
from antiphon.styles.environment import MESSAGE_ROUTE_TO_NONE, Action, Environment, Message, Role
from antiphon.styles.environment.topic import topic_of
from antiphon.tools import folder_tools
from antiphon.values.hooks import PlannedCall, Return, TurnContext, TurnPlan
from antiphon.values.message import ToolCall

ROUNDS = 5
"""Runs of the tests before the company gives up."""
LONG = ModelOptions(max_output_tokens=8_000)
TURNS = Limits(turns=40)

REQUIRE = """Write the requirements for this idea of a user: the purpose in a sentence, three to six \
things that the program has to do, what it does with bad input, and what it leaves out. Each of them must \
be something that a test could check. The program is a command line tool in Python 3.11 that needs the \
standard library only, and no network. Write no code. The idea:"""

DESIGN = """You design small command line programs in Python 3.11, standard library only. From the \
requirements you make a design so exact that one colleague can write the program and another one its \
tests without seeing each other's work: names of functions, arguments, exit codes, the exact form of the \
output and of error messages. The program's file is imported by the tests, so it does nothing on import \
and has `main(arguments: list[str]) -> int`, which writes to sys.stdout and sys.stderr."""

PROGRAM = f"""You write programs in Python 3.11, standard library only. You are given requirements and a \
design. Write every file of the design with write_file, whole: no stub, no "to be done". README.md says \
what the program does and how to call it, with an example. The tests in {TESTS}/ are a colleague's. When \
all files are written, say in a sentence what you have done."""

MEND = """You mend programs in Python 3.11. You are given requirements, a design, and what the tests \
showed. Read the files, find the cause, and write the files that change with write_file, whole. Never \
write code that looks for the tests. If a test contradicts the requirements or the design, leave the \
program as it is and end with a line `DISPUTED: ` and what is wrong with the test. Else say in a sentence \
what the fault was."""

TEST = f"""You test programs in Python 3.11 with `unittest`. You are given requirements and a design, and \
do not see the program. Write the tests with write_test, into {TESTS}/test_….py, so that each requirement \
has a test that fails when it is not met; think of empty input, bad input, and what users get wrong. \
Tests import the program's module, call `main` with sys.stdout redirected, write files only in a \
temporary folder, and end within seconds. When you are done, say in a sentence what is tested."""

DISPUTED = re.compile(r"^DISPUTED:(.*)", re.MULTILINE | re.DOTALL)


class SourceFile(Struct, forbid_unknown_fields=True):
    """A file of the program, its path with `/`, and what it is for."""

    path: str
    purpose: str


class Design(Struct, forbid_unknown_fields=True):
    """What is built. program: the file that a user runs. interface: all that the tests may rely on."""

    program: str
    files: list[SourceFile]
    interface: str

    def __post_init__(self) -> None:
        self.files.sort(key=lambda each: each.path)
        paths = [each.path for each in self.files]
        if not 1 <= len(paths) <= 12 or len(set(paths)) < len(paths):
            raise ValueError(f"files: name 1 to 12, each once; got {paths}")
        for path in paths:
            parts = PurePosixPath(path).parts
            if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_./-]*", path) or "/." in path or parts[0] == TESTS:
                raise ValueError(f"files: {path!r} is no path inside the folder, or one of {TESTS}/")
        if self.program not in paths or not self.program.endswith(".py"):
            raise ValueError(f"program: {self.program!r} is none of the files, or no .py file")
        if "README.md" not in paths:
            raise ValueError("files: README.md has to be one of them")

    def told(self) -> str:
        """The design for those who work by it."""
        files = "\n".join(f"- {each.path}: {each.purpose}" for each in self.files)
        return f"# Design\nThe program is {self.program}.\n{files}\n\n{self.interface}"


class WriteRequirements(Action):
    """Makes requirements of a user's idea."""

    async def run(self, with_messages: Sequence[Message] | None = None, **kwargs: object) -> str:
        return await self._aask(f"{REQUIRE}\n{latest(with_messages).content}")


class WriteDesign(Action):
    """Has the designer, whose output is a `Design`, decide on files and interface."""

    async def run(self, with_messages: Sequence[Message] | None = None, **kwargs: object) -> Message:
        required = f"# Requirements\n{latest(with_messages).content}"
        design = msgspec.json.decode(await self.ctx.call("designer", required), type=Design)
        return Message(f"{required}\n\n{design.told()}", instruct_content=design, cause_by=self)


class WriteProgram(Action):
    """Writes the program of a design, or mends it after its tests have failed."""

    async def run(self, with_messages: Sequence[Message] | None = None, **kwargs: object) -> str:
        design, news = designed(with_messages), latest(with_messages)
        if news.cause_by == topic_of(RunTests):
            return await self.ctx.call(
                "mender", f"{design.content}\n\n# What the tests showed\n{news.content}"
            )
        return await self.ctx.call("programmer", design.content)


class WriteTests(Action):
    """Writes the tests of a design."""

    async def run(self, with_messages: Sequence[Message] | None = None, **kwargs: object) -> str:
        return await self.ctx.call("test_author", designed(with_messages).content)


class RunTests(Action):
    """Runs the tests: a message for the engineer, or the end. Raises RuntimeError after the last round."""

    async def run(self, with_messages: Sequence[Message] | None = None, **kwargs: object) -> Message:
        tester, design, news = self.role, designed(with_messages), latest(with_messages)
        assert isinstance(tester, Tester)
        disputed = DISPUTED.search(news.content)
        if disputed:
            asked = f"The engineer says that a test is wrong:{disputed[1]}\nMend it if that is so."
            await self.ctx.call("test_author", f"{design.content}\n\n{asked}")
        found = await self.tried(design)
        tester.rounds += 1
        if found.passed:
            files = ", ".join(each.path for each in design.instruct_as(Design).files)
            rounds = "the first round" if tester.rounds == 1 else f"round {tester.rounds}"
            said = f"{tester.folder}: {files}, {TESTS}/: all {found.ran} tests pass, in {rounds}."
            return Message(said, cause_by=self, send_to={MESSAGE_ROUTE_TO_NONE})
        if tester.rounds >= ROUNDS:
            raise RuntimeError(f"{ROUNDS} rounds are over and the tests do not pass. {found.told()}")
        return Message(found.told(), cause_by=self)

    async def tried(self, design: Message) -> Report:
        """The report of a run of the tests, which are written once more when there are none."""
        expected = msgspec.json.encode(
            {"expected": [each.path for each in design.instruct_as(Design).files]}
        ).decode()
        found = msgspec.json.decode(await self.ctx.call("bench", expected), type=Report)
        if found.ran or found.stopped.startswith("The tests were ended"):
            return found
        await self.ctx.call("test_author", f"{design.content}\n\nSo far no test could be run: {found.told()}")
        return msgspec.json.decode(await self.ctx.call("bench", expected), type=Report)


class Tester(Role):
    """Writes tests when there is a design, and runs them when there is a program."""

    name: str = "Tester"
    folder: str = ""
    rounds: int = 0

    def __init__(self, **fields: object) -> None:
        super().__init__(**fields)
        self.set_actions([WriteTests, RunTests])
        self._watch({WriteDesign, WriteProgram})

    async def _think(self) -> bool:
        designed_anew = self.rc.news[-1].cause_by == topic_of(WriteDesign)
        if designed_anew:
            self.rounds = 0
        self._set_state(0 if designed_anew else 1)
        return True


def latest(messages: Sequence[Message] | None) -> Message:
    """The message that a role reacts to: the last of all that it remembers."""
    return list(messages or ())[-1]


def designed(messages: Sequence[Message] | None) -> Message:
    """The message with the latest design."""
    return next(each for each in reversed(messages or ()) if each.cause_by == topic_of(WriteDesign))


def bench(folder: Path) -> list[Agent]:
    """Two agents without a model: what they are told to expect is what `run_tests` is called with.

    So the verdict on the tests is their own, no model's; and like every tool they need permission.
    """

    def plan_turn(context: TurnContext) -> TurnPlan:
        call = ToolCall("tests", "run_tests", context.new_messages[0].content)
        return TurnPlan([PlannedCall("test_runner", calls=(call,))])

    def end_turn(context: TurnContext) -> Return:
        (found,) = context.results
        return Return(found.outcome, found.content, found.reason or found.content)

    return [
        Agent(
            "bench",
            standalone=True,
            can_call=["test_runner"],
            hooks=Hooks(plan_turn=plan_turn, end_turn=end_turn),
        ),
        Agent("test_runner", standalone=True, tools=[run_tool(folder)], hooks=Hooks(end_turn=end_turn)),
    ]


def team(folder: Path) -> list[Agent]:
    """The company at work in `folder`. Raises ConfigError when it holds other files than the company's."""
    claim(folder)
    look = [each for each in folder_tools(folder) if each.name in ("list_files", "read_lines")]
    program, tests = write_tool(folder, tests=False), write_tool(folder, tests=True)
    colleagues = [
        Agent("designer", DESIGN, output_type=Design, asking=LONG, can_call=()),
        Agent("programmer", PROGRAM, tools=[program, *look], asking=LONG, limits=TURNS, can_call=()),
        Agent("mender", MEND, tools=[program, *look], asking=LONG, limits=TURNS, can_call=()),
        Agent("test_author", TEST, tools=[tests], asking=LONG, limits=TURNS, can_call=()),
    ]
    roles = [
        Role(
            name="ProductManager",
            desc='You are "ProductManager", who knows what users need and what they can do without.',
            actions=[WriteRequirements],
        ),
        Role(name="Architect", actions=[WriteDesign], watch=[WriteRequirements]),
        Role(name="Engineer", actions=[WriteProgram], watch=[WriteDesign, RunTests]),
        Tester(folder=str(folder)),
    ]
    # The tester counts the rounds, so that nobody is stopped without a word.
    company = Environment(
        "builds a small program, with tests", roles=roles, agents=[*colleagues, *bench(folder)],
        name="company", laps=None,
    )  # fmt: skip
    return company.agents()

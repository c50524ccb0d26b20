"""Whatever happens in whatever order: what was said stands on the terminal once, and no key is lost."""

import asyncio
import random
import re

import pytest
from prompt_toolkit.input import DummyInput
from prompt_toolkit.input.vt100_parser import Vt100Parser

from antiphon.cli.screen.choices import OfferedLine
from antiphon.cli.screen.given import Given
from antiphon.cli.screen.inline import InlineScreen
from tests.unit.cli.screen.terminals import Cropping, Reflowing, without_blanks

SAID, TYPED = re.compile(r"\bw\d+"), re.compile(r"\bk\d+")


class Play:
    """One screen on one terminal, and everything that was said and typed."""

    def __init__(self, kind, seed):
        self.chance = random.Random(seed)
        self.terminal = kind(self.chance.randint(20, 100), self.chance.randint(6, 40))
        self.frames = 0
        self.screen = InlineScreen(
            lambda: None, lambda: None, lambda: None, write=self.write, keys=DummyInput(), plain=True,
            size=lambda: (self.terminal.columns, getattr(self.terminal, "rows", None) or self.terminal.lines),
        )  # fmt: skip
        self.agents = 0
        self.screen.look(lambda: [f"agent {n}: works" for n in range(self.agents)], lambda: "facts")
        self.screen.listen()
        self.said, self.typed, self.numbers = [], [], iter(range(1_000_000))
        self.finished = []
        paint = self.screen._painter.paint

        def noting(finished, rows, *, anew=False):
            self.finished += finished
            paint(finished, rows, anew=anew)

        self.screen._painter.paint = noting

    def write(self, frame):
        self.frames += 1
        self.terminal.feed(frame)

    def keys(self, text):
        found = []
        parser = Vt100Parser(found.append)
        parser.feed(text)
        self.screen._editor.feed(found)

    def word(self, mark, into):
        into.append(f"{mark}{next(self.numbers)}")
        return into[-1]

    def step(self):
        getattr(self, self.chance.choice(self.STEPS))()

    def says(self):
        text = " ".join(self.word("w", self.said) for _ in range(self.chance.randint(1, 12)))
        self.screen.say(text + self.chance.choice([" ", " ", "\n", "\n\n", "\n```\n", ".\n- "]))

    def ends(self):
        self.screen.end_line()

    def notes(self):
        self.screen.note(self.word("w", self.said))

    @property
    def choosing(self):
        """Whether keys answer now, each by itself."""
        panel = self.screen._panel
        return panel is not None and panel.live and panel.mode == "choose"

    def types(self):
        if not self.choosing:
            self.keys(self.word("k", self.typed) + " ")

    def sends(self):
        if not self.choosing:
            self.keys(self.word("k", self.typed) + "\r")
            if isinstance(self.screen.messages[-1], Given):
                self.screen.put_away()

    def vanishes(self):
        """Somebody else has answered."""
        self.screen.put_away()

    def pastes(self):
        lines = "\n".join(self.word("k", self.typed) for _ in range(self.chance.randint(1, 30)))
        self.keys(f"\x1b[200~{lines}\n\x1b[201~")

    def queues(self):
        if self.screen._panel is None:
            self.keys(self.word("k", self.typed))
            self.screen.queued(self.screen._editor._take())

    def resizes(self):
        if isinstance(self.terminal, Cropping):
            # It breaks a row that is wider than it is, and cannot be asked where.
            self.draws()
        self.terminal.resize(self.chance.randint(20, 100), self.chance.randint(6, 40))
        self.screen._resized()
        self.draws()

    def asks(self):
        if self.screen._panel is None:
            tool = self.chance.choice(["pay", ""])
            self.screen.ask(tool, '{"command":"git diff"}', offers=True)

    def settles(self):
        if self.screen._panel is not None and not self.screen._panel.live:
            self.screen._settled()

    def answers(self):
        if self.choosing:
            self.keys(self.chance.choice("yYaA1"))
            self.screen.put_away()

    def outputs(self):
        """A tool gives back more than is shown."""
        lines = [self.word("w", self.said) for _ in range(self.chance.randint(1, 6))]
        self.screen.output("output", "\n".join([*lines, *("folded",) * self.chance.choice([0, 20])]))

    def searches(self):
        """What was sent before is looked for, and left alone."""
        if not self.choosing:
            self.keys("\x12")
            self.keys("k\x12\x7f")
            self.draws()
            self.keys("\x03")

    def picks(self):
        """One of a list is picked, or none."""
        if self.screen._panel is None:
            self.screen.choose("Which?", [OfferedLine(f"number {n}", "") for n in range(20)])
            self.keys("\x1b[A\x1b[6~x")
            self.draws()
            self.keys(self.chance.choice(["\r", "\x03"]))
            self.screen._choices = None

    def leaves_for_another_program(self):
        self.screen.away(True)
        self.chance.choice([self.says, self.notes, self.works])()
        self.draws()
        self.screen.away(False)

    def works(self):
        self.agents = self.chance.randint(0, 12)

    def draws(self):
        self.screen._frame()

    STEPS = (
        *("says",) * 6, "ends", "notes", *("types",) * 3, "sends", "pastes", "queues", "resizes", "asks",
        "settles", "answers", "vanishes", "works", "outputs", "searches", "picks",
        "leaves_for_another_program", *("draws",) * 5,
    )  # fmt: skip

    def check(self):
        """The terminal shows what is finished, and then what goes on, and nothing else."""
        self.draws()
        assert self.terminal.text() == without_blanks([*self.finished, *self.screen.rows()])
        # Of what was said each word stands there once, in its order; below is only the end of the rest.
        finished = SAID.findall("\n".join(self.finished))
        assert finished == self.said[: len(finished)]

    def kept(self):
        """Every key, wherever it went."""
        sent = [each.content if isinstance(each, Given) else each for each in self.screen.messages if each]
        written = [*self.screen.later, self.screen._draft, self.screen._editor.buffer.text]
        return [*sent, *map(self.screen._editor.pastes.whole, written)]


@pytest.mark.parametrize("kind", [Reflowing, Cropping])
def test_every_line_once_and_no_key_lost(kind):
    schedules(kind, range(3))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Reflowing, Cropping])
def test_a_sample_of_six_hundred_schedules(kind):
    schedules(kind, range(30))


@pytest.mark.deep
@pytest.mark.parametrize("kind", [Reflowing, Cropping])
@pytest.mark.parametrize("block", range(1, 10))
def test_six_hundred_schedules(kind, block):
    schedules(kind, range(30 * block, 30 * block + 30))


def schedules(kind, seeds):
    async def main():
        for seed in seeds:
            play = Play(kind, seed)
            for _ in range(play.chance.randint(10, 80)):
                play.step()
            play.check()
            typed = TYPED.findall("\n".join(play.kept()))
            assert sorted(typed) == sorted(play.typed), seed
            answers = [each for each in play.screen.messages if isinstance(each, Given)]
            # Nothing that was typed before a panel was live answers it.
            assert all(each.content in ("yes", "always") or TYPED.search(each.content) for each in answers)
            play.screen.end_line()
            play.check()
            assert SAID.findall("\n".join(play.finished)) == play.said, seed
            play.screen.close()
            assert play.terminal.text() == without_blanks(play.finished), seed
            await play.screen._editor._application.cancel_and_wait_for_background_tasks()
        await asyncio.sleep(0)

    asyncio.run(main())

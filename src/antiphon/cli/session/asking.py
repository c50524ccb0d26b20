"""What a run asks the person it is talked with: put to them one at a time, and answered."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from antiphon import UserError
from antiphon.cli.display import terminal_escape
from antiphon.cli.screen.given import Given
from antiphon.cli.session.drive import FollowedRun
from antiphon.cli.session.person import Person
from antiphon.cli.session.questions import MORE, Question, Questions, answer_to, does, show
from antiphon.cli.source import Runs
from antiphon.cli.user import my_name
from antiphon.errors import AntiphonError
from antiphon.values.message import new_id
from antiphon.values.policy import Grant, StandingRule
from antiphon.view import RunTree


async def keep_pattern(runs: Runs, project: str, tool: str, grant: Grant) -> None:
    """Have a pattern of a tool allowed in every run of a project from now on. Raises AntiphonError."""
    name = f"rule-{new_id()[:12]}"
    await runs.add_rule(StandingRule(name, "project", project, tool, "allow", grant, my_name(), time.time()))


class Asking:
    """The questions of one run, and the one that is put now. agents: whose tools may say what a call does.
    keep: remembers a pattern that is allowed for good beyond the run; None where nothing does."""

    def __init__(
        self, run: FollowedRun, tree: RunTree, person: Person, agents: Sequence[Any],
        keep: Callable[[str, Grant], Awaitable[None]] | None = None,
    ) -> None:  # fmt: skip
        self._run, self._tree, self._person, self._agents = run, tree, person, agents
        self._keep = keep
        self._questions = Questions(tree)
        self._question: Question | None = None

    @property
    def open(self) -> bool:
        """Whether one is put now."""
        return self._question is not None

    def next(self) -> None:
        """Put the oldest open question to the person, one at a time."""
        question = self._questions.next()
        if question is None or self._question is not None or not self._person.interactive:
            return
        self._question = question
        typed, inline = self._person.typed, self._person.inline
        if question.tool in self._questions.always:
            typed.messages.appendleft("always" if inline is None else Given("always"))
            self._person.bell.ring()
            return
        if inline is not None:
            self._person.screen.end_line()
            show(self._person.screen.console, question, whole=True, prompt=False)
            inline.ask(
                question.tool, question.arguments, offers=question.tool not in ("", MORE),
                subjects=does(self._agents, question),
            )  # fmt: skip
            return
        typed.raw = True
        typed.forget()
        self._show(question)

    def look(self, *, told: bool) -> None:
        """Put away what is settled, and put what is open. told: it is said that it was settled elsewhere."""
        if self._question is not None and not self._questions.is_open(self._question):
            self._put_away("(it was settled elsewhere)" if told else "")
        self.next()

    def _show(self, question: Question, whole: bool = False) -> None:
        self._person.screen.end_line()
        show(self._person.screen.console, question, whole)
        self._person.screen.asked()

    async def give(self, given: Given) -> None:
        """Give the answer that the panel took, to what is asked."""
        question = self._question
        if question is None:
            return
        content = given.content
        try:
            if not question.tool:
                content = answer_to(question, content) or ""
            if content or question.tool:
                await self._run.answer(
                    question.id, content, arguments=given.arguments, grant=given.grant, reason=given.reason
                )
        except (ValueError, UserError) as error:
            if self._questions.is_open(question) and question.id in self._tree.human_inputs:
                self._person.screen.note(f"({terminal_escape.line(str(error), 300)})", "yellow")
                self._question = None
                self.next()
                return
        narrow = given.grant is not None and bool(given.grant.reaches)
        said = {"yes": "allowed once", "no": "refused", "always": "allowed from now on"}.get(content, content)
        if self._keep is not None and narrow and content == "always":
            said = await self._kept(question.tool, given.grant or Grant(), self._keep)
        self._person.screen.note(f"  {terminal_escape.line(said, 200)}")
        self._questions.answered(question, "yes" if narrow else content)
        self._put_away("")
        self.next()

    async def _kept(self, tool: str, grant: Grant, keep: Callable[[str, Grant], Awaitable[None]]) -> str:
        """Remember a pattern beyond the run; what is said of it."""
        try:
            await keep(tool, grant)
        except AntiphonError as error:
            return f"allowed in this run from now on; not in others: {error}"
        return "allowed from now on, in this folder; `/rules` lists what is"

    async def answer(self, line: str) -> None:
        """Answer what is asked with a line."""
        question = self._question
        if question is None:
            return
        answer: str | None = None
        try:
            answer = answer_to(question, line)
        except ValueError as error:
            self._person.screen.note(f"({error})")
        if not answer:
            self._show(question, bool(question.tool) and line.strip().lower() in ("v", "view"))
            return
        try:
            await self._run.answer(question.id, answer)
        except UserError:
            self._person.screen.note("(it was settled elsewhere)")
        self._questions.answered(question, answer)
        self._put_away("")
        self.next()

    def _put_away(self, why: str) -> None:
        self._question, self._person.typed.raw = None, False
        if self._person.inline is not None:
            self._person.inline.put_away()
        if why:
            self._person.screen.note(why)

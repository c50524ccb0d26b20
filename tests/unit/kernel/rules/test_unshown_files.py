"""Files of results that no model takes, or that are too large for one: named by a handle, and read by it."""

import asyncio
import base64

import pytest

from antiphon import Agent, Attachment, open_run, run_sync, tool
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.facts.events import EffectFinished
from antiphon.kernel.run.rows import pack
from antiphon.kernel.run.tools.unshown import MAX_FILE, MAX_TEXT
from antiphon.models.script import Script, call
from antiphon.values.message import ToolResult

ZIP = bytes(range(40))
LINES = "".join(f"line {number}\n" for number in range(20_000)).encode()
HANDLE = "1/1.c1#1"


def giving(*files, text="here", **more):
    @tool(effect="read", **more)
    def give() -> ToolResult:
        """Give files."""
        return ToolResult(text, files)

    return give


def shown(give, *calls, **options):
    """What a model is shown of a call of `give`, and of further calls."""
    model = Script([call("give"), *calls, "done"])
    assert run_sync(Agent("a", tools=[give], model=model), "go", **options).output == "done"
    return [each for each in model.requests[-1].messages if each.role == "tool"]


def read(handle=HANDLE, **more):
    return call("read_output", handle=handle, **more)


def test_a_file_that_no_model_takes_is_named_and_read_as_rows():
    given, told = shown(giving(Attachment("application/zip", ZIP, name="a.zip")), read())
    assert given.attachments == ()
    assert given.content == (
        f'[not shown: a.zip, application/zip, about 42 bytes; read_output(handle="{HANDLE}") reads it]\nhere'
    )
    rows = told.content.splitlines()
    assert rows[0].strip() == (
        "1  00000000  00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f  ................"
    )
    assert rows[2].strip() == "3  00000020  20 21 22 23 24 25 26 27                           !\"#$%&'"
    assert rows[3] == "[end of output]"


def test_a_text_that_is_too_large_is_paged_and_searched():
    notes = Attachment("text/plain", LINES, name="notes.txt")
    given, page, found = shown(
        giving(notes), read(offset=19_999), call("grep_output", handle=HANDLE, pattern="line 19998")
    )
    assert "notes.txt, text/plain, about 208,890 bytes" in given.content
    assert page.content.split() == [
        "19999",
        "line",
        "19998",
        "20000",
        "line",
        "19999",
        "[end",
        "of",
        "output]",
    ]
    assert found.content.split() == ["19999", "line", "19998"]


@pytest.mark.parametrize(
    ("file", "taken"),
    [
        (Attachment("image/png", b"x"), True),
        (Attachment("IMAGE/PNG; q=1", b"x"), True),
        (Attachment("image/png", "A" * (MAX_FILE + 4)), False),
        (Attachment("image/tiff", b"x"), False),
        (Attachment("application/pdf", b"x"), True),
        (Attachment("text/csv", b"x"), True),
        (Attachment("application/json", "A" * (MAX_TEXT + 4)), False),
        (Attachment("application/octet-stream", b"x"), False),
        (Attachment("application/zip", url="https://example.test/z.zip"), True),
        (Attachment("image/png", b"x", shown=False), False),
    ],
)
def test_what_models_take_they_are_shown(file, taken):
    (given,) = shown(giving(file))
    assert (len(given.attachments), "[not shown: " in given.content) == (int(taken), not taken)


def test_of_several_each_has_its_handle_and_what_is_shown_stays():
    png, zipped = Attachment("image/png", b"x", name="p"), Attachment("application/zip", b"PK", name="z")
    given, one, two = shown(giving(png, zipped, zipped, text=""), read("1/1.c1#2"), read("1/1.c1#1"))
    assert [each.name for each in given.attachments] == ["p"]
    assert given.content.count("[not shown: z, ") == 2
    assert "50 4b" in one.content or "PK" in one.content
    assert "No output is kept under the handle '1/1.c1#1'" in two.content


def test_what_is_no_base64_says_so():
    _, told = shown(giving(Attachment("application/zip", "%%%")), read())
    assert told.content == f"Error: [read_output] The file '{HANDLE}' is not base64, and cannot be read"


def test_a_failed_call_keeps_its_files_as_well():
    @tool(effect="read")
    def give() -> ToolResult:
        """Fail, with the half of it."""
        return ToolResult("half of it", (Attachment("application/zip", b"PK"),), is_error=True)

    given, told = shown(give, read())
    assert given.content.splitlines()[1] == "Error: [give] half of it"
    assert told.content.splitlines()[0].endswith("PK")


def test_whoever_asked_is_given_every_file_of_an_answer():
    give = giving(Attachment("application/zip", b"PK"), finishes=True)
    result = run_sync(Agent("a", tools=[give], model=Script([call("give")])), "go")
    assert (result.output, [each.shown for each in result.attachments]) == ("here", [True])


def test_it_is_read_after_a_restart_and_stored_once():
    journal, data = MemoryJournal(), base64.b64encode(bytes(9_000)).decode()
    give = giving(Attachment("application/zip", data))

    async def go():
        first, second = Script([call("give"), "one"]), Script([read(), "two"])
        for model, options in ((first, {"create": True}), (second, {})):
            agent = Agent("a", tools=[give], model=model, context="continue")
            async with open_run([agent], run_id="r", journal=journal, **options) as run:
                await run.result(await run.post("a", "go"))
        return second.requests[-1].messages[-1].content

    assert "00000000  00 00" in asyncio.run(go())
    file = Attachment("application/zip", data)
    _, refs, blobs = pack([EffectFinished(f"1/1.c{each}", attachments=(file,)) for each in (1, 2)])
    assert (len(refs), len(blobs)) == (2, 1)

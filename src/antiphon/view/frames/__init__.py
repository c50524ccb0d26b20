"""Frames: a run for a program that draws it and knows nothing of events, in whatever language.

    reader = FrameReader()
    for record in await run.records():
        send(encode(reader.add(record)))

A frame is one record: what it changed, as flat JSON whose parts name each other by number and id. Who keeps
what the frames say has the run as of any record. Long texts come cut, with their whole length: whoever wants
all of one asks for its effect.
"""

from antiphon.view.frames.frame import Frame
from antiphon.view.frames.reader import TEXT, VALUE, FrameReader, encode

__all__ = ["TEXT", "VALUE", "Frame", "FrameReader", "encode"]

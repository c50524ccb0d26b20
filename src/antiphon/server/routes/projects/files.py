"""Routes on the files of a project: list, put, get, delete."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, BinaryIO
from urllib.parse import quote

from litestar import Request, delete, get, put
from litestar.openapi.spec import OpenAPIFormat, OpenAPIMediaType, OpenAPIType, Operation, RequestBody, Schema
from litestar.params import FromPath
from litestar.response import Stream

from antiphon.host.projects import FileEntry, Upload
from antiphon.host.projects.files import MAX_FILE
from antiphon.server.permissions import allowed
from antiphon.server.problems import Refusal
from antiphon.server.routes.bodies.projects import FileBody, FileList
from antiphon.server.routes.loading import FromHost, FromServed, FromSubject
from antiphon.server.routes.projects.projects import visible_project

PIECE = 1 << 20
"""Bytes that are read or written between two breaths."""


@get("/projects/{project:str}/files", summary="List files of a project", **allowed("read"))
async def list_files(project: FromPath[str], host: FromHost, subject: FromSubject) -> FileList:
    """What the runs of the project may read, by path."""
    found = await visible_project(host, subject, project)
    return FileList([_body(each) for each in await asyncio.to_thread(found.files.list)])


BYTES = Schema(type=OpenAPIType.STRING, format=OpenAPIFormat.BINARY)


@dataclass
class UploadOperation(Operation):
    """A route whose body is read as it comes, and so has no type of its own to be documented by."""

    def __post_init__(self) -> None:
        self.request_body = RequestBody(
            {"application/octet-stream": OpenAPIMediaType(BYTES)}, "The file, up to 50 MB.", required=True
        )


@put(
    "/projects/{project:str}/files/{path:path}", summary="Upload a file", request_max_body_size=None,
    operation_class=UploadOperation, **allowed("write"),
)  # fmt: skip
async def put_file(
    project: FromPath[str], path: FromPath[str], request: Request[Any, Any, Any], host: FromHost,
    subject: FromSubject, served: FromServed,
) -> FileBody:  # fmt: skip
    """Store the body, up to 50 MB, as a file of the project; one of that path is replaced at once."""
    found = await visible_project(host, subject, project)
    _check_size(request.headers.get("content-length", ""))
    path = path.removeprefix("/")
    with served.uploads.one(project) as committing:
        upload = await asyncio.to_thread(found.files.upload, path)
        try:
            await _receive(request, upload)
            async with committing:
                # It may have been removed meanwhile, or others have filled it.
                await visible_project(host, subject, project)
                await asyncio.to_thread(found.files.check_room, path, upload.size)
                stored = await asyncio.to_thread(upload.commit)
        finally:
            upload.discard()
    return _body(stored)


@get(
    "/projects/{project:str}/files/{path:path}", summary="Download a file",
    media_type="application/octet-stream", **allowed("read"),
)  # fmt: skip
async def get_file(
    project: FromPath[str], path: FromPath[str], host: FromHost, subject: FromSubject
) -> Stream:
    """A file as it was uploaded, to be saved and never shown."""
    found = await visible_project(host, subject, project)
    handle, entry = await asyncio.to_thread(found.files.open, path.removeprefix("/"))
    name = entry.path.rpartition("/")[2]
    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "Content-Length": str(entry.size),
    }
    # A file that nobody reads to the end, or at all, is closed with its last reference.
    file = os.fdopen(handle, "rb")
    return Stream(_pieces(file, entry.size), media_type="application/octet-stream", headers=headers)


@delete("/projects/{project:str}/files/{path:path}", summary="Delete a file", **allowed("write"))
async def delete_file(
    project: FromPath[str], path: FromPath[str], host: FromHost, subject: FromSubject
) -> None:
    """Remove a file for good, and folders that are empty then."""
    found = await visible_project(host, subject, project)
    await asyncio.to_thread(found.files.remove, path.removeprefix("/"))


async def _receive(request: Request[Any, Any, Any], upload: Upload) -> None:
    """Write the body as it comes. Raises Refusal for one that is too large."""
    pieces, held = list[bytes](), 0
    async for chunk in request.stream():
        pieces.append(chunk)
        held += len(chunk)
        _check_size(str(upload.size + held))
        if held >= PIECE:
            await asyncio.to_thread(upload.write, b"".join(pieces))
            pieces, held = [], 0
    await asyncio.to_thread(upload.write, b"".join(pieces))


def _check_size(size: str) -> None:
    if size.isascii() and size.isdigit() and int(size[:20]) > MAX_FILE:
        raise Refusal(413, "too_large", "The file is larger than 50 MB", "Split it, or copy it there by hand")


async def _pieces(file: BinaryIO, size: int) -> AsyncIterator[bytes]:
    """So many bytes of an open file, which is closed after that."""
    with file:
        while size and (piece := await asyncio.to_thread(file.read, min(size, PIECE))):
            size -= len(piece)
            yield piece


def _body(entry: FileEntry) -> FileBody:
    return FileBody(entry.path, entry.size, entry.modified)


ROUTES: tuple[Any, ...] = (list_files, put_file, get_file, delete_file)

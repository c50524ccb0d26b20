"""Documents that tests make: small PDF files, and what an index holds, to be compared."""

from __future__ import annotations

import zlib
from typing import Any

from antiphon.tools.folder.index import FolderIndex


def pdf(*pages: str) -> bytes:
    """A PDF whose pages show these texts, line by line."""
    objects: list[bytes] = [b"<< /Type /Catalog /Pages 2 0 R >>"]
    kids = " ".join(f"{4 + 2 * at} 0 R" for at in range(len(pages)))
    objects.append(f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode())
    objects.append(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    for at, page in enumerate(pages):
        shown = " T* ".join(f"({line}) Tj" for line in page.splitlines())
        body = zlib.compress(f"BT /F1 12 Tf 14 TL 72 720 Td {shown} ET".encode())
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * at} 0 R"
            " /Resources << /Font << /F1 3 0 R >> >> >>".encode()
        )
        objects.append(
            f"<< /Length {len(body)} /Filter /FlateDecode >>\nstream\n".encode() + body + b"\nendstream"
        )
    written = bytearray(b"%PDF-1.4\n")
    places = []
    for number, each in enumerate(objects, 1):
        places.append(len(written))
        written += f"{number} 0 obj\n".encode() + each + b"\nendobj\n"
    start = len(written)
    written += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    written += b"".join(f"{place:010} 00000 n \n".encode() for place in places)
    written += f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n".encode()
    return bytes(written)


def held(index: FolderIndex) -> dict[str, Any]:
    """All that an index holds, without the keys, which tell what was there before."""
    with index.using() as connection:
        files = connection.execute("select path, size, changed, reason from files order by path").fetchall()
        texts = connection.execute(
            "select f.path, c.kind, p.place, p.first, p.last, p.heading, p.text, p.digest"
            " from files f join contents c on c.key = f.content join passages p on p.content = c.key"
            " order by f.path, p.place"
        ).fetchall()
        orphans = connection.execute(
            "select count(*) from contents where key not in (select content from files where content notnull)"
        ).get
        vectors = connection.execute("select digest, vector from vectors order by digest").fetchall()
    found = {}
    for word in sorted({word for text in texts for word in f"{text[5]} {text[6]}".split()})[:200]:
        matches = index.search(word, 100)
        found[word] = [
            (round(each.score, 9), each.passage.path, each.passage.first, each.passage.last)
            for each in matches
        ]
    return {"files": files, "texts": texts, "orphans": orphans, "found": found, "vectors": vectors}

// Files beside a text: an image is shown as one, everything else is only saved. Nothing that is in one acts.
import { useEffect, useState } from "react";
import { Glyph } from "../parts/Glyph";
import { bytes, save } from "../parts/files";
import { useActions } from "../server/actions";
import { reason } from "../server/problem";
import type { FileFrame, Frame } from "../state/wire";
import { line, visible } from "../state/words";

/** Pictures that a browser only paints: no SVG, which is a document. */
const IMAGES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"]);
/** Bytes of all files of one record that are fetched without being asked for. */
const SOON = 4_000_000;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

const isImage = (file: FileFrame): boolean => IMAGES.has(file.media_type);

/** seq: the record that holds them, of which `pick` takes them. large: as large as there is room. */
export function Brought({ files, seq, pick, large = false }: {
  files: FileFrame[]; seq: number; pick(frame: Frame): FileFrame[] | undefined; large?: boolean;
}) {
  const actions = useActions();
  const [held, hold] = useState<FileFrame[]>();
  const [wrong, setWrong] = useState("");
  const shown = held ?? files;
  const missing = files.some((each) => each.bytes && !each.data);
  const load = async (): Promise<FileFrame[]> => {
    if (!missing || held || !actions) return shown;
    const found = pick(await actions.files(seq)) ?? [];
    if (found.length === files.length) hold(found);
    return found;
  };
  const soon = missing && !held && actions !== null && files.some(isImage) && files.reduce((sum, each) => sum + (each.bytes ?? 0), 0) <= SOON;
  useEffect(() => {
    if (!soon) return;
    let left = false;
    load().catch((error: unknown) => { if (!left) setWrong(reason(error)); });
    return () => { left = true; };
  }, [soon, seq]);
  const keep = (index: number): void => {
    setWrong("");
    load().then((found) => {
      const file = found[index];
      if (file?.data && BASE64.test(file.data)) save(blobOf(file.data), nameOf(file, index));
      else setWrong("What it holds is not base64, or is not in this file");
    }, (error: unknown) => setWrong(reason(error)));
  };
  return (
    <ul className={large ? "brought large" : "brought"} aria-label="Files">
      {shown.map((each, index) => {
        const name = nameOf(each, index);
        const there = Boolean(each.data);
        return (
          <li key={index}>
            {isImage(each) && (there && BASE64.test(each.data!)
              ? <img src={`data:${each.media_type};base64,${each.data}`} alt={name} decoding="async" />
              : soon && <div className="sk picture" />)}
            <p className="row sm"><Glyph shape="tool" /><span className="cut">{name}</span>
              <span className="faint">{line(each.media_type, 60)}{each.bytes ? ` · ${bytes(each.bytes)}` : ""}</span>
              {each.url && <code className="cut">{visible(each.url)}</code>}
              {Boolean(each.bytes) && (there || actions
                ? <><button className="link" aria-label={`Save ${name}`} onClick={() => keep(index)}>Save</button>
                    {isImage(each) && !there && !soon && <button className="link" onClick={() => void load().catch((error: unknown) => setWrong(reason(error)))}>Show</button>}</>
                : <span className="faint">too large to be in this file</span>)}</p>
          </li>);
      })}
      {wrong && <li><p className="kt k-error sm" role="alert">{line(wrong, 300)}</p></li>}
    </ul>
  );
}

/** Its own name without folders, or what it is. */
const nameOf = (file: FileFrame, index: number): string =>
  line((file.name ?? "").split(/[\\/]/).at(-1) ?? "", 120) || `file ${index + 1}`;

function blobOf(data: string): Blob {
  const text = atob(data);
  const held = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) held[at] = text.charCodeAt(at);
  // Whatever it says that it is, a browser must not open it.
  return new Blob([held], { type: "application/octet-stream" });
}

/** The files of an effect's end, in the frame of its record. */
export const ofEnd = (id: string) => (frame: Frame): FileFrame[] | undefined =>
  frame.changes.filter((each) => each.type === "effect_ended").find((each) => each.id === id)?.files;

/** The files of a message, in the frame of a record that has it. */
export const ofMessage = (id: string) => (frame: Frame): FileFrame[] | undefined =>
  frame.changes.flatMap((each) => {
    if (each.type === "effect_started") return each.callee ? [each.callee.opening] : [];
    return each.type === "turn_started" ? (each.messages ?? []) : each.type === "message_arrived" ? [each.message] : [];
  }).find((each) => each.id === id)?.files;

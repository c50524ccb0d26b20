// What a call made of files: in one line each, or with the lines that differ.
import { useState } from "react";
import { Diff } from "../parts/Diff";
import { Glyph } from "../parts/Glyph";
import { compared } from "../parts/compare";
import { bytes } from "../parts/files";
import { useActions } from "../server/actions";
import { reason } from "../server/problem";
import type { Effect } from "../state/run";
import type { ChangedFileFrame, CutText } from "../state/wire";
import { line, plural, visible } from "../state/words";

const SIGNS: Record<string, string> = { created: "new", deleted: "gone" };
/** Files that are named under a call; the inspector names them all. */
const NAMED = 4;

/** Under a call: the files and how many lines came and went. */
export function ChangedLine({ effect, choose }: { effect: Effect; choose(): void }) {
  const { files, leftOut } = effect.changed!;
  const more = files.length - NAMED + leftOut;
  return (
    <ul className="changed" aria-label="Changed files">
      {files.slice(0, NAMED).map((each) => (
        <li key={`${each.folder} ${each.path}`}><button type="button" className="call" onClick={choose}>
          <Glyph shape="done" /><code className="cut">{line(each.path, 200)}</code><Counted file={each} /></button></li>
      ))}
      {more > 0 && <li><button type="button" className="link sm" onClick={choose}>{plural(more, "more file")}</button></li>}
    </ul>
  );
}

/** Each file with what differs in it. */
export function ChangedFiles({ effect }: { effect: Effect }) {
  const actions = useActions();
  const [whole, setWhole] = useState<readonly ChangedFileFrame[]>();
  const [wrong, setWrong] = useState("");
  const { seq, files, leftOut } = effect.changed!;
  const cut = !whole && (leftOut > 0 || files.some((each) => isCut(each.before) || isCut(each.after)));
  const load = (): void => {
    actions!.whole(seq).then((frame) => {
      const found = frame.changes.filter((each) => each.type === "files_changed").find((each) => each.id === effect.id);
      if (found) setWhole(found.files ?? []);
    }, (error: unknown) => setWrong(reason(error)));
  };
  return (
    <>
      {(whole ?? files).map((each) => (
        <div key={`${each.folder} ${each.path}`} className="changed-file">
          <p className="row sm"><code className="cut" title={visible(`${each.folder}/${each.path}`)}>{line(each.path, 400)}</code><Counted file={each} />
            {Boolean(each.mode) && <span className="faint">mode {each.mode!.toString(8)}</span>}</p>
          {isShown(each) && each.before?.text === each.after?.text ? <p className="faint sm">What it holds is as before.</p> : isShown(each)
            ? <Diff before={lines(each.before)} after={lines(each.after)} first={each.line} />
            : <p className="faint sm">No text that can be shown{each.bytes ? `, ${bytes(each.bytes)}` : ""}.</p>}
        </div>
      ))}
      {cut && (actions
        ? <button type="button" className="link sm" onClick={load}>Show all of it{leftOut ? `, with ${plural(leftOut, "more file")}` : ""}</button>
        : <p className="faint sm">Long texts are cut in this file{leftOut ? `, and ${plural(leftOut, "file")} left out` : ""}.</p>)}
      {wrong && <p className="kt k-error sm" role="alert">{line(wrong, 300)}</p>}
    </>
  );
}

/** What became of it, and how many lines came and went; of a long text, that was cut, nobody counts them here. */
function Counted({ file }: { file: ChangedFileFrame }) {
  const known = isShown(file) && !isCut(file.before) && !isCut(file.after);
  const rows = known ? compared(lines(file.before), lines(file.after)) : [];
  const [came, went] = [rows.filter((each) => each.sign === "+").length, rows.filter((each) => each.sign === "-").length];
  return (
    <span className="out faint">
      {SIGNS[file.change] ?? ""}{came > 0 && <span className="came"> +{came}</span>}{went > 0 && <span className="went"> −{went}</span>}
    </span>
  );
}

const isCut = (text: CutText | null | undefined): boolean => (text?.length ?? 0) > 0;

/** A file that was not, or is not any more, has only one text. */
const isShown = (file: ChangedFileFrame): boolean =>
  file.change === "created" ? Boolean(file.after) : file.change === "deleted" ? Boolean(file.before) : Boolean(file.before && file.after);

const lines = (text: CutText | null | undefined): string[] => {
  const found = (text?.text ?? "").split("\n");
  if (found.at(-1) === "") found.pop();
  return found;
};

// What a tool says while it runs: how far it has come, where it works, what it changes. No record holds it.
import { useSyncExternalStore } from "react";
import { Diff } from "../parts/Diff";
import { Whole } from "../parts/Text";
import { useActions } from "../server/actions";
import type { Progress as Said } from "../state/deltas";
import type { FileDiff, FileLocation } from "../state/wire";
import { line, plural, visible } from "../state/words";

const FEW = 6;
const never = () => () => undefined;

function useProgress(id: string): Said | undefined {
  const deltas = useActions()?.deltas;
  return useSyncExternalStore(deltas?.subscribe ?? never, () => deltas?.progressOf(id));
}

/** whole: all of it, and not as much as stands in a transcript. */
export function Progress({ id, whole = false }: { id: string; whole?: boolean }) {
  const said = useProgress(id);
  if (!said) return null;
  const places = whole ? said.locations : said.locations.slice(0, FEW);
  const rest = said.locations.length - places.length;
  return (
    <div className={whole ? "sec" : "progress"}>
      {whole && <h3>How far it is</h3>}
      {said.text && (whole ? <Whole text={{ text: said.text }} className="said" /> : <p className="dim sm cut">{line(said.text, 300)}</p>)}
      {places.length > 0 && <ul className="places sm" aria-label="Where it works">
        {places.map((each, index) => <li key={index}><code>{place(each, whole ? 400 : 80)}</code></li>)}
        {rest > 0 && <li className="faint">and {plural(rest, "place")} more</li>}</ul>}
      {said.diffs.map((each, index) => <Change key={`${index} ${each.path}`} diff={each} open={whole || said.diffs.length === 1} />)}
    </div>
  );
}

const place = ({ path, line: number }: FileLocation, most: number): string => `${line(path, most)}${number == null ? "" : `:${number}`}`;
const linesOf = (text: string | null | undefined): string[] => (text == null || text === "" ? [] : text.replace(/\n$/, "").split("\n"));

function Change({ diff, open }: { diff: FileDiff; open: boolean }) {
  const { path, before, after, cut } = diff;
  const what = before == null ? "new" : after == null ? "taken away" : "changed";
  return (
    <details open={open}>
      <summary><code>{visible(path)}</code> <span className="faint">{what}{cut ? "; its beginning" : ""}</span></summary>
      <Diff before={linesOf(before)} after={linesOf(after)} />
    </details>
  );
}

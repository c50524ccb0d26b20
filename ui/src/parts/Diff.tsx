import { useMemo, useState } from "react";
import { compared, type Compared } from "./compare";
import { plural, visible } from "../state/words";

const MOST = 400;

/** What differs between two texts, line by line; long parts that do not are folded. first: the number of their first line. */
export function Diff({ before, after, first = 1 }: { before: string[]; after: string[]; first?: number }) {
  const [most, setMost] = useState(MOST);
  // Given anew with each picture, they are compared anew only when they say something else.
  const rows = useMemo(() => folded(compared(before, after)), [before.join("\n"), after.join("\n")]);
  if (rows.every((each) => typeof each === "number")) return <p className="faint">Nothing was changed.</p>;
  return (
    <div className="diff">
      {rows.slice(0, most).map((row, index) => {
        if (typeof row === "number") return <div key={index} className="gap">{plural(row, "line")} as before</div>;
        const kind = row.sign === "+" ? "add" : row.sign === "-" ? "del" : "";
        return <div key={index} className={kind}><span className="n">{row.number ? row.number + first - 1 : ""}</span><span>{row.sign}</span><span>{visible(row.text)}</span></div>;
      })}
      {rows.length > most && (
        <div className="gap"><button type="button" className="link" onClick={() => setMost(most + 10 * MOST)}>show more of {plural(rows.length - most, "line")}</button></div>)}
    </div>
  );
}

/** The lines that differ with two around each; of the others how many there are. */
function folded(rows: Compared[]): (Compared | number)[] {
  const found: (Compared | number)[] = [];
  rows.forEach((row, index) => {
    const near = rows.slice(Math.max(0, index - 2), index + 3).some((each) => each.sign !== " ");
    const last = found.at(-1);
    if (near) found.push(row);
    else if (typeof last === "number") found[found.length - 1] = last + 1;
    else found.push(1);
  });
  return found;
}

import { compared } from "./compare";
import { plural, visible } from "../state/words";

/** What differs between two texts, line by line; long parts that do not are folded. */
export function Diff({ before, after }: { before: string[]; after: string[] }) {
  const rows = compared(before, after);
  const near = rows.map((_, index) => rows.slice(Math.max(0, index - 2), index + 3).some((each) => each.sign !== " "));
  if (!near.some(Boolean)) return <p className="faint">Nothing was changed.</p>;
  const shown: React.ReactNode[] = [];
  let folded = 0;
  rows.forEach((row, index) => {
    if (!near[index]) {
      folded++;
      return;
    }
    if (folded) shown.push(<div key={`gap${index}`} className="gap">{plural(folded, "line")} as before</div>);
    folded = 0;
    const kind = row.sign === "+" ? "add" : row.sign === "-" ? "del" : "";
    shown.push(<div key={index} className={kind}><span className="n">{row.number || ""}</span><span>{row.sign}</span><span>{visible(row.text)}</span></div>);
  });
  if (folded) shown.push(<div key="gap" className="gap">{plural(folded, "line")} as before</div>);
  return <div className="diff">{shown}</div>;
}

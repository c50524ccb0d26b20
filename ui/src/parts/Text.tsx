// Texts that anybody may have written: shown as they are, never taken for markup; the very long ones by and by.
import { Fragment, useState, type ReactNode } from "react";
import type { CutText } from "../state/run";
import { count, visible } from "../state/words";

const FIRST = 2_000;
const MORE = 20_000;

/** A text in full, a beginning first. */
export function Whole({ text, className = "well", first = FIRST }: { text: CutText; className?: string; first?: number }) {
  const all = text.text ?? "";
  const [more, setMore] = useState(0);
  const shown = (all.length < first * 1.25 ? all.length : first) + more;
  const missing = (text.length || all.length) - Math.min(shown, all.length);
  return (
    <div className={className}>
      {visible(all.slice(0, shown))}
      {missing > 0 && (
        <span className="rest">
          {"… "}
          {shown < all.length
            ? <button className="link" onClick={() => setMore(more + MORE)}>show more of {count(missing)} characters</button>
            : <span className="faint">{count(missing)} more characters</span>}
        </span>
      )}
    </div>
  );
}

/** A text as its writer meant it: headings, lists, emphasis and code of Markdown, and nothing else of it. */
export function Prose({ text }: { text: CutText }) {
  const all = text.text ?? "";
  if (all.length > MORE) return <Whole text={text} className="said" />;
  const blocks = visible(all).split(/^(```[^\n]*\n[\s\S]*?(?:\n```|$))/m);
  return (
    <div className="said">
      {blocks.map((block, index) =>
        block.startsWith("```")
          ? <pre key={index} className="well">{block.replace(/^```[^\n]*\n/, "").replace(/\n```$/, "")}</pre>
          : <Fragment key={index}>{lines(block)}</Fragment>)}
      {(text.length ?? 0) > all.length && <p className="faint">… {count(text.length! - all.length)} more characters</p>}
    </div>
  );
}

function lines(block: string): ReactNode[] {
  // Lines that were wrapped for a terminal flow on.
  const flowing = block.replace(/^(?![#\-*\s|>\d]).{60,}\n(?=[^\s#\-*|>\d])/gm, (each) => each.replace("\n", " "));
  return flowing.split("\n").map((each, index) => {
    const heading = /^#{1,6} (.*)$/.exec(each);
    const item = /^\s*[-*] (.*)$/.exec(each);
    if (heading) return <p key={index} className="strong">{inline(heading[1]!)}</p>;
    if (item) return <p key={index} className="point">{inline(item[1]!)}</p>;
    return each.trim() ? <p key={index}>{inline(each)}</p> : null;
  });
}

function inline(text: string): ReactNode[] {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*|\*[^*\s][^*]*\*)/).map((part, index) => {
    if (part.startsWith("`") && part.length > 2) return <code key={index}>{part.slice(1, -1)}</code>;
    if (part.startsWith("**") && part.length > 4) return <b key={index} className="strong">{part.slice(2, -2)}</b>;
    if (part.startsWith("*") && part.length > 2) return <em key={index}>{part.slice(1, -1)}</em>;
    return part;
  });
}

import { Glyph } from "../parts/Glyph";
import type { View } from "../state/store";
import { line, plural } from "../state/words";

const FEW = 8;

/** Tools whose provider lives and dies: what each offers as of the record that is looked at, and which cannot be reached. */
export function Toolsets({ view: { run } }: { view: View }) {
  const all = [...run.toolsets.values()];
  if (!all.length) return null;
  // Who cannot be reached is seen however many there are.
  const shown = [...all].sort((one, other) => Number(other.reason !== "") - Number(one.reason !== "")).slice(0, FEW);
  return (
    <div className="spend" role="group" aria-label="Toolsets">
      <h3>Toolsets <span className="faint">what they offer</span></h3>
      <ul className="why sm">
        {shown.map(({ name, tools, reason }) => (
          <li key={name}><Glyph shape={reason ? "error" : "tool"} />
            {reason
              ? <span>{line(name, 40)} <span className="kt k-error">is down: {line(reason, 160)}</span></span>
              : <span className="cut" title={line(tools.join(", "), 1_000)}>{line(name, 40)} <span className="faint">{plural(tools.length, "tool")}: {line(tools.join(", "), 160)}</span></span>}
          </li>))}
        {all.length > FEW && <li><span /><span className="faint">and {plural(all.length - FEW, "toolset")} more</span></li>}
      </ul>
    </div>
  );
}

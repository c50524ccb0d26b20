import type { View } from "../state/store";
import { count, usd, visible } from "../state/words";

/** Tokens and money by agent, so far. */
export function Spent({ view }: { view: View }) {
  const { run } = view;
  const by = new Map<string, { agents: Set<number>; tokens: number; cached: number; nano: number; unpriced: number }>();
  for (const each of run.effects.values()) {
    if (each.kind !== "model" || !each.end) continue;
    const agent = run.activation(each.activation)?.agent ?? "";
    const found = by.get(agent) ?? { agents: new Set(), tokens: 0, cached: 0, nano: 0, unpriced: 0 };
    found.agents.add(each.activation);
    found.tokens += (each.usage?.input_tokens ?? 0) + (each.usage?.output_tokens ?? 0);
    found.cached += each.usage?.cache_read_tokens ?? 0;
    found.nano += each.nanoUsd;
    found.unpriced += each.unpriced ? 1 : 0;
    by.set(agent, found);
  }
  const rows = [...by].sort(([, one], [, other]) => other.tokens - one.tokens).slice(0, 6);
  const most = Math.max(1, ...rows.map(([, each]) => each.tokens));
  if (!rows.length) return null;
  return (
    <div className="spend">
      <h3>Spent by agent <span className="faint">tokens, hatched from cache</span></h3>
      {rows.map(([agent, each]) => (
        <div className="ln" key={agent}>
          <span className="cut">{visible(agent)}{each.agents.size > 1 && <span className="faint"> ×{each.agents.size}</span>}</span>
          <div className="bar" style={{ width: `${(each.tokens / most) * 100}%` }} aria-hidden="true">
            <i className="c" style={{ flexGrow: each.cached }} /><i style={{ flexGrow: each.tokens - each.cached }} />
          </div>
          <span className="num">{count(each.tokens)}</span>
          <span className="num">{each.nano || !each.unpriced ? usd(each.nano) : "unknown"}</span>
        </div>
      ))}
    </div>
  );
}

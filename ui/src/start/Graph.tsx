import type { TeamView } from "../server/wire";
import { line, visible } from "../state/words";

const WIDE = 108;
const HIGH = 30;
const GAP = 10;
const BELOW = 26;
const MOST = 3;

interface Spot {
  name: string;
  x: number;
  y: number;
}

/** Where agents stand: whom the user asks on top, whom each reaches below it, three to a row. */
export function spots(team: Pick<TeamView, "entry" | "agents" | "edges">): Spot[] {
  const depth = new Map<string, number>([[team.entry, 0]]);
  for (const name of depth.keys()) {
    for (const [from, to] of team.edges) if (from === name && !depth.has(to)) depth.set(to, depth.get(name)! + 1);
  }
  const last = Math.max(0, ...depth.values());
  const layers = new Map<number, string[]>();
  for (const { name } of team.agents) {
    const at = depth.get(name) ?? last + 1;
    layers.set(at, [...(layers.get(at) ?? []), name]);
  }
  let row = 0;
  const found: Spot[] = [];
  for (const [, names] of [...layers].sort(([one], [other]) => one - other)) {
    for (let start = 0; start < names.length; start += MOST, row++) {
      const part = names.slice(start, start + MOST);
      const left = ((MOST - part.length) * (WIDE + GAP)) / 2;
      part.forEach((name, index) => found.push({ name, x: left + index * (WIDE + GAP), y: row * (HIGH + BELOW) }));
    }
  }
  return found;
}

/** Who reaches whom, before anything has happened. */
export function TeamGraph({ team }: { team: TeamView }) {
  const found = spots(team);
  const by = new Map(found.map((each) => [each.name, each]));
  const edges = team.edges.filter(([from, to]) => by.has(from) && by.has(to));
  const told = edges.map(([from, to]) => `${visible(from)} reaches ${visible(to)}`).join("; ") || "Nobody calls anybody";
  return (
    <svg className="team-graph" role="img" aria-label={told} viewBox={`-1 -1 ${MOST * (WIDE + GAP) - GAP + 2} ${Math.max(0, ...found.map((each) => each.y)) + HIGH + 2}`}>
      {edges.map(([from, to], index) => {
        const [one, other] = [by.get(from)!, by.get(to)!];
        const down = other.y > one.y;
        const [x1, y1] = [one.x + WIDE / 2, down ? one.y + HIGH : one.y];
        const [x2, y2] = [other.x + WIDE / 2, down ? other.y : other.y + (other.y < one.y ? HIGH : 0)];
        const bend = down ? BELOW / 2 : -BELOW / 2;
        return <path key={index} className={down ? "" : "back"} d={`M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`} />;
      })}
      {found.map((each) => (
        <g key={each.name} transform={`translate(${each.x} ${each.y})`}>
          <rect className={each.name === team.entry ? "entry" : ""} width={WIDE} height={HIGH} rx="6" />
          <text x={WIDE / 2} y={HIGH / 2 + 4} textAnchor="middle">{line(each.name, 15)}</text><title>{visible(each.name)}</title>
        </g>
      ))}
    </svg>
  );
}

import { Handle, Position, ReactFlow, ReactFlowProvider, useReactFlow, type Edge, type Node, type NodeProps } from "@xyflow/react";
import { memo, useEffect, useMemo, useRef } from "react";
import { useSize } from "../parts/size";
import { doing, type Kind } from "../state/doing";
import type { Run } from "../state/run";
import type { Store, View } from "../state/store";
import { visible } from "../state/words";
import { askers, places, type Place } from "./layout";

const HIGH = 44;

type Data = { label: string; sub: string; kind: Kind; state: string; strip: [Kind, number][]; wide: number; chosen: boolean };
type TeamNode = Node<Data, "agent">;

const AgentNode = memo(({ data }: NodeProps<TeamNode>) => (
  <div className={`node k-${data.kind} ${data.state} ${data.chosen ? "sel" : ""}`} style={{ width: data.wide, height: HIGH }}>
    <Handle type="target" position={Position.Top} isConnectable={false} />
    <span className="name cut">{data.label}</span>
    {data.strip.length
      ? <span className="strip" aria-hidden="true">{data.strip.map(([kind, part]) =>
          <i key={kind} className={`k-${kind}`} style={{ flexGrow: part }} />)}</span>
      : <span className="sub cut">{data.sub}</span>}
    <Handle type="source" position={Position.Bottom} isConnectable={false} />
    <Handle id="side" type="source" position={Position.Right} isConnectable={false} />
    <Handle id="side-in" type="target" position={Position.Right} isConnectable={false} />
  </div>
));
const TYPES = { agent: AgentNode };

/** Who called whom, and what each of them does. */
export default function Team({ store, view }: { store: Store; view: View }) {
  return <ReactFlowProvider><Flow store={store} view={view} /></ReactFlowProvider>;
}

function Flow({ store, view }: { store: Store; view: View }) {
  const box = useRef<HTMLDivElement>(null);
  const width = useSize(box);
  const flow = useReactFlow();
  const wide = width && width < 340 ? 96 : 124;
  const { run, whole, now, seq } = view;
  const laid = useMemo(() => places(whole, wide, HIGH, 14, 34), [whole, whole.activations.size, wide]);
  const current = run.effect(view.effect)?.activation ?? -1;
  const nodes = laid.map((place): TeamNode => {
    const data = told(place, run, now, view.parked);
    return {
      id: place.id, type: "agent", position: { x: place.x, y: place.y },
      ariaLabel: `${data.label}: ${data.sub}`,
      data: { ...data, wide, chosen: place.members.some((each) => each.number === current) },
      width: wide, height: HIGH, draggable: false, connectable: false, deletable: false,
    };
  });
  const edges = edgesOf(laid, run, view.connected || !view.live ? now : Infinity, seq);

  useEffect(() => {
    const timer = window.setTimeout(() => void flow.fitView({ padding: 0.06, maxZoom: 1.15, minZoom: 0.2 }), 0);
    return () => window.clearTimeout(timer);
  }, [flow, laid, width]);

  const select = (id: string): void => {
    const place = laid.find((each) => each.id === id);
    const turns = place?.members.flatMap((each) => run.activation(each.number)?.turns ?? []) ?? [];
    const effects = turns.flatMap((each) => each.effects).filter((each) => run.effect(each)?.kind === "model");
    if (effects.length) store.select(effects.at(-1)!);
  };
  return (
    <div className="flow" ref={box}
      onKeyDown={(event) => {
        const id = (event.target as HTMLElement).dataset.id;
        if (id && event.key === "Enter") select(id);
      }}>
      <ReactFlow nodes={nodes} edges={edges} nodeTypes={TYPES} onNodeClick={(_, node) => select(node.id)} minZoom={0.1}
        nodesFocusable edgesFocusable={false} elementsSelectable={false} zoomOnScroll={false} preventScrolling={false}
        zoomOnDoubleClick={false} onlyRenderVisibleElements={laid.length > 60} proOptions={{ hideAttribution: true }}
        deleteKeyCode={null} selectionKeyCode={null} multiSelectionKeyCode={null} disableKeyboardA11y />
    </div>
  );
}

function told(place: Place, run: Run, now: number, parked: boolean): Omit<Data, "wide" | "chosen"> {
  const label = visible(place.label);
  const there = place.members.map((each) => run.activation(each.number)).filter((each) => each !== undefined);
  if (!there.length) return { label, sub: "not yet", kind: "wait", state: "later", strip: [] };
  const states = there.map((each) => doing(run, each, now, parked));
  if (place.members.length === 1) {
    const { text, kind, state } = states[0]!;
    return { label, sub: text, kind, state: state === "open" ? "on" : state, strip: [] };
  }
  const parts = new Map<Kind, number>();
  for (const each of states) parts.set(each.kind, (parts.get(each.kind) ?? 0) + 1);
  const open = states.filter((each) => each.state === "open").length;
  const kind = states.find((each) => each.state === "open")?.kind ?? "wait";
  return {
    label, sub: `${open} at work, ${states.length} so far`, kind, state: open ? "on" : "done",
    strip: [...parts].sort(([one], [other]) => one.localeCompare(other)),
  };
}

function edgesOf(laid: Place[], run: Run, now: number, seq: number): Edge[] {
  const asking = askers(run);
  const found: (Edge & { pathOptions: { offset: number; borderRadius: number } })[] = [];
  for (const place of laid) {
    if (place.caller) {
      const calls = place.members.map((each) => run.effect(run.activation(each.number)?.call ?? "")).filter((each) => each !== undefined);
      const open = calls.some((each) => !each.end);
      const lit = calls.some((each) => now - each.began < 1 || (each.end > 0 && each.end <= seq && now - each.ended < 1));
      found.push({
        id: `${place.caller}-${place.id}`, source: place.caller, target: place.id, type: "smoothstep", focusable: false,
        pathOptions: { offset: 8, borderRadius: 6 },
        className: calls.length === 0 ? "later" : lit ? "lit" : open ? "open" : "",
        ...(place.background && place.caller !== "0" && calls.length ? { label: "in background" } : {}),
      });
    }
    if (place.members.some((each) => asking.has(each.number)) && place.caller) {
      found.push({
        id: `${place.id}-asks`, source: place.id, sourceHandle: "side", target: "0", type: "smoothstep",
        pathOptions: { offset: 46, borderRadius: 20 }, targetHandle: "side-in",
        className: "asks", label: "asks you", focusable: false,
      });
    }
  }
  return found;
}

import { useEffect, useLayoutEffect, useMemo, useRef, type PointerEvent } from "react";
import { Glyph, Icon } from "../parts/Glyph";
import { doing } from "../state/doing";
import type { Store, View } from "../state/store";
import { axis, ticks, worked } from "../state/time";
import { lasted, visible } from "../state/words";
import { useSize } from "../parts/size";
import { useTheme } from "../parts/theme";
import { told } from "../records/Records";
import { inkOf, instantAt, paintBars, paintOver, paintOverview, prepared, x, type Scale } from "./paint";
import { hit, layout } from "./rows";
import { useWindow } from "./window";

const OVERVIEW = 26;

/** When what happened: a row per activation over time. The lanes are the slider. */
export function Lanes({ store, view }: { store: Store; view: View }) {
  const box = useRef<HTMLDivElement>(null);
  const strip = useRef<HTMLDivElement>(null);
  const bars = useRef<HTMLCanvasElement>(null);
  const over = useRef<HTMLCanvasElement>(null);
  const overview = useRef<HTMLCanvasElement>(null);
  const width = useSize(strip);
  const theme = useTheme();
  const { whole, run, history } = view;
  const moving = (view.connected || view.lost) && whole.requests.some((id) => !whole.effect(id)!.end);
  const until = view.live && moving ? Math.max(view.now, whole.at) : whole.at;
  const right = moving ? until + (until - whole.began) * 0.06 : until;

  const laid = useMemo(() => layout(whole), [whole, whole.seq]);
  const time = useMemo(
    () => axis(worked(whole, until), whole.began, Math.max(right, whole.began + 0.001)),
    [whole, whole.seq, until, right],
  );
  const { low, high, zoom, pan } = useWindow();
  const scale: Scale = { axis: time, low, high, width };
  const head = view.live ? until : run.at;
  const chosen = whole.effect(view.effect);

  useLayoutEffect(() => {
    if (!width || !bars.current || !overview.current) return;
    const ink = inkOf(box.current!);
    const context = prepared(bars.current, width, laid.height);
    if (context) paintBars(context, laid, scale, ink, until);
    const small = prepared(overview.current, width, OVERVIEW);
    if (small) {
      paintOverview(small, history.frames.map((each) => each.at), whole.effects.values(), scale, ink, until, OVERVIEW);
    }
  }, [laid, time, low, high, width, theme]);

  useLayoutEffect(() => {
    const context = width && over.current ? prepared(over.current, width, laid.height) : null;
    if (context) paintOver(context, laid, scale, inkOf(box.current!), { head, live: view.live, chosen, until });
  }, [laid, time, low, high, width, theme, head, chosen, view.live]);

  useEffect(() => {
    const element = box.current!;
    const wheel = (event: WheelEvent): void => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const area = strip.current!.getBoundingClientRect();
      zoom(Math.exp(event.deltaY * 0.004), (event.clientX - area.left) / area.width);
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  }, [zoom]);

  const scrub = (event: PointerEvent, full: boolean): void => {
    const area = strip.current!.getBoundingClientRect();
    const place = Math.min(1, Math.max(0, (event.clientX - area.left) / area.width));
    const instant = full ? time.instant(place) : instantAt(scale, place * width);
    store.seek(place >= 0.999 ? null : history.before(instant));
  };
  const drag = (full: boolean) => ({
    onPointerDown: (event: PointerEvent) => {
      event.currentTarget.setPointerCapture(event.pointerId);
      store.stop();
      scrub(event, full);
    },
    onPointerMove: (event: PointerEvent) => {
      if (event.currentTarget.hasPointerCapture(event.pointerId)) scrub(event, full);
    },
  });
  const down = useRef(0);
  const press = (event: PointerEvent<HTMLCanvasElement>): void => {
    event.currentTarget.setPointerCapture(event.pointerId);
    down.current = event.clientX;
  };
  const move = (event: PointerEvent<HTMLCanvasElement>): void => {
    if (event.currentTarget.hasPointerCapture(event.pointerId) && Math.abs(event.clientX - down.current) > 3) {
      down.current = NaN;
      scrub(event, false);
    }
    if (Number.isNaN(down.current)) scrub(event, false);
  };
  const release = (event: PointerEvent<HTMLCanvasElement>): void => {
    event.currentTarget.releasePointerCapture(event.pointerId);
    if (Number.isNaN(down.current)) {
      down.current = 0;
      return;
    }
    const area = event.currentTarget.getBoundingClientRect();
    const [left, top] = [event.clientX - area.left, event.clientY - area.top];
    const row = laid.rows.find((each) => top >= each.top && top < each.top + each.height);
    const instant = instantAt(scale, left);
    const reach = instantAt(scale, left + 6) - instant;
    const found = row && hit(row, instant, (top - row.top) / row.height, Math.max(reach, 0.001), until);
    if (found) store.select(found.id);
    else scrub(event, false);
  };

  const marks = width ? ticks(time, Math.max(3, Math.floor(width / 74))) : [];
  const headX = x(scale, head);
  // Where its flag stands: that stays in sight whole, and nothing else is written there.
  const flagX = Math.max(22, Math.min(headX, width - 26));
  const folds = time.gaps.map(([start, stop]) => x(scale, (start + stop) / 2)).filter((at) => Math.abs(at - flagX) > 64);
  return (
    <section className="pane p-lanes" aria-label="Lanes" id="pane-lanes">
      <Transport store={store} view={view} />
      <div className="lanes" ref={box}>
        <div className="time" role="slider" tabIndex={0} aria-label="Record" aria-valuemin={1}
          aria-valuemax={Math.max(1, history.seq)} aria-valuenow={Math.max(1, view.seq)}
          aria-valuetext={`record ${view.seq} of ${history.seq}, +${lasted(run.at - run.began)}`} {...drag(true)}>
          <div className="strip" ref={strip}>
            <canvas ref={overview} className="over" style={{ height: OVERVIEW }} aria-hidden="true" />
            <div className="ruler" aria-hidden="true">
              {marks.map((each) => [each, x(scale, each)] as const)
                .filter(([, at]) => at >= 0 && at < width - 16 && Math.abs(at - flagX) > 42 && folds.every((fold) => Math.abs(at - fold) > 42))
                .map(([each, at]) => <span key={each} style={{ left: at }}>{lasted(each - whole.began).replace(".0 s", " s")}</span>)}
              {time.gaps.map(([start, stop]) => [start, stop, x(scale, (start + stop) / 2)] as const)
                .filter(([, , at]) => Math.abs(at - flagX) > 64)
                .map(([start, stop, at]) => <span key={start} className="fold" style={{ left: at }}>⋯ {lasted(stop - start)} ⋯</span>)}
              {headX >= 0 && headX <= width && (
                <b style={{ left: flagX }}>{view.live && moving ? "now" : `+${lasted(head - whole.began)}`}</b>
              )}
            </div>
          </div>
        </div>
        <div className="rows">
          <Labels store={store} view={view} rows={laid.rows} />
          <div className="tracks" style={{ height: laid.height }}>
            <canvas ref={bars} style={{ height: laid.height }} aria-hidden="true" />
            <canvas ref={over} style={{ height: laid.height }} aria-hidden="true"
              onPointerDown={press} onPointerMove={move} onPointerUp={release} />
          </div>
        </div>
        <div className="zoom">
          {(low > 0 || high < 1) && <button className="btn" onClick={() => { zoom(100, 0.5); pan(0); }}>All <kbd>F</kbd></button>}
        </div>
      </div>
    </section>
  );
}

function Labels({ store, view, rows }: { store: Store; view: View; rows: ReturnType<typeof layout>["rows"] }) {
  const { run, now } = view;
  const current = run.effect(view.effect)?.activation;
  const move = (event: React.KeyboardEvent<HTMLElement>): void => {
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (!by) return;
    event.preventDefault();
    const all = [...event.currentTarget.querySelectorAll("button")];
    all[(all.indexOf(document.activeElement as HTMLButtonElement) + by + all.length) % all.length]?.focus();
  };
  const focusable = rows.some((each) => each.activation === current) ? current : rows.find((each) => each.activation >= 0)?.activation;
  return (
    <div className="labels" onKeyDown={move}>
      {rows.map((row) => {
        const activation = run.activation(row.activation);
        const state = activation ? doing(run, activation, now, view.parked) : undefined;
        const shape = !state ? "rest" : state.state === "open" ? state.kind : state.state === "done" ? "done" : state.state === "failed" ? "error" : "rest";
        return row.activation < 0 ? (
          <span key={row.key} className="lb cut" style={{ height: row.height }}>{visible(row.label)}</span>
        ) : (
          <button key={row.key} className="lb" style={{ height: row.height, paddingLeft: row.depth * 8 }}
            aria-current={row.activation === current} tabIndex={row.activation === focusable ? 0 : -1}
            aria-label={`${visible(row.label)}: ${state?.text ?? "not yet"}`}
            onClick={() => { const first = row.effects.findLast((each) => each.start <= view.seq) ?? row.effects[0]; if (first) store.select(first.id); }}>
            <Glyph shape={shape} /><span className="cut">{visible(row.label)}</span>
          </button>
        );
      })}
    </div>
  );
}

function Transport({ store, view }: { store: Store; view: View }) {
  const { history, seq } = view;
  const frame = history.frames[seq - 1];
  return (
    <div className="bar-top">
      <h2 className="title">Lanes</h2>
      <div className="transport">
        <button className="btn plain sq" aria-label="First record" onClick={() => store.seek(1)}><Icon name="first" /></button>
        <button className="btn plain sq" aria-label="Back one record" onClick={() => store.step(-1)}><Icon name="prev" /></button>
        <button className="btn plain sq" aria-label={view.playing ? "Pause" : "Play"} onClick={() => store.play()}>
          <Icon name={view.playing ? "pause" : "play"} />
        </button>
        <button className="btn plain sq" aria-label="Forward one record" onClick={() => store.step(1)}><Icon name="next" /></button>
        <button className="btn plain sq" aria-label="Last record" onClick={() => { store.stop(); store.seek(null); }}><Icon name="last" /></button>
      </div>
      <span className="pos sm cut">
        <span className="wide">record </span><b className="strong">{seq}</b> of {history.seq}
        <span className="faint wide"> · {frame?.changes[0] ? told(frame.changes[0]) : ""}</span>
      </span>
      {view.live
        ? view.connected && !view.parked && <span className="state k-agent sm"><Glyph shape="agent" />Live</span>
        : <span className="state k-wait sm"><Glyph shape="rest" />as it was then</span>}
      <span className="grow" />
      <span className="legend" aria-hidden="true">
        <span><Glyph shape="model" />model</span><span><Glyph shape="tool" />tool</span><span><Glyph shape="agent" />call</span>
        <span><Glyph shape="wait" />wait</span><span><Glyph shape="human" />you</span><span><Glyph shape="error" />failed</span>
      </span>
    </div>
  );
}

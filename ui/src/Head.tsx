import type { ReactNode } from "react";
import { Glyph, Icon } from "./parts/Glyph";
import { toggleTheme } from "./parts/theme";
import { stateOf } from "./state/doing";
import type { Store, View } from "./state/store";
import { cost, count, lasted, line } from "./state/words";
import { openingOf } from "./talk/items";

/** What was asked, how it stands, and what it has used of what it may. */
export function Head({ store, view, name, actions, linked, help }: {
  store: Store; view: View; name: string; actions?: ReactNode; linked: boolean; help(): void;
}) {
  const { run, whole } = view;
  const first = whole.requests[0] ? whole.effect(whole.requests[0]) : undefined;
  const question = (first && openingOf(whole, first)?.content.text) || name || "Run";
  const state = view.parked ? { kind: "wait" as const, word: "Parked", more: "" } : stateOf(run, view.now);
  const shape = view.parked ? "wait" : state.kind === "wait" ? "done" : state.kind;
  const limit = run.runLimits?.tokens ?? run.limits.tokens ?? 0;
  const most = run.runLimits?.usd ?? run.limits.usd ?? 0;
  return (
    <header className="head">
      <div className="grow row">
        <h1 className="cut" title={line(question, 2000)}>{line(question)}</h1>
        <span className={`state pill k-${state.kind}`}>
          <Glyph shape={shape} kind={state.kind} />{state.word}
          {view.live ? state.more && ` · ${state.more}` : ` at +${lasted(run.at - run.began)}`}
        </span>
        {whole.fork && <Fork {...whole.fork} linked={linked} />}
      </div>
      <div className="meters">
        <Meter title="Tokens" value={count(run.tokens)} most={limit ? short(limit) : ""} part={limit ? run.tokens / limit : 0} held={limit ? run.held / limit : 0} />
        <Meter title="Cost" value={cost(run)} most={most ? `$${most}` : ""} part={most ? run.nanoUsd / 1e9 / most : 0} held={0} />
      </div>
      <div className="row tools">
        {!view.live && (
          <button className="btn ink" onClick={() => { store.stop(); store.seek(null); }}>
            {view.connected ? "Back to live" : "To the end"} <kbd>L</kbd>
          </button>
        )}
        {actions}
        <button className="btn plain sq" aria-label="Light or dark" onClick={toggleTheme}><Icon name="moon" /></button>
        <button className="btn plain sq wide" aria-label="Keys" onClick={help}><Icon name="keys" /></button>
      </div>
    </header>
  );
}

/** Where a fork began. linked: the run that it is of can be looked at here. */
function Fork({ origin, seq, linked }: { origin: string; seq: number; linked: boolean }) {
  const told = <>forked from {line(origin, 12)} at record {count(seq)}</>;
  return linked && /^[\w-]+$/.test(origin)
    ? <a className="link faint sm cut fork" href={`#/run/${origin}?record=${seq}`}>{told}</a>
    : <span className="faint sm cut fork">{told}</span>;
}

const short = (value: number): string =>
  value >= 1e6 ? `${value / 1e6}M` : value >= 1e3 ? `${Math.round(value / 1e3)}k` : count(value);

function Meter({ title, value, most, part, held }: { title: string; value: string; most: string; part: number; held: number }) {
  return (
    <div className="meter">
      <div className="row sm">
        <span className="faint">{title}</span>
        <span><b className="strong">{value}</b>{most && <span className="faint"> of {most}</span>}</span>
      </div>
      {most
        ? <div className="bar" role="meter" aria-label={`${title}: ${value} of ${most}`} aria-valuemin={0} aria-valuemax={100}
            aria-valuenow={Math.min(100, Math.round(part * 100))}>
            <i style={{ width: `${Math.min(100, part * 100)}%` }} />
            {held > 0 && <i className="held" style={{ width: `${Math.min(100, held * 100)}%` }} />}
          </div>
        : <div className="bar" />}
    </div>
  );
}

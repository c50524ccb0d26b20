import type { ReactNode } from "react";
import { Glyph } from "../parts/Glyph";
import { useSession } from "../server/session";

/** Nothing is there: why, and what to do. */
export const Empty = ({ title, children, todo }: { title: string; children: ReactNode; todo?: ReactNode }) => (
  <div className="empty"><div><h2>{title}</h2><p className="dim">{children}</p></div>{todo && <div className="row">{todo}</div>}</div>
);

/** It is being fetched; shown only when that takes a moment. */
export const Loading = () => (
  <div className="empty late" aria-busy="true" aria-label="Loading">
    {[86, 64, 72, 40].map((each) => <div key={each} className="sk" style={{ width: `${each}%` }} />)}
  </div>
);

/** That nothing can be changed here, where that is so. */
export const ReadOnly = () => (useSession().readOnly
  ? <span className="state pill k-wait" title="Nothing can be changed in this page"><Glyph shape="rest" />Read-only</span> : null);

/** Nothing can be changed in this page: the command that does it. */
export const GoOn = ({ what, command }: { what: string; command: string }) => (
  <p className="faint sm goon">{what} in a terminal{command && <>: <code>{command}</code></>}</p>
);

/** What went wrong, and what to do about it. What was there before stays. */
export const Trouble = ({ children, again }: { children: ReactNode; again?: () => void }) => (
  <div className="notice k-error" role="alert"><Glyph shape="error" /><span className="grow">{children}</span>
    {again && <button className="btn" onClick={again}>Try again</button>}</div>
);

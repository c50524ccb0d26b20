import { useEffect, useMemo, useRef, useState } from "react";
import { useOffers } from "../find/offers";
import type { Prefix } from "../inspect/Inspector";
import { Glyph, Icon } from "../parts/Glyph";
import { RunView } from "../RunView";
import { ActionsContext, type Actions } from "../server/actions";
import type { Api } from "../server/api";
import { Follower, type Connection } from "../server/follow";
import { reason } from "../server/problem";
import { commandOf, useSession } from "../server/session";
import type { StoredRequest } from "../server/wire";
import { Deltas } from "../state/deltas";
import { stateOf } from "../state/doing";
import { sentence } from "../state/words";
import { bindAddress, Store, useView } from "../state/store";
import type { Frame } from "../state/wire";
import { useLoaded } from "./load";
import { Compose } from "./Compose";
import { About } from "./About";
import { Parked } from "./Parked";
import { Empty, GoOn, Loading, ReadOnly, Trouble } from "./states";

const KEPT = 6;

/** Nothing of the run is there: it is on its way, or why it is not and where to go. */
function NotYet({ connection, again }: { connection: Connection; again(): void }) {
  if (!connection.why) return <main className="main"><Loading /></main>;
  return (
    <main className="main">
      {connection.state === "lost" && <Trouble again={again}>{sentence(connection.why)}</Trouble>}
      {connection.state === "ended" && (
        <div className="page"><h1 className="toolbar">Run</h1><Empty title="This run cannot be shown" todo={<a className="btn" href="#/runs">All runs</a>}>{sentence(connection.why)}</Empty></div>)}
    </main>
  );
}

/** A run of the server, as it goes on. */
export function LiveRun({ api, run }: { api: Api; run: string }) {
  const store = useMemo(() => new Store(), []);
  const deltas = useMemo(() => new Deltas(), []);
  const [connection, say] = useState<Connection>({ state: "loading", why: "" });
  const [wrong, setWrong] = useState("");
  const [about, setAbout] = useState(false);
  const requests = useRef(new Map<string, Promise<StoredRequest>>());
  const held = useRef(new Map<number, Promise<Frame>>());
  const wake = useRef<() => void>(undefined);
  const [prefixes, setPrefixes] = useState<Record<string, Prefix>>({});
  const info = useLoaded(() => api.run(run), 5);
  const session = useSession();
  const view = useView(store);

  useEffect(() => {
    const follower = new Follower(api, run, store, deltas, say);
    wake.current = () => follower.wake();
    const release = bindAddress(store, `/run/${run}`);
    void follower.follow();
    return () => {
      follower.stop();
      release();
    };
  }, [api, run, store, deltas]);

  // A prompt is fetched when a call is looked at that was sent it.
  const looked = view.whole.effect(view.effect);
  const turn = looked && view.whole.turn(looked.activation, looked.turn);
  const wanted = turn?.effects.map((id) => view.whole.effect(id)!.prefix).findLast(Boolean) ?? "";
  useEffect(() => {
    if (!wanted || prefixes[wanted]) return;
    api.blob(run, wanted).then((found) => setPrefixes((old) => ({ ...old, [wanted]: found as Prefix })), () => undefined);
  }, [api, run, wanted, prefixes]);

  const project = info.value?.project ?? "";
  const actions = useMemo((): Actions => ({
    deltas, project,
    // A request does not change any more; one that failed is asked for again.
    request: (id) => {
      const known = requests.current.get(id) ?? api.request(run, id);
      requests.current.set(id, known);
      known.catch(() => requests.current.delete(id));
      return known;
    },
    chat: (id) => api.chat(run, id),
    whole: (seq) => api.frame(run, seq, "whole"),
    files: (seq) => {
      const known = held.current.get(seq) ?? api.frame(run, seq, "files");
      held.current.delete(seq);
      held.current.set(seq, known);
      known.catch(() => held.current.delete(seq));
      // As many as stand in sight at once: they may be large.
      if (held.current.size > KEPT) held.current.delete(held.current.keys().next().value!);
      return known;
    },
    answer: session.readOnly ? null : async (body) => { await api.answer(run, body); },
    manage: session.writes ? async (change) => (await api.manage(run, change)).taken : undefined,
    schema: (effect) => {
      const turn = store.history.latest.turn(effect.activation, effect.turn);
      const model = turn?.effects.map((id) => store.history.latest.effect(id)!).findLast((each) => each.kind === "model");
      return prefixes[model?.prefix ?? ""]?.tools?.find((each) => each.name === effect.name)?.parameters;
    },
  }), [api, run, deltas, store, prefixes, session, project]);
  const doIt = (what: Promise<unknown>): void => {
    setWrong("");
    what.then(() => info.again(), (error: unknown) => setWrong(reason(error)));
  };
  const state = info.value?.state ?? "";
  const open = view.whole.requests.some((id) => !view.whole.effect(id)!.end);
  const parked = state === "suspended";
  useEffect(() => store.setParked(parked), [store, parked]);
  const stop = (): void => doIt(api.cancel(run, {}));
  useOffers(() => [
    ...(open && !parked ? [{ key: "stop", kind: "do" as const, title: "Stop this run", act: stop }] : []),
    ...(info.value ? [{ key: "about", kind: "do" as const, title: "Rename this run, or move it to a project", act: () => setAbout(true) }] : []),
  ]);
  if (view.history.seq === 0) return <NotYet connection={connection} again={() => wake.current?.()} />;
  return (
    <ActionsContext value={actions}>
      <RunView store={store} name={info.value?.name || info.value?.title || ""} prefixes={(digest) => prefixes[digest]}
        actions={session.writes
          ? <>
              {open && view.live && !parked && <button className="btn danger" onClick={stop}>Stop</button>}
              {info.value && <button className="btn plain sq" aria-label="About this run: name, project" onClick={() => setAbout(true)}><Icon name="more" /></button>}
            </>
          : <ReadOnly />}
        notice={<>
          {connection.state === "lost" && (
            <div className="notice" role="status"><Glyph shape="wait" />
              <span className="grow"><b className="strong">Reconnecting.</b> {sentence(connection.why)} You see record {view.history.seq}; what is missed will be filled in.</span>
              <button className="btn" onClick={() => wake.current?.()}>Try now</button></div>)}
          {connection.state === "ended" && connection.why && <Trouble>{sentence(connection.why)} All that came stays.</Trouble>}
          {parked && info.value && <Parked api={api} info={info.value} run={view.whole} session={session}
            resume={(team) => doIt(api.resume(run, team ? { team } : {}))} />}
          {wrong && <Trouble>{wrong}</Trouble>}
          {!view.live && connection.state === "live" && stateOf(view.whole, view.now).kind === "human" && (
            <div className="notice k-human"><Glyph shape="human" /><span>It asks you something now.</span>
              <button className="btn" onClick={() => store.seek(null)}>Show</button></div>)}
        </>}
        compose={view.live && !view.whole.closed && (session.writes
          ? <Compose api={api} run={run} view={view} entry={info.value?.entry ?? ""} />
          : session.readOnly && <div className="compose"><GoOn what={session.commands.import ? "This is a file; take it into a journal" : "Read-only; ask for more"}
              command={commandOf(session, "import") || commandOf(session, "ask", run)} /></div>)} />
      {about && info.value && <About api={api} info={info.value} done={() => { setAbout(false); info.again(); }} />}
    </ActionsContext>
  );
}

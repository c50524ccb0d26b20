import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { Answer } from "../answer/Answer";
import type { Schema } from "../answer/Arguments";
import { Glyph, Icon } from "../parts/Glyph";
import { Whole } from "../parts/Text";
import { Rule } from "../inspect/Why";
import type { Api } from "../server/api";
import { commandOf, useSession } from "../server/session";
import type { Inbox, InboxItemView } from "../server/wire";
import { ago, lasted, line } from "../state/words";
import { useListKeys } from "./keys";
import { useLoaded, type Loaded } from "./load";
import { Fields } from "../talk/Ask";
import { Led } from "./Led";
import { Empty, GoOn, Loading, Trouble } from "./states";

const ASKS = { approval: "asks to use", question: "asks", limit: "asks for more" };
/** It is the call of an outside tool, which whoever answers does. */
const isOutside = ({ kind, tool }: InboxItemView["question"]): boolean => kind === "question" && Boolean(tool);
const keyOf = (item: InboxItemView): string => `${item.run_id} ${item.question.id}`;

/** Who asks for what, in a few words. Those that wait for one budget together are one item. */
export function headline(question: InboxItemView["question"]): string {
  const { agent, kind, tool = "", also = [] } = question;
  if (!also.length) return `${line(agent, 40)} ${isOutside(question) ? "asks you to do" : ASKS[kind]} ${line(tool, 60)}`.trim();
  const names = [...new Set([agent, ...also])];
  const first = names.slice(0, 3).map((each) => line(each, 30)).join(", ");
  const rest = 1 + also.length - Math.min(3, names.length);
  return `${first}${rest ? ` and ${rest} more` : ""} ask for more`;
}

/** Everything that waits for a person, over all runs: a list, and the one that is answered. */
export function Waiting({ api, inbox }: { api: Api; inbox: Loaded<Inbox> }) {
  const [chosen, choose] = useState("");
  // What was written for a question stays when somebody else has answered it.
  const [kept, keep] = useState<InboxItemView>();
  const session = useSession();
  const items = inbox.value?.items ?? [];
  const there = items.find((each) => keyOf(each) === chosen);
  const item = there ?? kept ?? items[0];
  const gone = item !== undefined && !items.includes(item);
  const late = useAnswered(api, gone ? item : undefined);
  const drafting = useCallback((draft: boolean) => keep(draft ? item : undefined), [item && keyOf(item)]);
  const about = useLoaded(async () => (item ? api.run(item.run_id) : undefined), 60, item?.run_id ?? "");
  const box = useRef<HTMLDivElement>(null);
  const focus = (): void => void window.setTimeout(() => box.current?.querySelector("form")?.focus(), 0);
  useListKeys(".list .item", useMemo(() => ({ Escape: () => document.querySelector<HTMLElement>('.item[aria-current="true"]')?.focus() }), []));
  return (
    <main className="main">
      {inbox.error && <Trouble again={inbox.again}>{inbox.error}</Trouble>}
      {!inbox.value && !inbox.error && <Loading />}
      {inbox.value && !item && (
        <div className="page"><div className="in"><h1 className="toolbar">Inbox</h1><Empty title="Nothing waits for you">
          What an agent asks, and each tool that needs a permission, stands here, of every run.</Empty></div></div>)}
      {item && (
        <div className="split" data-open={there !== undefined || gone || items.length === 1}>
          <ul className="list" aria-label="What waits">
            {items.map((each) => (
              <li key={keyOf(each)}><button className="item" aria-current={each === item} onClick={() => { keep(undefined); choose(keyOf(each)); focus(); }}>
                <Glyph shape="human" /><span className="strong cut">{headline(each.question)}</span>
                <span className="faint sm">{sinceOf(each)}</span>
                <span className="dim sm cut">{line(each.question.text, 100)}</span>
                <span className="faint sm cut">{line(each.name || each.team || each.run_id.slice(0, 12), 60)}</span></button></li>
            ))}
            {items.length === 0 && <li className="empty faint">Nothing else waits for you.</li>}
          </ul>
          <div className="answer" key={keyOf(item)} ref={box}>
            {(items.length > 1 || gone) && <button className="btn plain back" onClick={() => { keep(undefined); choose(""); }}><Icon name="prev" />Inbox</button>}
            <div><h1>{headline(item.question)}</h1>
              <p className="dim">in <a className="link" href={`#/run/${item.run_id}?effect=${encodeURIComponent(item.question.id)}`}>
                {line(item.name || item.team || item.run_id.slice(0, 12), 80)}</a> · {sinceOf(item)}{until(item)}</p></div>
            <Whole text={{ text: item.question.text }} className="said" />
            {item.question.rule && <p className="dim sm"><Rule rule={item.question.rule} /> wants a person asked.</p>}
            {(item.question.refused ?? 0) > 0 && <p className="kt k-human sm">An answer that was posted did not fit; it is still open.</p>}
            <Led api={api} run={item.run_id} question={item.question.id} />
            {isOutside(item.question) && <Fields json={item.question.arguments ?? ""} />}
            {session.readOnly
              ? <>{!isOutside(item.question) && <Fields json={item.question.arguments ?? ""} />}<GoOn what="Answer it" command={commandOf(session, "answer", item.run_id)} /></>
              : <Answer kind={item.question.kind} question={item.question.id} asked={item.question.arguments ?? ""}
                  options={item.question.kind === "question" ? (item.question.options ?? []) : []} schema={(item.question.schema as Schema | null) ?? undefined}
                  outside={isOutside(item.question)} project={about.value?.project} tool={item.question.tool} agent={item.question.agent} exposed={item.question.rule === "labels"}
                  late={late} leave={() => { keep(undefined); choose(""); }} drafted={drafting}
                  send={async (body) => { await api.answer(item.run_id, body); inbox.again(); }} />}
          </div>
        </div>
      )}
    </main>
  );
}

const sinceOf = (item: InboxItemView): string => ago(Date.now() / 1000 - (item.question.since ?? 0));
const until = ({ question }: InboxItemView): string =>
  question.deadline ? ` · ${lasted(question.deadline - Date.now() / 1000)} left to answer` : "";

/** Who has answered a question that is open no longer, and what; empty for none. */
function useAnswered(api: Api, item: InboxItemView | undefined): string {
  const [said, say] = useState("");
  const key = item ? keyOf(item) : "";
  useEffect(() => {
    if (!item) return say("");
    let left = false;
    say("It is open no longer.");
    api.tree(item.run_id).then(({ activations }) => {
      const effect = activations.flatMap((each) => each.turns).flatMap((each) => each.effects).find((each) => each.id === item.question.id);
      if (!left && effect?.ended_at) say(`${line(effect.decided_by || "Nobody", 40)}: ${line(effect.content || effect.outcome, 160)}.`);
    }, () => undefined);
    return () => { left = true; };
  }, [api, key]);
  return said;
}

import { useState } from "react";
import { Answer } from "../answer/Answer";
import type { Schema } from "../answer/Arguments";
import { Glyph } from "../parts/Glyph";
import { Whole } from "../parts/Text";
import type { Api } from "../server/api";
import { commandOf, useSession } from "../server/session";
import type { Inbox, InboxItemView } from "../server/wire";
import { ago, line } from "../state/words";
import type { Loaded } from "./load";
import { Fields } from "../talk/Ask";
import { Empty, GoOn, Loading, Trouble } from "./states";

const ASKS = { approval: "asks to use", question: "asks", limit: "asks for more" };
const keyOf = (item: InboxItemView): string => `${item.run_id} ${item.question.id}`;

/** Everything that waits for a person, over all runs: a list, and the one that is answered. */
export function Waiting({ api, inbox }: { api: Api; inbox: Loaded<Inbox> }) {
  const [chosen, choose] = useState("");
  const session = useSession();
  const items = inbox.value?.items ?? [];
  const item = items.find((each) => keyOf(each) === chosen) ?? items[0];
  const since = (each: InboxItemView): string => ago(Date.now() / 1000 - (each.question.since ?? 0));
  return (
    <main className="main">
      {inbox.error && <Trouble again={inbox.again}>{inbox.error}</Trouble>}
      {!inbox.value && !inbox.error && <Loading />}
      {inbox.value && !item && (
        <div className="page"><Empty title="Nothing waits for you">
          What an agent asks, and each tool that needs a permission, stands here, of every run.</Empty></div>)}
      {item && (
        <div className="split">
          <ul className="list" aria-label="What waits">
            {items.map((each) => (
              <li key={keyOf(each)}><button className="item" aria-current={each === item} onClick={() => choose(keyOf(each))}>
                <Glyph shape="human" /><span className="strong cut">{line(each.question.agent, 30)} {ASKS[each.question.kind]} {line(each.question.tool ?? "", 40)}</span>
                <span className="faint sm">{since(each)}</span>
                <span className="dim sm cut">{line(each.question.text, 100)}</span>
                <span className="faint sm cut">{line(each.name || each.team || each.run_id.slice(0, 12), 60)}</span></button></li>
            ))}
          </ul>
          <div className="answer" key={keyOf(item)}>
            <div><h1>{line(item.question.agent, 40)} {ASKS[item.question.kind]} {line(item.question.tool ?? "", 60)}</h1>
              <p className="dim">in <a className="link" href={`#/run/${item.run_id}?effect=${encodeURIComponent(item.question.id)}`}>
                {line(item.name || item.team || item.run_id.slice(0, 12), 80)}</a> · {since(item)}</p></div>
            <Whole text={{ text: item.question.text }} className="said" />
            {session.readOnly
              ? <><Fields json={item.question.arguments ?? ""} /><GoOn what="Answer it" command={commandOf(session, "answer", item.run_id)} /></>
              : <Answer kind={item.question.kind} question={item.question.id} asked={item.question.arguments ?? ""}
              options={item.question.options ?? []} schema={(item.question.schema as Schema | null) ?? undefined} keys={false}
              send={async (body) => { await api.answer(item.run_id, body); inbox.again(); }} />}
          </div>
        </div>
      )}
    </main>
  );
}

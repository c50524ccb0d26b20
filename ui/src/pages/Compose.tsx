import { useState, type FormEvent } from "react";
import type { Api } from "../server/api";
import { reason } from "../server/problem";
import { openOf } from "../state/doing";
import type { View } from "../state/store";
import { visible } from "../state/words";

/** Say something: to an agent at work, which hears it before its next turn, or a new request. */
export function Compose({ api, run, view, entry }: { api: Api; run: string; view: View; entry: string }) {
  const [to, setTo] = useState("");
  const [words, setWords] = useState("");
  const [sending, setSending] = useState(false);
  const [wrong, setWrong] = useState("");
  const working = [...view.whole.activations.values()].filter((each) => each.number > 0 && !each.ended && openOf(view.whole, each).length > 0);
  const chosen = working.find((each) => each.call === to);
  const send = (event: FormEvent): void => {
    event.preventDefault();
    if (!words.trim() || sending) return;
    setSending(true);
    setWrong("");
    const sent = chosen ? api.tell(run, { call_id: chosen.call, message: words }) : api.ask(run, { agent: entry, message: words }, crypto.randomUUID());
    sent.then(() => setWords(""), (error: unknown) => setWrong(reason(error))).finally(() => setSending(false));
  };
  return (
    <form className="compose" onSubmit={send}>
      {wrong && <p className="kt k-error sm" role="alert">{wrong}</p>}
      <div className="row">
        <label className="row"><span className="faint" aria-hidden="true">To</span>
          <select className="field" aria-label="To" value={to} onChange={(event) => setTo(event.target.value)}>
            <option value="">{entry ? `${visible(entry)}, a new request` : "a new request"}</option>
            {working.map((each) => <option key={each.call} value={each.call}>{visible(each.label)}, at work</option>)}
          </select></label>
        <input className="field grow" aria-label="Message" value={words} onChange={(event) => setWords(event.target.value)}
          placeholder={chosen ? "It hears this before its next turn" : "Ask for something more"} />
        <button className="btn" disabled={sending || !words.trim()}>{sending ? "Sending" : "Send"}<kbd>↵</kbd></button>
      </div>
    </form>
  );
}

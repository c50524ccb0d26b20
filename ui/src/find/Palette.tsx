import { useEffect, useRef, useState } from "react";
import { Glyph, Icon } from "../parts/Glyph";
import { line, visible } from "../state/words";
import { offered, ranked, type Offer } from "./offers";

const MOST = 60;
const KINDS = { do: "Do", agent: "Agents", run: "Runs" } as const;

/** Find or do: ⌘K. `more` looks further, in what only a server knows. */
export function Palette({ more }: { more?: (query: string) => Promise<Offer[]> }) {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (!(event.metaKey || event.ctrlKey) || event.key.toLowerCase() !== "k" || event.shiftKey || event.altKey) return;
      event.preventDefault();
      setOpen((old) => !old);
    };
    const ask = (): void => setOpen(true);
    window.addEventListener("keydown", press);
    window.addEventListener("palette", ask);
    return () => {
      window.removeEventListener("keydown", press);
      window.removeEventListener("palette", ask);
    };
  }, []);
  return open ? <Box more={more} close={() => setOpen(false)} /> : null;
}

export const openPalette = (): boolean => window.dispatchEvent(new CustomEvent("palette"));

function Box({ more, close }: { more: ((query: string) => Promise<Offer[]>) | undefined; close(): void }) {
  const box = useRef<HTMLDialogElement>(null);
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const [here] = useState(offered);
  const [far, setFar] = useState<Offer[]>([]);
  useEffect(() => { box.current?.showModal(); }, []);
  useEffect(() => {
    if (!more) return;
    let left = false;
    // What the server cannot tell now is not found; all else is.
    const timer = window.setTimeout(() => { more(query).then((found) => { if (!left) setFar(found); }, () => undefined); }, query ? 120 : 0);
    return () => { left = true; window.clearTimeout(timer); };
  }, [more, query]);
  // The server has looked for the words already, where it looks.
  const found = [...ranked(here, query), ...ranked(far, query)].slice(0, MOST);
  const chosen = Math.min(at, found.length - 1);
  useEffect(() => { box.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" }); }, [chosen]);
  const act = (offer: Offer | undefined): void => {
    if (!offer) return;
    box.current?.close();
    offer.act();
  };
  return (
    <dialog ref={box} className="palette" aria-label="Find or do" onClose={close} onClick={(event) => { if (event.target === box.current) close(); }}>
      <label className="search"><Icon name="search" /><span className="sr">Find or do</span>
        <input className="field" role="combobox" aria-expanded="true" aria-controls="found" aria-autocomplete="list" autoFocus
          aria-activedescendant={found[chosen] ? `found-${chosen}` : undefined} placeholder="Find a run or an agent, or do something" value={query}
          onChange={(event) => { setQuery(event.target.value); setAt(0); }}
          onKeyDown={(event) => {
            const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
            if (by) setAt((chosen + by + found.length) % Math.max(1, found.length));
            else if (event.key === "Enter") act(found[chosen]);
            else return;
            event.preventDefault();
          }} /></label>
      <div id="found" role="listbox" aria-label="Found">
        {found.map((each, index) => (
          <div key={each.key} id={`found-${index}`} role="option" aria-selected={index === chosen} className="row"
            onClick={() => act(each)} onMouseMove={() => setAt(index)}>
            {each.kind === "agent" ? <Glyph shape="agent" /> : <Icon name={each.kind === "run" ? "runs" : "next"} />}
            <span className="cut grow">{line(each.title, 160)}</span>
            {each.hint && <span className="faint sm cut hint">{line(each.hint, 60)}</span>}
            {each.keys ? <kbd>{each.keys}</kbd> : <span className="faint xs">{KINDS[each.kind]}</span>}
          </div>
        ))}
      </div>
      {found.length === 0 && <p className="faint" role="status">Nothing is called {visible(query)}</p>}
    </dialog>
  );
}

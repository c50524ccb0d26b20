// The program of an exported file: the run stands in the page.
import { createRoot } from "react-dom/client";
import "./styles/fonts.css";
import "./styles/tokens.css";
import "./styles/parts.css";
import "./styles/run.css";
import "./styles/narrow.css";
import { Palette } from "./find/Palette";
import type { Prefix } from "./inspect/Inspector";
import { parsed } from "./parts/json";
import { RunView } from "./RunView";
import { bindAddress, Store } from "./state/store";
import { inSlices } from "./state/slices";
import type { PageRun } from "./state/wire";

const data = (await parsed(document.getElementById("run")!.textContent)) as PageRun;
const store = new Store();
await inSlices(data.frames, (some, more) => store.add(some, more));
bindAddress(store);
createRoot(document.getElementById("root")!).render(
  <>
    <RunView store={store} name={data.name} prefixes={(digest) => data.prefixes[digest] as Prefix | undefined} />
    <Palette />
  </>,
);

// The page of a server: runs, what waits for a person, a run as it goes on.
import { createRoot } from "react-dom/client";
import "./styles/fonts.css";
import "./styles/tokens.css";
import "./styles/parts.css";
import "./styles/run.css";
import "./styles/pages.css";
import "./styles/narrow.css";
import "./parts/theme";
import { Shell } from "./pages/Shell";
import { Api, tokenOf } from "./server/api";

createRoot(document.getElementById("root")!).render(<Shell api={new Api("", await tokenOf())} />);

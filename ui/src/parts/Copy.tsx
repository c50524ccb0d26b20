import { useEffect, useState, type ReactNode } from "react";
import { Icon } from "./Glyph";

/** Put a text on the clipboard; whether that worked. A page that is not of this machine has no clipboard of its own. */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const box = document.createElement("textarea");
    box.value = text;
    document.body.append(box);
    box.select();
    const done = document.execCommand("copy");
    box.remove();
    return done;
  }
}

/** A button that copies, and says whether it did. */
export function Copy({ what, text, children }: { what: string; text(): string | Promise<string>; children?: ReactNode }) {
  const [said, say] = useState("");
  useEffect(() => {
    if (!said) return;
    const timer = window.setTimeout(() => say(""), 2000);
    return () => window.clearTimeout(timer);
  }, [said]);
  const press = async (): Promise<void> => {
    try {
      say((await copy(await text())) ? "Copied" : "Not copied: the browser does not allow it");
    } catch (error) {
      say(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <>
      <button type="button" className={`btn plain ${children ? "" : "sq"}`} aria-label={what} title={said || what} onClick={() => void press()}>
        <Icon name={said === "Copied" ? "done" : "copy"} />{children}</button>
      <span className="sr" role="status">{said}</span>
    </>
  );
}

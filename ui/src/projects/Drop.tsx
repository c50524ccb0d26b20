import { useRef, useState, type ReactNode } from "react";
import { Icon } from "../parts/Glyph";

/** Files, by a picker or dropped here. */
export function Drop({ what, hint, take, children }: { what: string; hint: string; take(files: File[]): void; children?: ReactNode }) {
  const [over, setOver] = useState(false);
  const box = useRef<HTMLInputElement>(null);
  return (
    <div className="drop" data-over={over} onDragOver={(event) => { event.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        if (event.dataTransfer.files.length) take([...event.dataTransfer.files]);
      }}>
      <label className="btn plain"><Icon name="plus" />{what}
        <input ref={box} className="sr" type="file" multiple onChange={() => {
          take([...(box.current!.files ?? [])]);
          box.current!.value = "";
        }} /></label>
      <span className="faint sm">{hint}</span>
      {children}
    </div>
  );
}

import { useState } from "react";
import { useLoaded } from "../pages/load";
import { Loading, Trouble } from "../pages/states";
import { bytes, save as keep } from "../parts/files";
import { Glyph } from "../parts/Glyph";
import type { Api } from "../server/api";
import { reason } from "../server/problem";
import { ago, count, line, visible } from "../state/words";
import { Drop } from "./Drop";

/** What an upload came to: still on its way, or why it is not there. */
interface Going {
  name: string;
  wrong: string;
}

/** The files of a project: what its runs may read. */
export function Files({ api, project, changed }: { api: Api; project: string; changed(): void }) {
  const { value, error, again } = useLoaded(() => api.files(project), 5, project);
  const [going, setGoing] = useState<Going[]>([]);
  const [asked, ask] = useState("");
  const [wrong, setWrong] = useState("");
  const files = value?.files ?? [];
  const after = (): void => { again(); changed(); };
  const upload = async (given: File[]): Promise<void> => {
    for (const each of given) {
      const told = (wrong: string): void => setGoing((old) => old.map((one) => (one.name === each.name ? { ...one, wrong } : one)));
      setGoing((old) => [...old.filter((one) => one.name !== each.name), { name: each.name, wrong: "" }]);
      try {
        await api.upload(project, each.name, each);
        setGoing((old) => old.filter((one) => one.name !== each.name));
      } catch (error) {
        told(reason(error));
      }
      after();
    }
  };
  const save = (path: string): void => {
    setWrong("");
    api.file(project, path).then((blob) => keep(blob, path.split("/").at(-1)!), (error: unknown) => setWrong(reason(error)));
  };
  const remove = (path: string): void => {
    ask("");
    setWrong("");
    api.removeFile(project, path).then(after, (error: unknown) => setWrong(reason(error)));
  };
  return (
    <section className="sheet pad" aria-label="Files"><h2>Files</h2>
      <Drop what="Upload" hint="or drop them here, 50 MB each" take={(given) => void upload(given)} />
      {(error || wrong) && <Trouble again={again}>{error || wrong}</Trouble>}
      {!value && !error && <Loading />}
      {value && files.length === 0 && going.length === 0 && <p className="faint">None yet. What is uploaded here, runs of the project may read.</p>}
      <ul className="files">
        {going.map((each) => (
          <li key={`going ${each.name}`} className="row"><span className="grow cut">{line(each.name, 120)}</span>
            {each.wrong
              ? <><span className="kt k-error sm" role="alert"><Glyph shape="error" /> {line(each.wrong, 200)}</span>
                <button className="btn plain" onClick={() => setGoing((old) => old.filter((one) => one !== each))}>Leave it</button></>
              : <span className="faint sm" role="status">on its way, {files.some((one) => one.path === each.name) ? "replacing the one that is there" : "new"}</span>}</li>))}
        {files.map((each) => (
          <li key={each.path} className="row">
            <button className="link cut grow" onClick={() => save(each.path)} title={`Save ${visible(each.path)}`}>{visible(each.path)}</button>
            <span className="faint sm num" title={`${count(each.size)} bytes`}>{bytes(each.size)}</span>
            <span className="faint sm num hide">{ago(Date.now() / 1000 - each.modified)}</span>
            {asked === each.path
              ? <><button className="btn danger" autoFocus onClick={() => remove(each.path)}>Delete for good</button>
                <button className="btn plain" onClick={() => ask("")}>Leave it</button></>
              : <button className="btn plain" aria-label={`Delete ${visible(each.path)}`} onClick={() => ask(each.path)}>Delete</button>}
          </li>))}
      </ul>
    </section>
  );
}

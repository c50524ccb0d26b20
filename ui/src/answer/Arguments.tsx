import { line, visible } from "../state/words";

/** JSON Schema, as far as a form is made of it. */
export interface Schema {
  type?: string | string[];
  enum?: unknown[];
  description?: string;
  properties?: Record<string, Schema>;
  required?: string[];
}

/** Arguments as texts to be edited: a text as itself, all else as JSON. */
export function written(json: string): Record<string, string> {
  try {
    const value: unknown = JSON.parse(json || "{}");
    if (typeof value !== "object" || value === null || Array.isArray(value)) return {};
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, typeof each === "string" ? each : JSON.stringify(each)]));
  } catch {
    return {};
  }
}

/** What was edited as JSON, and what is wrong with it, by name. */
export function parsed(
  values: Record<string, string>, asked: string, schema: Schema | undefined,
): { json: string; faults: Record<string, string> } {
  const faults: Record<string, string> = {};
  let before: Record<string, unknown> = {};
  try {
    before = JSON.parse(asked || "{}") as Record<string, unknown>;
  } catch {
    // what was asked is no JSON: each value is taken as the schema says
  }
  const found: Record<string, unknown> = {};
  for (const [name, text] of Object.entries(values)) {
    const about = schema?.properties?.[name];
    const type = typeOf(about, before[name]);
    if (type === "string") {
      found[name] = text;
      if (about?.enum && !about.enum.includes(text)) faults[name] = `Expected one of ${about.enum.join(", ")}`;
      continue;
    }
    try {
      found[name] = JSON.parse(text);
    } catch {
      faults[name] = `Expected ${type === "any" ? "JSON" : `a value of type ${type}`}, got ${JSON.stringify(line(text, 40))}`;
      continue;
    }
    const got = Array.isArray(found[name]) ? "array" : typeof found[name];
    const fits = type === "any" || got === type || (type === "integer" && Number.isInteger(found[name])) || (type === "object" && got === "object");
    if (!fits) faults[name] = `Expected a value of type ${type}, got ${line(text, 40)}`;
  }
  return { json: Object.keys(faults).length ? "" : JSON.stringify(found), faults };
}

function typeOf(schema: Schema | undefined, before: unknown): string {
  if (typeof schema?.type === "string") return schema.type;
  if (schema) return "any";
  if (before === null || before === undefined) return "any";
  return Array.isArray(before) ? "array" : typeof before;
}

/** A form of a call's arguments, made of the tool's schema. */
export function Arguments({ values, asked, schema, faults, left = "The call still waits", set }: {
  values: Record<string, string>; asked: string; schema?: Schema | undefined; faults: Record<string, string>;
  /** What a fault has left as it was. */
  left?: string;
  set(values: Record<string, string>): void;
}) {
  const before = written(asked);
  // Nothing was there before: an answer, and no edit.
  const form = asked === "";
  return (
    <div className="form">
      {Object.entries(values).map(([name, value]) => {
        const about = schema?.properties?.[name];
        const change = (next: string): void => set({ ...values, [name]: next });
        const long = value.includes("\n") || value.length > 80;
        const options = about?.enum?.map((each) => (typeof each === "string" ? each : JSON.stringify(each)));
        const props = {
          className: "field mono", value, "aria-invalid": Boolean(faults[name]),
          onChange: (event: { target: { value: string } }) => change(event.target.value),
        };
        return (
          <label key={name}>
            <span className="label"><code>{visible(name)}</code>{about?.description && <span className="faint sm cut">{line(about.description, 120)}</span>}
              {form && about?.type !== undefined && about.type !== "string" && <span className="faint sm">JSON, {String(about.type)}</span>}
              {!form && value !== before[name] && <span className="kt k-human sm">edited</span>}</span>
            {options
              ? <select {...props}>{!options.includes(value) && <option value="" />}{options.map((each) => <option key={each}>{each}</option>)}</select>
              : long ? <textarea {...props} rows={Math.min(18, value.split("\n").length + 2)} /> : <input {...props} />}
            {faults[name] && <span className="kt k-error sm" role="alert">{faults[name]}. {left}.</span>}
          </label>
        );
      })}
    </div>
  );
}

// JSON read in slices: megabytes that are parsed in one go keep the page from drawing, and whoever reads from scrolling.
/** Characters that are parsed in one go: some milliseconds on a slow machine. A longer text is parsed in slices of SLICE. */
export const WHOLE = 524_288;
const SLICE = 65_536;
/** Milliseconds of work after which others have their turn. */
const TASK = 12;

const rest = (): Promise<void> => new Promise((done) => { setTimeout(done, 0); });

/** A list or an object that is being read. */
interface Open {
  list: boolean;
  /** The place of the mark that opens it. */
  start: number;
  /** What stands in it from here on is still text. */
  from: number;
  /** Where its element begins that is being read, and where the key of that ends. */
  element: number;
  colon: number;
  /** What is in it so far; none while all of it is text. */
  made: unknown[] | object | undefined;
  /** An element was put in that was made of its own: a comma or the end must follow. Else: a comma was read, so that an element must. */
  put: boolean;
  comma: boolean;
}

/** What `JSON.parse` gives, in tasks that are short however long the text is; a text in it is not cut. Throws SyntaxError as that does. */
export async function parsed(text: string, slice = SLICE, pause = rest, whole = slice === SLICE ? WHOLE : slice): Promise<unknown> {
  if (text.length <= whole) return JSON.parse(text) as unknown;
  const open: Open[] = [];
  let began = performance.now();
  let looked = 0;
  for (let at = 0; at < text.length; at++) {
    if (at - looked > slice) {
      looked = at;
      if (performance.now() - began > TASK) {
        await pause();
        began = performance.now();
      }
    }
    const sign = text.charCodeAt(at);
    const top = open.at(-1);
    if (sign === 34) at = endOf(text, at);
    else if (sign === 91 || sign === 123) {
      open.push({ list: sign === 91, start: at, from: at + 1, element: at + 1, colon: 0, made: undefined, put: false, comma: false });
    } else if (!top) continue;
    else if (sign === 58 && top.colon < top.element) top.colon = at;
    else if (sign === 44) {
      if (at - top.from > slice) {
        for (const each of open) if (each !== top) take(text, each, each.element, "child");
        take(text, top, at, "comma");
        top.from = at + 1;
      }
      top.element = at + 1;
    } else if (sign === 93 || sign === 125) {
      if (top.list !== (sign === 93)) throw wrong(at);
      open.pop();
      // What is small stays text of whatever it is in.
      if (!top.made) continue;
      take(text, top, at, "end");
      const parent = open.at(-1);
      if (parent) put(text, parent, top, at);
      else if (text.slice(0, top.start).trim() || text.slice(at + 1).trim()) throw wrong(at + 1);
      else return top.made;
    }
  }
  return JSON.parse(text) as unknown;
}

const wrong = (at: number): SyntaxError => new SyntaxError(`Not JSON at position ${at}`);

/** The place of the mark that ends a text. */
function endOf(text: string, start: number): number {
  for (let end = start + 1; ; end++) {
    end = text.indexOf('"', end);
    if (end < 0) return text.length;
    let before = end - 1;
    while (text.charCodeAt(before) === 92) before--;
    if ((end - before) % 2) return end;
  }
}

/** Make of text what stands up to a place: whole elements, and after them a comma, a child that is made of its own, or the end. */
function take(text: string, open: Open, to: number, then: "comma" | "child" | "end"): void {
  open.made ??= open.list ? [] : {};
  let part = text.slice(open.from, to).trim();
  open.from = to;
  if (open.put && part) {
    if (part[0] !== ",") throw wrong(to);
    part = part.slice(1).trim();
    open.put = false;
    open.comma = true;
  }
  if (then === "child" && part) {
    if (!part.endsWith(",")) throw wrong(to);
    part = part.slice(0, -1).trim();
    if (!part) throw wrong(to);
  }
  // After a comma an element must come, and before one.
  if (!part && ((then === "comma" && !open.put) || (then === "end" && open.comma) || (then === "child" && open.put))) throw wrong(to);
  if (part) {
    if (Array.isArray(open.made)) for (const each of JSON.parse(`[${part}]`) as unknown[]) open.made.push(each);
    else for (const [name, each] of Object.entries(JSON.parse(`{${part}}`) as object)) define(open.made, name, each);
    open.comma = then !== "end";
  } else if (then === "comma") open.comma = true;
  open.put = false;
}

/** Put an element in that was made of its own, and ends at a place. */
function put(text: string, open: Open, child: Open, end: number): void {
  if (text.slice(open.list ? open.element : open.colon + 1, child.start).trim()) throw wrong(child.start);
  if (Array.isArray(open.made)) open.made.push(child.made);
  else {
    const name: unknown = JSON.parse(text.slice(open.element, open.colon));
    if (typeof name !== "string") throw wrong(open.element);
    define(open.made!, name, child.made);
  }
  open.from = end + 1;
  open.put = true;
  open.comma = false;
}

/** A key is a key, whatever it is called. */
const define = (object: object, name: string, value: unknown): void => {
  Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
};

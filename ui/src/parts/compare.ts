// Two lists of lines compared: the longest that both have in common stays.
export interface Compared {
  sign: " " | "+" | "-";
  text: string;
  /** Of the line after the change; 0 for one that is gone. */
  number: number;
}

const MOST = 2_000;

export function compared(before: string[], after: string[]): Compared[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let end = 0;
  while (end < before.length - start && end < after.length - start && before.at(-1 - end) === after.at(-1 - end)) end++;
  const old = before.slice(start, before.length - end);
  const fresh = after.slice(start, after.length - end);
  const same = (lines: string[], from: number): Compared[] => lines.map((text, index) => ({ sign: " ", text, number: from + index + 1 }));
  return [
    ...same(after.slice(0, start), 0),
    ...(old.length * fresh.length > MOST * MOST ? all(old, fresh, start) : middle(old, fresh, start)),
    ...same(after.slice(after.length - end), after.length - end),
  ];
}

const all = (old: string[], fresh: string[], from: number): Compared[] => [
  ...old.map((text): Compared => ({ sign: "-", text, number: 0 })),
  ...fresh.map((text, index): Compared => ({ sign: "+", text, number: from + index + 1 })),
];

function middle(old: string[], fresh: string[], from: number): Compared[] {
  const wide = fresh.length + 1;
  const common = new Uint32Array((old.length + 1) * wide);
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = fresh.length - 1; j >= 0; j--) {
      common[i * wide + j] = old[i] === fresh[j]
        ? common[(i + 1) * wide + j + 1]! + 1
        : Math.max(common[(i + 1) * wide + j]!, common[i * wide + j + 1]!);
    }
  }
  const found: Compared[] = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < fresh.length) {
    if (i < old.length && j < fresh.length && old[i] === fresh[j]) {
      found.push({ sign: " ", text: fresh[j]!, number: from + j + 1 });
      i++;
      j++;
    } else if (j < fresh.length && (i >= old.length || common[i * wide + j + 1]! > common[(i + 1) * wide + j]!)) {
      found.push({ sign: "+", text: fresh[j]!, number: from + ++j });
    } else found.push({ sign: "-", text: old[i++]!, number: 0 });
  }
  return found;
}

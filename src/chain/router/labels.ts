// What stands before a name or an address to say which end it belongs to. Ends may be called anything; their labels
// are made of what tool names and schemes allow, are never empty, and no two ends have the same. They hold no dot, so
// that the first dot after one ends it. An end whose name is fit as it is has it as its label, whoever else is there.

import { checkSum } from "./check-sum.ts";

export interface Label {
  /** Before the names of tools and prompts. */
  readonly name: string;
  /** Before addresses and the ids of tasks. */
  readonly scheme: string;
}

const MOST_LETTERS = 32;

export function labelsOf(ends: readonly string[]): readonly Label[] {
  const names = unique(ends, (end) => end.replaceAll(/[^A-Za-z0-9_-]/g, "_"));
  const schemes = unique(ends, (end) =>
    end
      .toLowerCase()
      .replaceAll(/[^a-z0-9+-]/g, "-")
      .replace(/^(?![a-z])/, "e-"),
  );
  return ends.map((_end, index) => ({ name: names[index] ?? "", scheme: schemes[index] ?? "" }));
}

function unique(ends: readonly string[], fit: (end: string) => string): readonly string[] {
  const plain = ends.map((end) => fit(end) || "end");
  const labels = plain.map((label, index) => (isFit(label) && label === ends[index] ? label : undefined));
  const taken = new Set(labels);
  return plain.map((label, index) => {
    const kept = labels[index];
    if (kept !== undefined) return kept;
    let free = label;
    for (let salt = 0; !isFit(free) || taken.has(free); salt += 1) {
      const sum = checkSum(`${salt} ${ends[index] ?? ""}`);
      free = `${label.slice(0, MOST_LETTERS - 1 - sum.length)}-${sum}`;
    }
    taken.add(free);
    return free;
  });
}

function isFit(label: string): boolean {
  return label.length <= MOST_LETTERS;
}

// The words of a search for tools: how a text is split into words, what a word is without its ending, and which other
// words mean the same to a person who looks for a tool.

/** The words of a text, also those of names such as `read_fileByPath`. */
export function wordsOf(text: string): string[] {
  const apart = text.replaceAll(/(\p{Ll}|\p{N})(\p{Lu})/gu, "$1 $2");
  return apart.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== "");
}

const MAX_WORD = 40;

/** The word in lower case without the endings that do not change its meaning: `Files` and `file`, `creating` and `create`. */
export function stemOf(word: string): string {
  const lower = word.toLowerCase();
  // Not a word of a language; the patterns below would take long.
  if (lower.length > MAX_WORD) return lower;
  const singular = lower.length > 3 ? withoutPlural(lower) : lower;
  const [, verb] = /^(.*[aeiouy].*?)(?:ing|ed)$/.exec(singular) ?? [];
  const base = verb !== undefined && verb.length > 2 ? verb.replace(/([^aeiouls])\1$/, "$1") : singular;
  const action = base.length > 6 ? base.replace(/ation$/, "at") : base;
  return action.length > 4 ? action.replace(/e$/, "") : action;
}

function withoutPlural(word: string): string {
  if (/(?:ss|us|is)$/.test(word)) return word;
  if (word.endsWith("ies")) return `${word.slice(0, -3)}y`;
  return word.replace(/(ss|x|ch|sh)es$/, "$1").replace(/s$/, "");
}

/** Words that people use for the same action or thing. A word may be in several lines. */
const GROUPS: readonly string[] = [
  "search find look locate query",
  "list enumerate show",
  "get fetch read retrieve load view show",
  "open read",
  "open create",
  "delete remove erase destroy drop clear",
  "create add new make insert post",
  "write save store create",
  "update edit change modify patch set",
  "move rename",
  "copy duplicate clone fork",
  "run execute evaluate invoke",
  "send post submit",
  "click press tap",
  "navigate go visit browse",
  "sum add plus total",
  "link connect relate relation",
  "compress zip gzip",
  "check status test",
  "append add",
  "file document",
  "folder directory dir",
  "image picture photo media",
  "screen screenshot snapshot capture",
  "video screencast recording",
  "page website site webpage url",
  "http network",
  "button element",
  "issue bug ticket",
  "pr pull",
  "repo repository project",
  "person people user member account",
  "remember memory knowledge observation",
  "fact observation",
  "message mail email",
  "log console message",
  "history list",
  "environment env",
  "metadata info information detail",
  "size length",
  "speed performance",
  "several multiple many",
  "whole entire all complete",
  "think thought thinking",
];

const SYNONYMS: ReadonlyMap<string, ReadonlySet<string>> = readGroups();

function readGroups(): ReadonlyMap<string, ReadonlySet<string>> {
  const synonyms = new Map<string, Set<string>>();
  for (const group of GROUPS) {
    const stems = group.split(" ").map(stemOf);
    for (const stem of stems) {
      const known = synonyms.get(stem) ?? new Set();
      for (const other of stems) if (other !== stem) known.add(other);
      synonyms.set(stem, known);
    }
  }
  return synonyms;
}

/** The stems of words that mean about the same as a word with this stem. */
export function synonymsOf(stem: string): Iterable<string> {
  return SYNONYMS.get(stem) ?? [];
}

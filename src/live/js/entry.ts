// JavaScript in the registry of languages: what configs and commands need to know before the language is loaded.

import type { LanguageEntry } from "../tool.ts";
import { MIN_PERMISSION_NODE, SETTINGS } from "./settings.ts";

export const js: LanguageEntry = {
  name: "js",
  alternateName: "javascript",
  aliases: ["ecmascript", "node", "nodejs", "ts", "typescript"],
  title: "JavaScript",
  description: "JavaScript and TypeScript",
  program: {
    description: "the name or path of node; by default the one that runs the gateway",
    hint: 'write the path of a Node executable in "program", or remove "program"',
  },
  settings: SETTINGS,
  problem({ permission = false, program }) {
    const [major = ""] = process.versions.node.split(".");
    if (permission === false || program !== undefined || Number(major) >= MIN_PERMISSION_NODE) return undefined;
    return {
      setting: "permission",
      message: `needs Node ${MIN_PERMISSION_NODE} or later; this is Node ${major}`,
      hint: 'write the path of a newer Node in "program", or remove "permission"; otherwise every evaluation fails',
    };
  },
  create: async (options) => (await import("./index.ts")).jsLanguage(options),
  needsMore,
};

/** What cannot end a statement, so that the next line belongs to it. */
const CONTINUES = /(?:[*/%&|^=,?:<.(]|[^+]\+|[^-]-|=>)\s*$/;
/** After these, a slash begins a regular expression and is not a division. */
const BEFORE_REGEXP = /(?:^|[-+*/%&|^=,?:<>(![{};~]|\b(?:return|typeof|case|in|of|void|delete|throw|await|yield))\s*$/;
const MAX_SEEN = 20;
const OPENING = "([{";
const CLOSING = ")]}";

/** Whether a bracket, a template or a comment is open, or the last line ends with an operator. */
function needsMore(code: string): boolean {
  /** The open brackets; "`" is a template, and "$" the code within one. */
  const open: string[] = [];
  /** The end of the code since the last string, which decides what the next slash means. */
  let seen = "";
  for (let at = 0; at < code.length; at += 1) {
    const char = code[at] ?? "";
    if (open.at(-1) === "`") {
      seen = "x";
      if (char === "\\") at += 1;
      else if (char === "`") open.pop();
      else if (code.startsWith("${", at)) {
        open.push("$");
        seen = "";
        at += 1;
      }
      continue;
    }
    const end = skip(code, at, seen);
    if (end === undefined) return true;
    if (end > at) {
      if (!/^\/[/*]/.test(code.slice(at, at + 2))) seen = "x";
      at = end - 1;
    } else {
      if (char === "`" || OPENING.includes(char)) open.push(char);
      else if (CLOSING.includes(char)) open.pop();
      // Long enough for the longest keyword. A space more would hide what is before it.
      if (!/\s/.test(char) || !/\s$/.test(seen)) seen = (seen + char).slice(-MAX_SEEN);
    }
  }
  return open.length > 0 || CONTINUES.test(seen);
}

/** The end of the comment, string or regular expression at `at`, or `at` if there is none. Undefined if it is open. */
function skip(code: string, at: number, seen: string): number | undefined {
  const rest = code.slice(at);
  if (rest.startsWith("//")) return at + (/^.*/.exec(rest)?.[0].length ?? 0);
  if (rest.startsWith("/*")) {
    const end = rest.indexOf("*/", 2);
    return end < 0 ? undefined : at + end + 2;
  }
  // A string that is not closed on its line is an error, which another line cannot mend.
  const string = /^(?:"(?:\\[^]|[^"\\\n])*"?|'(?:\\[^]|[^'\\\n])*'?)/.exec(rest);
  if (string !== null) return at + string[0].length;
  const mayBeRegexp = rest.startsWith("/") && BEFORE_REGEXP.test(seen);
  const regexp = mayBeRegexp ? /^\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/\w*/.exec(rest) : null;
  return at + (regexp?.[0].length ?? 0);
}

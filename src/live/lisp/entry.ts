// Common Lisp in the registry of languages: what configs and commands need to know before the language is loaded.

import type { LanguageEntry } from "../tool.ts";

export const lisp: LanguageEntry = {
  name: "lisp",
  aliases: ["cl", "clisp", "common-lisp", "commonlisp", "sbcl"],
  title: "Common Lisp",
  description: "Common Lisp, needs SBCL",
  program: {
    name: "sbcl",
    description: "the name or path of sbcl; by default sbcl on the PATH",
    hint: 'install it (apt-get install sbcl, or brew install sbcl), or write its path in "program"',
  },
  settings: {},
  create: async ({ onWarning, ...options }) => (await import("./index.ts")).lispLanguage(options, onWarning),
  needsMore,
};

/** The next comment line, beginning of a block comment, string, |symbol|, character, or any other character. */
const TOKEN = /;.*|#\||"(?:\\[^]|[^"\\])*("?)|\|[^|]*(\|?)|#\\(?:\w+|[^])|\\[^]|[^]/y;

/** Whether a parenthesis, a string, a |symbol| or a comment is open, or a quote stands alone at the end. */
function needsMore(code: string): boolean {
  let depth = 0;
  let last = "";
  for (let at = 0; at < code.length;) {
    TOKEN.lastIndex = at;
    const [token = "", quote, bar] = TOKEN.exec(code) ?? [];
    if (quote === "" || bar === "") return true;
    at = token === "#|" ? endOfComment(code, at) : at + token.length;
    if (at > code.length) return true;
    if (token === "(") depth += 1;
    else if (token === ")") depth -= 1;
    if (!/^(?:\s|;|#\|)/.test(token)) last = token;
  }
  return depth > 0 || /^['`,]$/.test(last);
}

/** Block comments nest. Infinity if this one is open. */
function endOfComment(code: string, start: number): number {
  let depth = 0;
  for (const { 0: mark, index } of code.slice(start).matchAll(/#\||\|#/g)) {
    depth += mark === "#|" ? 1 : -1;
    if (depth === 0) return start + index + 2;
  }
  return Infinity;
}

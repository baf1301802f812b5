// Reads source files for the house rules: removes comments and finds imports. A small scanner is enough for formatted
// code and needs no parser.

import { readdirSync, readFileSync } from "node:fs";
import { join, relative, sep } from "node:path";

export interface SourceFile {
  /** Relative to the root of the repository, with slashes. */
  readonly path: string;
  readonly text: string;
}

export interface Import {
  readonly specifier: string;
  /** `type` imports are erased by the compiler; `late` is a call of import(), or a type written like one. */
  readonly kind: "static" | "type" | "late";
}

export function readSources(root: string, folder: string): SourceFile[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted((a, b) => (a < b ? -1 : 1))
    .map((path) => ({ path: relative(root, path).split(sep).join("/"), text: readFileSync(path, "utf8") }));
}

export function isTest(path: string): boolean {
  return path.endsWith(".test.ts");
}

// A slash after one of these, or at the start of a line, begins a regular expression.
const BEFORE_PATTERN = /(?:^|[(,=:[!&|?{};+>]|\b(?:return|case|typeof))\s*$/;
const STRING = /(["'])(?:\\[^]|(?!\1)[^\\\n])*\1/y;
const PATTERN = /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/[a-z]*/y;
const COMMENT = /\/\/[^\n]*|\/\*[^]*?\*\//y;
const TEMPLATE_TEXT = /(?:\\[^]|\$(?!\{)|[^\\$`])*/y;

/** Replaces comments and, unless they are kept, the texts of template literals by spaces; line breaks stay. */
export function withoutComments(text: string, keepsTemplates = false): string {
  let out = "";
  let at = 0;
  // The number of open braces inside each enclosing template literal.
  const depths: number[] = [];
  const blank = (part: string): string => part.replace(/[^\n]/g, " ");
  const match = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    return pattern.exec(text)?.[0];
  };
  const template = (): void => {
    const words = match(TEMPLATE_TEXT) ?? "";
    out += keepsTemplates ? words : blank(words);
    at += words.length;
    if (text.startsWith("${", at)) {
      depths.push(0);
      out += "${";
      at += 2;
    } else {
      out += "`";
      at += 1;
    }
  };
  while (at < text.length) {
    const here = text[at];
    const comment = here === "/" ? match(COMMENT) : undefined;
    const literal =
      here === '"' || here === "'"
        ? match(STRING)
        : here === "/" && comment === undefined && BEFORE_PATTERN.test(out.slice(-20))
          ? match(PATTERN)
          : undefined;
    if (comment !== undefined) {
      out += blank(comment);
      at += comment.length;
    } else if (literal !== undefined) {
      out += literal;
      at += literal.length;
    } else if (here === "`") {
      out += "`";
      at += 1;
      template();
    } else if (here === "}" && depths.at(-1) === 0) {
      depths.pop();
      out += "}";
      at += 1;
      template();
    } else {
      if (depths.length > 0 && (here === "{" || here === "}")) {
        depths.push((depths.pop() ?? 0) + (here === "{" ? 1 : -1));
      }
      out += here;
      at += 1;
    }
  }
  return out;
}

const FROM = /(?:^|[;}\n])\s*(?:import|export)\s+(type\s+(?!from\b|,))?(?:[\w$*{}\s,]*?\bfrom\s*)?(["'])([^"'\n]+)\2/g;
const CALL = /\bimport\s*\(\s*(["'])([^"'\n]+)\1/g;

export function importsOf(text: string): Import[] {
  const code = withoutComments(text);
  const found: Import[] = [];
  for (const [, type, , specifier] of code.matchAll(FROM)) {
    if (specifier !== undefined) found.push({ specifier, kind: type === undefined ? "static" : "type" });
  }
  for (const [, , specifier] of code.matchAll(CALL)) {
    if (specifier !== undefined) found.push({ specifier, kind: "late" });
  }
  return found;
}

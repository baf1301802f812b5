// Types, taken out of TypeScript without a look at whether they are right: by Node itself where it can, which keeps
// every column, and otherwise by sucrase, which keeps every line and knows enums too. Both are loaded with the first
// text that needs them.

import { createRequire } from "node:module";

export interface TypeFault {
  readonly what: string;
  readonly line: number;
  readonly column: number;
}

type Strip = (code: string, options: { readonly mode: "strip" }) => string;

const require = createRequire(import.meta.url);

/** The same text in JavaScript, or what stands in the way. */
export function withoutTypes(source: string): string | TypeFault {
  return stripped(source) ?? transformed(source);
}

/** Undefined where Node cannot do it, or not without more than taking out. */
function stripped(source: string): string | undefined {
  const { stripTypeScriptTypes } = require("node:module") as { readonly stripTypeScriptTypes?: Strip };
  if (stripTypeScriptTypes === undefined) return undefined;
  const emitWarning = process.emitWarning.bind(process);
  // That this is an experiment of Node is no news for whoever evaluates.
  process.emitWarning = () => undefined;
  try {
    return stripTypeScriptTypes(source, { mode: "strip" });
  } catch {
    return undefined;
  } finally {
    process.emitWarning = emitWarning;
  }
}

/** Sucrase leaves them out without a word. */
const NAMESPACE = /(?:^|[;{}])[ \t]*(?:export\s+)?(?:namespace|module)\s+[A-Za-z_$][\w$.]*\s*\{/m;

function transformed(source: string): string | TypeFault {
  const namespace = NAMESPACE.exec(source);
  if (namespace !== null) {
    const before = source
      .slice(0, namespace.index + namespace[0].search(/(?:export\s+)?(?:namespace|module)\s/))
      .split("\n");
    const what = "Namespaces of TypeScript cannot be evaluated here; use an object or a module";
    return { what, line: before.length, column: (before.at(-1) ?? "").length + 1 };
  }
  const { transform } = require("sucrase") as typeof import("sucrase");
  try {
    const options = { transforms: ["typescript" as const], disableESTransforms: true, preserveDynamicImport: true };
    // What is imported is used by the next text, if not by this one.
    return transform(source, { ...options, keepUnusedImports: true }).code;
  } catch (error) {
    const { message } = error as Error;
    const [, what, line, column] = /^(?:Error transforming \S+: )?(.*) \((\d+):(\d+)\)$/s.exec(message) ?? [];
    if (what === undefined) throw error;
    return { what, line: Number(line), column: Number(column) };
  }
}

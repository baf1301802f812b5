// Counts casts (`value as Type`) with a parser. `as const` is none, and neither is the name of an import.

import { parseSync, Visitor } from "rolldown/utils";
import { isTest, type SourceFile } from "./source.ts";

/** The folders of the engine. */
const ENGINE = /^src\/(?:core|jsonrpc|protocol|tools|tasks|dialogue|transport|http|auth|server|client)\//;

export interface Casts {
  /** As "src/a.ts: value as Type". A cast of a cast is one. */
  readonly all: readonly string[];
  /** Those that are `as unknown as` or the like. */
  readonly double: readonly string[];
}

/** The casts of the engine. */
export function castsIn(files: readonly SourceFile[]): Casts {
  const all: string[] = [];
  const double: string[] = [];
  for (const { path, text } of files) {
    if (isTest(path) || !ENGINE.test(path)) continue;
    const inner = new Set<unknown>();
    new Visitor({
      TSAsExpression(node) {
        const { expression, typeAnnotation } = node;
        if (inner.has(node) || text.slice(typeAnnotation.start, typeAnnotation.end) === "const") return;
        const shown = `${path}: ${text.slice(node.start, node.end).replaceAll(/\s+/g, " ")}`;
        all.push(shown);
        if (expression.type !== "TSAsExpression") return;
        inner.add(expression);
        double.push(shown);
      },
    }).visit(parseSync(path, text).program);
  }
  return { all, double };
}

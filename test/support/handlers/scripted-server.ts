// Ends for tests of what stands between callers and ends: a handler made of answers, which notes what it was asked, and
// lists in as many pages as it is told.

import type { Context, Handler, Params, Request, Result } from "../../../src/core/handler.ts";
import { methodNotFound } from "../../../src/protocol/errors.ts";

export interface ScriptedServer extends Handler {
  readonly requests: Request[];
}

export type ScriptedAnswer = Result | ((params: Params, context: Context) => Result | Promise<Result>);

/** What it has no answer for, it does not know. Its capabilities are those families for which it has a list. */
export function scriptedServer(answers: Readonly<Record<string, ScriptedAnswer>>, capabilities: object = {}): ScriptedServer {
  const asked: Request[] = [];
  const families = ["tools", "prompts", "resources"].filter((family) => `${family}/list` in answers);
  const discovered = {
    capabilities: { ...Object.fromEntries(families.map((family) => [family, { listChanged: true }])), ...capabilities },
  };
  const all: Readonly<Record<string, ScriptedAnswer>> = { "server/discover": discovered, ...answers };
  const handler = async (request: Request, context: Context): Promise<Result> => {
    asked.push(request);
    const answer = Object.hasOwn(all, request.method) ? all[request.method] : undefined;
    if (answer === undefined) throw methodNotFound(request.method);
    return typeof answer === "function" ? answer(request.params, context) : answer;
  };
  return Object.defineProperty(handler as unknown as ScriptedServer, "asked", { value: asked });
}

/** A list in pages of so many items; its cursors are numbers as text. */
export function pages(field: string, items: readonly object[], size: number): (params: Params) => Result {
  return ({ cursor }) => {
    const start = Number(cursor ?? 0);
    const next = start + size < items.length ? { nextCursor: String(start + size) } : undefined;
    return { [field]: items.slice(start, start + size), ...next };
  };
}

export function toolList(...names: readonly string[]): Result {
  return { tools: names.map((name) => ({ name, inputSchema: { type: "object" } })) };
}

/** A tool's answer that says who gave it, and by which name it was called. */
export function answerAs(who: string): (params: Params) => Result {
  return ({ name, ...rest }) => ({ content: [{ type: "text", text: `${who}: ${String(name)}` }], rest });
}

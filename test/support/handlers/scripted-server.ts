// A server made of fixed answers, for tests of the router and of middleware. It records its requests and can return
// lists in pages.

import type { Context, Handler, Params, Request, Result } from "../../../src/core/handler.ts";
import { methodNotFound } from "../../../src/protocol/errors.ts";

export interface ScriptedServer extends Handler {
  readonly requests: Request[];
}

export type ScriptedAnswer = Result | ((params: Params, context: Context) => Result | Promise<Result>);

/** A method without an answer is not found. The server has the capabilities whose lists have an answer. */
export function scriptedServer(
  answers: Readonly<Record<string, ScriptedAnswer>>,
  capabilities: object = {},
): ScriptedServer {
  const requests: Request[] = [];
  const families = ["tools", "prompts", "resources"].filter((family) => `${family}/list` in answers);
  const discovered = {
    capabilities: { ...Object.fromEntries(families.map((family) => [family, { listChanged: true }])), ...capabilities },
  };
  const all: Readonly<Record<string, ScriptedAnswer>> = { "server/discover": discovered, ...answers };
  const handler = async (request: Request, context: Context): Promise<Result> => {
    requests.push(request);
    const answer = Object.hasOwn(all, request.method) ? all[request.method] : undefined;
    if (answer === undefined) throw methodNotFound(request.method);
    return typeof answer === "function" ? answer(request.params, context) : answer;
  };
  return Object.defineProperty(handler as unknown as ScriptedServer, "requests", { value: requests });
}

/** A list in pages of `size` items; the cursors are indexes as strings. */
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

/** A tool whose result contains the name of the server and the name it was called by. */
export function answerAs(server: string): (params: Params) => Result {
  return ({ name, ...rest }) => ({ content: [{ type: "text", text: `${server}: ${String(name)}` }], rest });
}

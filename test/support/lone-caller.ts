// A caller without a wire, for tests of links: the context of one call, and all that came back by it.

import type { Context, Notification, Request, Result } from "../../src/core/handler.ts";
import { NEWEST } from "../../src/protocol/revisions/index.ts";

export interface LoneCaller {
  readonly context: Context;
  /** What it was told, in order. */
  readonly said: Notification[];
  /** What it was asked, in order. */
  readonly asked: Request[];
  /** Goes away. */
  leave(reason?: unknown): void;
}

export interface LoneCallerOptions {
  readonly name?: string;
  readonly principal?: string;
  readonly revision?: string;
  readonly answer?: (question: Request) => Result | Promise<Result>;
}

export function loneCaller(options: LoneCallerOptions = {}): LoneCaller {
  const said: Notification[] = [];
  const asked: Request[] = [];
  const stop = new AbortController();
  const context: Context = {
    revision: options.revision ?? NEWEST.name,
    caller: {
      capabilities: { elicitation: {}, sampling: {}, roots: {} },
      ...(options.name === undefined ? undefined : { info: { name: options.name, version: "1" } }),
      ...(options.principal === undefined ? undefined : { principal: options.principal }),
    },
    signal: stop.signal,
    notify: (notification) => void said.push(notification),
    ask: async (question) => {
      asked.push(question);
      if (options.answer === undefined) throw new Error("Nobody answers");
      return options.answer(question);
    },
  };
  return { context, said, asked, leave: (reason) => stop.abort(reason ?? new Error("The caller has left")) };
}

export const call = (name: string, args?: Record<string, unknown>): Request => ({
  method: "tools/call",
  params: { name, ...(args === undefined ? undefined : { arguments: args }) },
});

export const text = (said: string): Result => ({ resultType: "complete", content: [{ type: "text", text: said }] });

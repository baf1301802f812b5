// An end whose listens are in the hands of a test: it acknowledges, tells, ends and fails when it is told to.

import type { Context } from "../../src/core/context.ts";
import type { Params, Result } from "../../src/core/handler.ts";
import { type MadeEnd, madeEnd } from "./made-end.ts";

export const ACKNOWLEDGED = "notifications/subscriptions/acknowledged";

/** One listen at an end, in the hands of a test. */
export interface Listening {
  readonly filter: unknown;
  readonly context: Context;
  acknowledge(granted?: object): void;
  end(): void;
  fail(error: Error): void;
}

export interface Listenable {
  readonly end: MadeEnd;
  /** In the order in which they came. */
  readonly listens: Listening[];
}

/** An end that has tools and these resources. */
export function listenable(resources: readonly string[] = [], capabilities: object = {}): Listenable {
  const listens: Listening[] = [];
  const end = madeEnd(
    {
      "tools/list": { tools: [] },
      "resources/list": { resources: resources.map((uri) => ({ uri, name: uri })) },
      "subscriptions/listen": ({ notifications }: Params, context: Context) =>
        new Promise<Result>((resolve, reject) => {
          const acknowledge = (granted: object = notifications as object): void =>
            context.notify({ method: ACKNOWLEDGED, params: { notifications: granted } });
          const end = (): void => resolve({ resultType: "complete" });
          context.signal.addEventListener("abort", end);
          listens.push({ filter: notifications, context, acknowledge, end, fail: reject });
        }),
    },
    { resources: { listChanged: true, subscribe: true }, ...capabilities },
  );
  return { end, listens };
}

// A question reaches the operator, however long the servers take to say whose tool it is.

import { expect, it } from "vitest";
import type { Handler } from "../core/handler.ts";
import type { ConsoleHost } from "./host.ts";
import { Operator } from "./operator.ts";
import type { OperatorEvent } from "./types.ts";

it("asks the operator while the lists of servers are not known", async () => {
  const gateway: Handler = async (_request, context) => {
    const params = { mode: "form", message: "Name?", requestedSchema: { type: "object", properties: {} } };
    return { content: [], answer: await context.ask({ method: "elicitation/create", params }) };
  };
  const host = { running: { gateway, owner: undefined } } as unknown as ConsoleHost;
  const operator = new Operator({ host, serverOf: () => new Promise(() => undefined) });
  const body = { method: "tools/call", params: { name: "ask", arguments: {} } };
  const { signal } = new AbortController();
  const stream = operator.call({ body, query: new URLSearchParams(), params: {}, signal });
  const events: OperatorEvent[] = [];
  await new Promise<void>((resolve) => {
    const send = (_name: string, event: unknown): void => {
      events.push(event as OperatorEvent);
      const [question] = operator.questions;
      if (question === undefined) return;
      const answer = { question: question.id, action: "decline" };
      queueMicrotask(() => operator.answer({ body: answer } as never));
    };
    stream.open({ send, sendJson: () => undefined, end: resolve, bufferedBytes: 0 });
  });
  expect(events.map(({ type }) => type)).toEqual(["started", "question", "answered", "ended"]);
});

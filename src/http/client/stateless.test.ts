// Calls of the stateless style: how they end, and what reaches their caller before.

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { fakeCaller } from "../../../test/support/handlers/fake-client.ts";
import { answer, scriptedRequester } from "../../../test/support/http/scripted-requester.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Context, Notification, Result } from "../../core/handler.ts";
import { onCancellation } from "../../core/cancel.ts";
import { PendingCalls } from "../../dialogue/calls/pending-calls.ts";
import { UnaryBack } from "../../dialogue/stateless/back.ts";
import { NEWEST } from "../../protocol/revisions/index.ts";
import { ToolFacts } from "../../tools/facts.ts";
import { HttpConnection } from "./http-connection.ts";
import type { ClientHttpRequest } from "./requester.ts";
import { StatelessHttp } from "./stateless.ts";

const request = { method: "tools/call", params: { name: "job", _meta: { progressToken: "ours" } } };
const tick = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0);

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A call whose response is a stream of the events that the test sends. */
function startCall(timeouts: { idleMs?: number; totalMs?: number } = {}) {
  const events: string[] = [];
  let wake = (): void => undefined;
  let isEnded = false;
  async function* body(): AsyncGenerator<Uint8Array> {
    for (;;) {
      const event = events.shift();
      if (event !== undefined) yield Buffer.from(event);
      else if (isEnded) return;
      else await new Promise<void>((resolve) => (wake = resolve));
    }
  }
  const end = (): void => {
    isEnded = true;
    wake();
  };
  const server = scriptedRequester(({ signal }: ClientHttpRequest) => {
    onCancellation(signal, end);
    return { ...answer(200, "", { "content-type": "text/event-stream" }), body: body(), discard: end };
  });
  const http = new HttpConnection({ url: new URL("http://server.test/mcp"), requester: server });
  const stop = new AbortController();
  const delivered: Notification[] = [];
  const context: Context = {
    revision: NEWEST.name,
    caller: fakeCaller(),
    signal: stop.signal,
    notify: (notification) => void delivered.push(notification),
    ask: () => Promise.reject(new Error("not expected")),
  };
  const calls = new PendingCalls("The server", timeouts);
  const info = { name: "us", version: "1" };
  const options = { revision: NEWEST, info, defaultContext: context };
  const { handler } = new UnaryBack(new StatelessHttp(http, new ToolFacts()), calls, options);
  const outcome: Promise<Result | Error> = handler(request, context).catch((error: Error) => error);
  const send = (...messages: readonly object[]): Promise<unknown> => {
    for (const message of messages) events.push(`data: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`);
    wake();
    return tick();
  };
  return { calls, stop, delivered, outcome, send, isEnded: () => isEnded };
}

const log = { method: "notifications/message", params: { level: "info", data: "said" } };
const progress = (progressToken: unknown): object => ({
  method: "notifications/progress",
  params: { progressToken, progress: 1 },
});

test("messages of an abandoned stateless call are not delivered", async () => {
  const { stop, delivered, outcome, send, isEnded } = startCall();
  await tick();
  await send(log);
  stop.abort(new Error("enough"));
  await send(log, log);
  expect(await outcome).toMatchObject({ kind: "cancelled", message: "Cancelled: enough" });
  expect(delivered).toHaveLength(1);
  expect(isEnded()).toBe(true);
});

test("an error without an id on the stream of a stateless call is its response", async () => {
  const { outcome, send } = startCall();
  await send({ id: null, error: { code: -32_000, message: "not today" } });
  expect(await outcome).toMatchObject({ message: "not today" });
});

test("progress of another call is dropped, and progress of the call restarts its idle timeout", async () => {
  const { delivered, outcome, send } = startCall({ idleMs: 1_000, totalMs: 2_000 });
  await vi.advanceTimersByTimeAsync(900);
  await send(progress(7), progress(1));
  expect(delivered).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(900);
  await send(progress(1));
  await vi.advanceTimersByTimeAsync(199);
  expect(delivered).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(2);
  const message = "The server did not finish tools/call within the total timeout; raise `maxTimeoutMs`";
  expect(await outcome).toMatchObject({ kind: "timeout", mayHaveRun: true, message });
});

test("closing the connection fails its calls, and later calls are not sent", async () => {
  const { calls, outcome, isEnded } = startCall();
  await tick();
  calls.close(new ConnectionError("closed", "The connection was closed"));
  expect(await outcome).toMatchObject({ kind: "closed", mayHaveRun: true });
  expect(isEnded()).toBe(true);
  await expect(calls.ended(new AbortController().signal)).rejects.toMatchObject({ kind: "closed" });
  expect(() => calls.open("tools/list", {} as Context)).toThrow("The connection was closed");
});

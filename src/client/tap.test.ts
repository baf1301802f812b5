// Taps see every message of a connection as it is on the wire: at a server, on lines and over HTTP in both styles, and
// on a connection to a server.

import { afterEach, expect, it } from "vitest";
import type { Context } from "../core/handler.ts";
import type { ServerConnection } from "../dialogue/connect.ts";
import { serveTransport } from "../dialogue/connection.ts";
import type { Id, Message } from "../jsonrpc/message.ts";
import { newCaller } from "../protocol/caller.ts";
import { META } from "../protocol/model/base.ts";
import { NEWEST, NEWEST_SESSION } from "../protocol/revisions/index.ts";
import { serve } from "../serve.ts";
import { createServer } from "../server/server.ts";
import { memoryPair } from "../transport/memory.ts";
import { type TappedMessage, tapTransport } from "../transport/tap.ts";
import type { Receive, Transport } from "../transport/transport.ts";
import { openTarget, type Target } from "./connect.ts";

const server = createServer({ name: "tapped", version: "1.0.0" }).tool("echo", {}, ({ text }, context) => {
  context.progress(1, 2);
  return String(text);
});

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** Connects with a tap on this side, in this revision. */
async function open(target: Target, revision: string, tap: (tapped: TappedMessage) => void): Promise<ServerConnection> {
  const context: Context = {
    revision,
    caller: newCaller("stateless", {}, { name: "c", version: "1" }),
    signal: new AbortController().signal,
    notify: () => undefined,
    ask: () => Promise.reject(new Error("No answer")),
  };
  const connecting = { info: { name: "c", version: "1" }, capabilities: {}, defaultContext: context, revision, tap };
  const { opened } = await openTarget(target, {}, connecting);
  closing.push(() => opened.close());
  const params = { name: "echo", arguments: { text: "hi" }, _meta: { progressToken: 1 } };
  await opened.handler({ method: "tools/call", params }, context);
  return opened;
}

/** What passed, in short: who sent which method, or the result or error of what. */
function summary(messages: readonly TappedMessage[]): string[] {
  const asked = new Map<Id, string>();
  return messages.map(({ sender, message }) => {
    if ("method" in message) {
      if ("id" in message) asked.set(message.id, message.method);
      return `${sender} ${message.method}`;
    }
    return `${sender} ${"result" in message ? "result" : "error"} of ${asked.get(message.id ?? "") ?? "nothing"}`;
  });
}

const CALL = ["client tools/call", "server notifications/progress", "server result of tools/call"];

const EXPECTED: Readonly<Record<string, readonly string[]>> = {
  [NEWEST.name]: ["client server/discover", "server result of server/discover", ...CALL],
  [NEWEST_SESSION.name]: [
    "client initialize",
    "server result of initialize",
    "client notifications/initialized",
    ...CALL,
  ],
};

const REVISIONS = [NEWEST.name, NEWEST_SESSION.name];

it.each(REVISIONS)(
  "a tap sees all messages of a connection on lines, at both sides, in revision %s",
  async (revision) => {
    const [ours, theirs] = memoryPair();
    const atServer: TappedMessage[] = [];
    const atClient: TappedMessage[] = [];
    const served = await serveTransport(server, ours, { tap: (tapped) => atServer.push(tapped) });
    closing.push(() => served.close());
    await open(theirs, revision, (tapped) => atClient.push(tapped));
    expect(summary(atServer)).toEqual(EXPECTED[revision]);
    expect(summary(atClient)).toEqual(EXPECTED[revision]);
    expect(atServer.map(({ message }) => message)).toEqual(atClient.map(({ message }) => message));
    expect(new Set(atServer.map(({ connection }) => connection)).size).toBe(1);
  },
);

it.each(REVISIONS)("a tap sees all messages over HTTP, at both sides, in revision %s", async (revision) => {
  const atServer: TappedMessage[] = [];
  const atClient: TappedMessage[] = [];
  const front = await serve(server, { http: { port: 0, tap: (tapped: TappedMessage) => atServer.push(tapped) } });
  closing.push(() => front.close());
  await open(front.url, revision, (tapped) => atClient.push(tapped));
  // The client looks up which arguments of the tool are repeated in headers.
  const isLookup = (line: string): boolean => line.endsWith("tools/list");
  for (const messages of [atClient, atServer]) {
    expect(summary(messages).filter((line) => !isLookup(line))).toEqual(EXPECTED[revision]);
  }
  expect(summary(atServer).filter(isLookup)).toEqual(summary(atClient).filter(isLookup));
});

it("a tap sees a request that is refused over HTTP, and the error", async () => {
  const seen: TappedMessage[] = [];
  const front = await serve(server, { http: { port: 0, tap: (tapped: TappedMessage) => seen.push(tapped) } });
  closing.push(() => front.close());
  const _meta = { [META.revision]: NEWEST.name, [META.clientCapabilities]: {} };
  const message = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "echo", _meta } };
  const headers = { "content-type": "application/json", "mcp-protocol-version": NEWEST.name, "mcp-method": "other" };
  const response = await fetch(front.url, { method: "POST", headers, body: JSON.stringify(message) });
  expect(response.status).toBe(400);
  expect(summary(seen)).toEqual(["client tools/call", "server error of tools/call"]);
});

it("a tap that throws does not disturb the connection", async () => {
  const [ours, theirs] = memoryPair();
  const served = await serveTransport(server, ours);
  closing.push(() => served.close());
  const messages: Message[] = [];
  const opened = await open(theirs, NEWEST.name, ({ message }) => {
    messages.push(message);
    throw new Error("a broken tap");
  });
  expect(opened.revision).toBe(NEWEST);
  expect(messages.length).toBe(EXPECTED[NEWEST.name]?.length);
});

it("a tap sees nothing after the end of the connection", async () => {
  const messages: Message[] = [];
  let receive: Receive = () => undefined;
  const transport: Transport = {
    start: async (listener) => void (receive = listener),
    send: () => Promise.reject(new Error("the connection is closed")),
    close: async () => undefined,
  };
  const tapped = tapTransport(transport, ({ message }) => messages.push(message), "server");
  await tapped.start(() => undefined);
  receive({ kind: "end" });
  await tapped.send({ jsonrpc: "2.0", id: 1, result: {} }).catch(() => undefined);
  expect(messages).toEqual([]);
});

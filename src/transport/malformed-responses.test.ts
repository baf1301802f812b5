// Malformed responses over a transport of one's own, mostly one that reads with `decodeInbound`: the request that a
// response belongs to fails at once, on both sides, and the response is not answered.

import { createInterface } from "node:readline";
import { PassThrough } from "node:stream";
import { expect, it } from "vitest";
import { connect } from "../client/connect.ts";
import { serveTransport } from "../dialogue/connection.ts";
import { encode } from "../jsonrpc/codec.ts";
import { isRequest, type Message } from "../jsonrpc/message.ts";
import { NEWEST_SESSION, REVISIONS } from "../protocol/revisions/index.ts";
import { createServer } from "../server/server.ts";
import { decodeInbound } from "./decode-inbound.ts";
import { stdioTransport } from "./stdio.ts";
import type { Receive, Transport } from "./transport.ts";

/** A transport whose other side is a function: it gets each message and returns the texts to send back. */
function scripted(answer: (message: Message) => readonly string[]): Transport & { readonly sent: Message[] } {
  const sent: Message[] = [];
  let receive: Receive = () => undefined;
  const send = async (message: Message | readonly Message[]): Promise<void> => {
    sent.push(message as Message);
    for (const text of answer(message as Message)) queueMicrotask(() => take(text));
  };
  const take = (text: string): void => {
    const inbound = decodeInbound(text);
    if (inbound !== undefined) receive(inbound);
  };
  return {
    sent,
    start: async (taking) => void (receive = taking),
    send,
    close: async () => undefined,
  };
}

const initialized = (message: Message): string =>
  encode({
    jsonrpc: "2.0",
    id: (message as { id: number }).id,
    result: {
      protocolVersion: NEWEST_SESSION.name,
      capabilities: { tools: {} },
      serverInfo: { name: "s", version: "1" },
    },
  });

/** What a server sends in place of a response; ID is the id of the request. */
const MALFORMED = {
  "with a result that is not an object": '{"jsonrpc":"2.0","id":ID,"result":5}',
  "with both a result and an error": '{"jsonrpc":"2.0","id":ID,"result":{},"error":{"code":1,"message":"x"}}',
  "with an error without a code": '{"jsonrpc":"2.0","id":ID,"error":{"message":"x"}}',
  "without jsonrpc": '{"id":ID,"result":{}}',
  "without anything": '{"jsonrpc":"2.0","id":ID}',
  "in a batch": '[{"jsonrpc":"2.0","id":ID,"result":null}]',
};

it.each(Object.entries(MALFORMED))(
  "a malformed response of a server: %s fails the call at once",
  async (_name, text) => {
    const transport = scripted((message) => {
      if (!isRequest(message)) return [];
      if (message.method === "initialize") return [initialized(message)];
      return [text.replace("ID", JSON.stringify(message.id))];
    });
    const client = await connect(transport, { revision: NEWEST_SESSION.name, timeoutMs: 0 });
    try {
      const before = transport.sent.length;
      await expect(client.ping()).rejects.toMatchObject({
        kind: "protocol",
        message: expect.stringContaining("The server's answer is not a valid message") as string,
      });
      expect(transport.sent).toHaveLength(before + 1);
    } finally {
      await client.close();
    }
  },
);

it("a malformed response of a server differs from a malformed request with the id of a call, which is answered", async () => {
  const transport = scripted((message) => {
    if (!isRequest(message)) return [];
    if (message.method === "initialize") return [initialized(message)];
    const id = JSON.stringify(message.id);
    return [`{"jsonrpc":"2.0","id":${id},"method":7}`, `{"jsonrpc":"2.0","id":${id},"result":{}}`];
  });
  const client = await connect(transport, { revision: NEWEST_SESSION.name, timeoutMs: 0 });
  try {
    await client.ping();
    expect(transport.sent.at(-1)).toMatchObject({ error: { code: -32600 } });
  } finally {
    await client.close();
  }
});

const send = async (): Promise<void> => undefined;

/** Answers a ping with these fields, after what `first` does. */
async function ping(
  fields: object,
  first: (receive: Receive) => void,
  respond: () => Promise<void> = send,
): Promise<void> {
  let receive: Receive = () => undefined;
  const transport: Transport = {
    start: async (taking) => void (receive = taking),
    send: (message) => {
      if (!isRequest(message as Message)) return respond();
      const { id, method } = message as { id: number; method: string };
      if (method !== "initialize") first(receive);
      const answer = method === "initialize" ? JSON.parse(initialized(message as Message)) : { id, ...fields };
      receive({ kind: "message", message: answer as Message });
      return send();
    },
    close: send,
  };
  const client = await connect(transport, { revision: NEWEST_SESSION.name, timeoutMs: 0 });
  try {
    await client.ping();
  } finally {
    await client.close();
  }
}

it.each([{ error: null }, { error: "x" }, { result: null }, { result: 5 }, {}])(
  "a transport that passes on what it has not checked fails the call: %j",
  async (fields) => {
    await expect(ping(fields, () => undefined)).rejects.toMatchObject({ kind: "protocol" });
  },
);

it.each([[undefined], ["text"], [{ jsonrpc: "2.0", id: 2, result: {} }]])(
  "a transport that passes on what it has not checked ends the connection if that is not even an object with a kind: %j",
  async (value) => {
    const message = "The transport called its `receive` with";
    await expect(ping({}, (receive) => receive(value as never))).rejects.toThrow(message);
  },
);

it("a transport that passes on what it has not checked may throw in place of rejecting, without an unhandled rejection", async () => {
  const unhandled: unknown[] = [];
  const onUnhandled = (error: unknown): void => void unhandled.push(error);
  process.on("unhandledRejection", onUnhandled);
  try {
    const reply = (): never => {
      throw new Error("closed");
    };
    await ping(
      { result: {} },
      (receive) => {
        for (const method of ["ping", "roots/list"]) {
          receive({ kind: "message", message: { jsonrpc: "2.0", id: method, method, params: {} } });
        }
      },
      reply,
    );
    let receive: Receive = () => undefined;
    const start: Transport["start"] = async (taking) => void (receive = taking);
    const served = await serveTransport(createServer({ name: "s", version: "1" }), {
      start,
      send: reply,
      close: send,
    });
    receive({ kind: "message", message: { jsonrpc: "2.0", id: 1, method: "ping", params: {} } });
    await served.close();
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    process.off("unhandledRejection", onUnhandled);
  }
  expect(unhandled).toEqual([]);
});

const asking = createServer({ name: "s", version: "1" }).tool("ask", {}, async (_args, { ask }) => {
  const failure = await ask({ method: "roots/list", params: {} }).catch((error: unknown) => error);
  return (failure as Error).message;
});
const request = (id: number, method: string, params: object): string =>
  `${encode({ jsonrpc: "2.0", id, method, params: params as never })}\n`;

it.each([
  ["alone", NEWEST_SESSION.name, (response: string) => response],
  ["in a batch", REVISIONS.find(({ batches }) => batches)?.name, (response: string) => `[${response}]`],
])(
  "a malformed response of a client: %s fails the request of the server, and is not answered",
  async (_name, protocolVersion, wrap) => {
    const [input, output] = [new PassThrough(), new PassThrough()];
    const served = await serveTransport(asking, stdioTransport({ input, output }));
    try {
      const clientInfo = { name: "c", version: "1" };
      input.write(request(1, "initialize", { protocolVersion, capabilities: { roots: {} }, clientInfo }));
      const lines = createInterface({ input: output })[Symbol.asyncIterator]();
      const next = async (): Promise<object> => JSON.parse(String((await lines.next()).value)) as object;
      expect(await next()).toMatchObject({ id: 1, result: { protocolVersion } });
      input.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
      input.write(request(2, "tools/call", { name: "ask", arguments: {} }));
      const question = await next();
      expect(question).toMatchObject({ method: "roots/list" });
      input.write(`${wrap(JSON.stringify({ ...question, method: undefined, params: undefined, result: 5 }))}\n`);
      const text = "The client's answer is not a valid message";
      expect(await next()).toMatchObject({ id: 2, result: { content: [{ text }] } });
    } finally {
      await served.close();
    }
  },
);

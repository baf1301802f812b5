// A server that sends requests without end and does not take the answers: the number of connections stays bounded, its
// stream is not read on, and every request is answered once the server takes answers again.

import { describe, expect, it } from "vitest";
import type { Client, ConnectOptions } from "../../../src/client/index.ts";
import type { Json, RawRequest } from "../../support/http/raw-server.ts";
import type { FaultyServer, FaultyServerOptions } from "../../support/faulty-server/server.ts";
import { IS_LONG } from "../../support/thoroughness.ts";
import { connectTo, LEGACY_SSE, startServer, STYLES, textOf } from "./fixture.ts";

const KINDS: readonly [string, FaultyServerOptions][] = [
  ["sessions", STYLES["sessions"] ?? {}],
  ["legacy HTTP+SSE", LEGACY_SSE],
];
const PINGS = 600;
const MAX_ANSWERS = 64;
const MAX_OPEN_REQUESTS = 256;

function send(stream: RawRequest, request: Json): void {
  stream.chunk(`data: ${JSON.stringify({ jsonrpc: "2.0", ...request })}\n\n`);
}

/** Connects, and waits for the stream on which the server sends its requests. */
async function connectWithStream(
  server: FaultyServer,
  how: ConnectOptions = {},
): Promise<{ client: Client; stream: RawRequest }> {
  const opened = new Promise<RawRequest>((resolve) => {
    server.inject("GET", async (request, serve) => {
      await serve();
      resolve(request);
    });
  });
  const client = await connectTo(server, how);
  return { client, stream: await opened };
}

describe.each(KINDS)("endless requests of a server (%s)", (_, options) => {
  it.runIf(IS_LONG)(
    "endless requests of a server take a bounded number of connections, and are answered later",
    async () => {
      const server = await startServer(options);
      const held: RawRequest[] = [];
      let isHolding = true;
      let most = 0;
      server.inject(
        "response",
        (request) => {
          most = Math.max(most, server.server.connections);
          if (isHolding) held.push(request);
          else request.answer(202);
        },
        Number.POSITIVE_INFINITY,
      );
      const { client, stream } = await connectWithStream(server);
      for (let id = 1; id <= PINGS; id += 1) send(stream, { id, method: "ping" });
      await server.until(() => held.length >= MAX_ANSWERS);
      // A call goes through, on a connection of its own.
      if (options.style === "session") expect(textOf(await client.callTool("echo", { key: "a" }))).not.toBe("");
      expect(held).toHaveLength(MAX_ANSWERS);
      isHolding = false;
      for (const request of held) request.answer(202);
      await server.until(() => server.count("response") === PINGS);
      // The answers, the stream, the call, and idle connections of earlier requests.
      expect(most).toBeLessThanOrEqual(MAX_ANSWERS + 8);
      const ids = server.requests.filter((one) => one.operation === "response").map((one) => Number(one.json?.["id"]));
      expect(new Set(ids).size).toBe(PINGS);
    },
  );

  it("endless requests of a server are refused while too many of them wait for the user", async () => {
    const server = await startServer(options);
    let answer = (): void => undefined;
    const answered = new Promise<void>((resolve) => (answer = resolve));
    let asked = 0;
    const elicit = async (): Promise<{ action: "decline" }> => {
      asked += 1;
      await answered;
      return { action: "decline" };
    };
    const { stream } = await connectWithStream(server, { elicit });
    const params = { message: "?", requestedSchema: { type: "object", properties: {} } };
    for (let id = 1; id <= 300; id += 1) send(stream, { id, method: "elicitation/create", params });
    await server.until(() => server.count("response") === 300 - MAX_OPEN_REQUESTS);
    expect(asked).toBe(MAX_OPEN_REQUESTS);
    for (const { id, error } of server.backend.responses) {
      expect(id).toBeGreaterThan(MAX_OPEN_REQUESTS);
      expect(error).toMatchObject({ message: "256 requests of this server are not answered yet" });
    }
    answer();
    await server.until(() => server.count("response") === 300);
    expect(server.backend.responses.filter(({ result }) => result !== undefined)).toHaveLength(MAX_OPEN_REQUESTS);
  });
});

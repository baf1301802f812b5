// The body of a node:http response: read whole, read as a stream, discarded, or broken.

import { getEventListeners } from "node:events";
import { createServer } from "node:http";
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import {
  readText,
  closeAll,
  untilClosed,
  failure,
  closeLater,
  listen,
} from "../../../test/support/http/local-servers.ts";
import { sampleOf } from "../../../test/support/thoroughness.ts";
import { nodeRequester } from "./node-requester.ts";
import type { HttpResponse, ClientHttpRequest } from "./requester.ts";

afterEach(closeAll);

interface Harness {
  request(request?: Partial<ClientHttpRequest>): Promise<HttpResponse>;
  readonly sockets: Socket[];
}

/** A server, and a requester for it. */
async function startServer(listener: RequestListener): Promise<Harness> {
  const server = createServer(listener);
  const sockets: Socket[] = [];
  server.on("connection", (socket) => sockets.push(socket));
  const url = await listen(server);
  const requester = nodeRequester();
  closeLater(() => requester.close());
  return { request: (request = {}) => requester({ method: "GET", url, headers: {}, ...request }), sockets };
}

/** A raw response, byte for byte. */
const raw =
  (act: (socket: Socket) => void): RequestListener =>
  ({ socket }: IncomingMessage) =>
    act(socket);

/** Lets received data be handled. */
async function settle(): Promise<void> {
  for (let count = 0; count < 5; count += 1) await new Promise(setImmediate);
}

const WAYS: readonly [string, (response: HttpResponse) => Promise<string>][] = [
  ["as text", (response) => response.text(1_000_000)],
  ["by its bytes", (response) => response.read(1_000_000, (bytes) => bytes.toString())],
  ["as a stream", (response) => readText(response.body)],
];

describe.each(WAYS)("a body that is read %s", (_way, read) => {
  it.each<[string, (response: ServerResponse) => void]>([
    ["in one piece", (response) => response.end("h\u00e9llo")],
    [
      "in pieces that split a character",
      (response) => {
        const bytes = Buffer.from("h\u00e9llo");
        response.write(bytes.subarray(0, 2));
        setImmediate(() => response.end(bytes.subarray(2)));
      },
    ],
    ["with its length", (response) => response.writeHead(200, { "content-length": 6 }).end("h\u00e9llo")],
    [
      "when the connection ends",
      (response) => {
        response.socket?.end("HTTP/1.0 200 OK\r\n\r\nh\u00e9llo");
      },
    ],
  ])("a body that is read is complete %s", async (_how, respond) => {
    const { request } = await startServer((_request, response) => respond(response));
    expect(await read(await request())).toBe("h\u00e9llo");
  });

  it("a body that is read may be empty", async () => {
    const { request } = await startServer((_request, response) => response.writeHead(202).end());
    const response = await request({ method: "POST", body: "{}" });
    expect(response.status).toBe(202);
    expect(await read(response)).toBe("");
  });

  it("a body that is read is complete if it is read late", async () => {
    const { request } = await startServer((_request, response) => response.end("late"));
    const response = await request();
    await settle();
    expect(await read(response)).toBe("late");
  });

  it.each([
    ["of its length", (socket: Socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc")],
    [
      "of its chunks",
      (socket: Socket) => socket.end("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n"),
    ],
    ["of a chunk", (socket: Socket) => socket.end("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nabc")],
    [
      "by a reset",
      (socket: Socket) => {
        socket.write("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc", () => socket.resetAndDestroy());
      },
    ],
  ])("a body that is read rejects if the connection breaks before the end %s", async (_what, act) => {
    const { request } = await startServer(raw(act));
    const response = await request();
    const error = await failure(read(response));
    expect(error).toMatchObject({ kind: "closed", mayHaveRun: true });
    expect(error.message).toMatch(/^The connection to 127\.0\.0\.1:\d+ broke before the end of the response/);
  });

  it("a body that is read rejects if the data is no longer valid HTTP", async () => {
    const { request } = await startServer(
      raw((socket) => socket.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnonsense\r\n")),
    );
    expect(await failure(request().then(read))).toMatchObject({ mayHaveRun: true });
  });

  it("a body that is read rejects when its signal is aborted, and leaves no listener", async () => {
    const ending = new AbortController();
    const { request, sockets } = await startServer((_request, response) => response.write("abc"));
    const response = await request({ signal: ending.signal });
    const reading = failure(read(response));
    ending.abort(new Error("enough"));
    expect(await reading).toMatchObject({ kind: "cancelled", mayHaveRun: true, cause: { message: "enough" } });
    await untilClosed(sockets[0]);
    expect(getEventListeners(ending.signal, "abort")).toHaveLength(0);
  });

  it("a body that is read rejects if its signal was aborted before it was read", async () => {
    const ending = new AbortController();
    const { request, sockets } = await startServer((_request, response) => response.write("abc"));
    const response = await request({ signal: ending.signal });
    ending.abort();
    await untilClosed(sockets[0]);
    expect(await failure(read(response))).toMatchObject({ kind: "cancelled" });
  });

  it("a body that is read leaves its connection for the next request", async () => {
    const { request, sockets } = await startServer((_request, response) => response.end("x".repeat(200_000)));
    for (let count = 0; count < 3; count += 1) expect(await read(await request())).toHaveLength(200_000);
    expect(sockets).toHaveLength(1);
  });
});

it("text may be as long as the limit, counted in bytes", async () => {
  const { request } = await startServer((_request, response) => response.end("\u20ac".repeat(10)));
  expect(await (await request()).text(30)).toHaveLength(10);
});

it.each<[string, (response: ServerResponse) => void]>(
  sampleOf(1, [
    [
      "never ends",
      (response) => {
        response.on("error", () => {});
        const more = (): void => {
          while (!response.destroyed && response.write("x".repeat(20))) continue;
          response.once("drain", more);
        };
        more();
      },
    ],
    ["declares it", (response) => response.writeHead(200, { "content-length": 31 }).end("x".repeat(31))],
    ["does not declare it", (response) => response.end("x".repeat(31))],
  ]),
)("text that is longer and %s is not read, and its connection is closed", async (_how, respond) => {
  const { request, sockets } = await startServer((_request, response) => respond(response));
  const error = await failure((await request()).text(30));
  expect(error).toMatchObject({ kind: "http" });
  expect(error.message).toContain("longer than the limit of 30 bytes");
  await untilClosed(sockets[0]);
});

it("text has no byte order mark", async () => {
  const { request } = await startServer((_request, response) => response.end("\uFEFF{}"));
  expect(await (await request()).text(10)).toBe("{}");
});

it("a parsed body is returned, and the bytes are released", async () => {
  const { request } = await startServer((_request, response) => response.end("x".repeat(500_000)));
  let seen: Buffer | undefined;
  const made = await (await request()).read(500_000, (bytes) => (seen = bytes).length);
  expect([made, seen?.length]).toEqual([500_000, 0]);
});

it("a parsed body rejects with the error of the parser", async () => {
  const { request, sockets } = await startServer((_request, response) => response.end("x".repeat(500_000)));
  const reading = (await request()).read(500_000, () => {
    throw new TypeError("no use");
  });
  await expect(reading).rejects.toThrow("no use");
  expect(await (await request()).text(500_000)).toHaveLength(500_000);
  expect(sockets).toHaveLength(1);
});

it("a body that is read as a stream is complete if it is long, and each chunk is valid until the next one is requested", async () => {
  const bytes = Buffer.from(Array.from({ length: 500_000 }, (_, at) => at).join(" "));
  const { request } = await startServer((_request, response) => response.end(bytes));
  const copies: Buffer[] = [];
  const chunks: Uint8Array[] = [];
  for await (const chunk of (await request()).body) {
    await new Promise(setImmediate);
    copies.push(Buffer.from(chunk));
    chunks.push(chunk);
  }
  expect(Buffer.concat(copies).equals(bytes)).toBe(true);
  expect(chunks.reduce((sum, { length }) => sum + length, 0)).toBeLessThan(bytes.length / 2);
});

it("a body that is read as a stream is paused while it is not read", async () => {
  const total = 64 * 1024 * 1024;
  const chunk = Buffer.alloc(64 * 1024);
  let sent = 0;
  const { request } = await startServer((_request, response) => {
    const more = (): void => {
      while (sent < total) {
        sent += chunk.length;
        if (!response.write(chunk)) return void response.once("drain", more);
      }
      response.end();
    };
    more();
  });
  let received = 0;
  let most = 0;
  for await (const { length } of (await request()).body) {
    received += length;
    most = Math.max(most, sent - received);
    await new Promise(setImmediate);
  }
  expect(received).toBe(total);
  // Both sides of a connection buffer some megabytes.
  expect(most).toBeLessThan(total / 4);
});

it("a body that is read as a stream delivers what arrived before a break, and then the error", async () => {
  const { request } = await startServer((_request, response) => {
    response.write("abc");
    setImmediate(() => response.destroy());
  });
  const reader = (await request()).body[Symbol.asyncIterator]();
  const { value } = await reader.next();
  expect(Buffer.from(value as Uint8Array).toString()).toBe("abc");
  await failure(reader.next());
});

it("a body that is read as a stream closes its connection if the reader stops", async () => {
  const { request, sockets } = await startServer((_request, response) => response.write("abc"));
  for await (const chunk of (await request()).body) {
    expect(chunk).toHaveLength(3);
    break;
  }
  await untilClosed(sockets[0]);
});

it("a discarded body leaves its connection for the next request if it is short", async () => {
  const { request, sockets } = await startServer((request, response) => {
    if (request.method === "POST") response.writeHead(202).end();
    else response.end("not wanted");
  });
  for (const method of ["POST", "GET", "GET"] as const) {
    (await request({ method })).discard();
    await settle();
  }
  expect(sockets).toHaveLength(1);
});

it.each<[string, (response: ServerResponse) => void]>([
  ["an event stream", (response) => response.writeHead(200, { "content-type": "text/event-stream" }).write(":\n\n")],
  ["long", (response) => response.writeHead(200, { "content-length": 1_000_000 }).write("x")],
  ["longer than it looked", (response) => response.write("x".repeat(100_000))],
  ["slow to end", (response) => response.write("x")],
])("a discarded body closes its connection if it is %s", async (_what, respond) => {
  const { request, sockets } = await startServer((_request, response) => respond(response));
  const before = await request();
  const over = untilClosed(sockets[0]);
  before.discard();
  await over;
});

it("a discarded body keeps the connection of an SSE stream that ends at once", async () => {
  const { request, sockets } = await startServer((_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" }).write("data: {}\n\n");
    setImmediate(() => response.end());
  });
  for (let count = 0; count < 3; count += 1) {
    const response = await request();
    const reader = response.body[Symbol.asyncIterator]();
    await reader.next();
    response.discard();
    expect(await reader.next()).toMatchObject({ done: true });
    await settle();
  }
  expect(sockets).toHaveLength(1);
});

it("a discarded body may be one that is being read", async () => {
  const { request, sockets } = await startServer((_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" }).write(":\n\n");
  });
  const response = await request();
  const reader = response.body[Symbol.asyncIterator]();
  await reader.next();
  const waiting = failure(reader.next());
  response.discard();
  expect(await waiting).toMatchObject({ kind: "closed" });
  await untilClosed(sockets[0]);
});

it("a discarded body may break without harm", async () => {
  const { request, sockets } = await startServer(
    raw((socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc")),
  );
  const response = await request();
  response.discard();
  await untilClosed(sockets[0]);
  response.discard();
  expect(response.status).toBe(200);
});

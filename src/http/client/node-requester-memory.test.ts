// Memory that is freed while a long body is read, without losing any of the body.

import { createHash } from "node:crypto";
import { once } from "node:events";
import { Agent, createServer, request } from "node:http";
import type { ClientRequest, IncomingMessage, ServerResponse } from "node:http";
import { Agent as SafeAgent, createServer as createSafeServer, request as requestSafely } from "node:https";
import type { Socket } from "node:net";
import { PassThrough } from "node:stream";
import { afterEach, describe, expect, it } from "vitest";
import { cert, key } from "../../../test/support/http/tls-certificate.ts";
import { closeAll, closeLater, listen } from "../../../test/support/http/local-servers.ts";
import { ChunkReclaimer } from "./node-response.ts";

afterEach(closeAll);

const LONG = Buffer.from(Array.from({ length: 300_000 }, (_, at) => at).join(" "));
const SHORT = LONG.subarray(0, 200_000);
/** The most that is left of a long body: what came before it counted as long, and small chunks. */
const LEFT = 500_000;

const hashOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

function answer({ url }: IncomingMessage, response: ServerResponse): void {
  const bytes = url === "/short" ? SHORT : LONG;
  if (url !== "/pieces") response.setHeader("content-length", bytes.length);
  for (let at = 0; at < bytes.length; at += 30_000) response.write(bytes.subarray(at, at + 30_000));
  response.end();
}

async function plain(): Promise<(path: string) => ClientRequest> {
  const url = await listen(createServer(answer));
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  closeLater(() => agent.destroy());
  return (path) => request(new URL(path, url), { agent });
}

async function safe(): Promise<(path: string) => ClientRequest> {
  const url = await listen(createSafeServer({ key, cert }, answer), "https");
  const agent = new SafeAgent({ keepAlive: true, maxSockets: 1, ca: cert });
  closeLater(() => agent.destroy());
  return (path) => requestSafely(new URL(path, url), { agent });
}

interface Read {
  readonly hash: string;
  /** Bytes still attached when all is read: of body chunks, and of socket chunks. */
  readonly left: { readonly body: number; readonly socket: number };
  readonly socket: Socket;
}

async function read(asked: ClientRequest): Promise<Read> {
  const received: Buffer[] = [];
  const hear = (chunk: Buffer): unknown => received.push(chunk);
  asked.once("socket", (socket) => socket.on("data", hear));
  asked.end();
  const [response] = (await once(asked, "response")) as [IncomingMessage];
  const { socket } = response;
  const spent = new ChunkReclaimer(response);
  const chunks: Buffer[] = [];
  const hash = createHash("sha256");
  response.on("data", (chunk: Buffer) => {
    hash.update(chunk);
    chunks.push(chunk);
    spent.add(chunk);
  });
  await once(response, "end");
  socket.removeListener("data", hear);
  const lengthOf = (all: readonly Buffer[]): number => all.reduce((sum, { length }) => sum + length, 0);
  return { hash: hash.digest("hex"), left: { body: lengthOf(chunks), socket: lengthOf(received) }, socket };
}

describe.each([
  ["a plain connection", plain],
  ["a TLS connection", safe],
])("memory of a body from %s", (_, open) => {
  it.each(["/whole", "/pieces"])("memory of a body is freed if it is long (%s)", async (path) => {
    const ask = await open();
    const { hash, left } = await read(ask(path));
    expect(hash).toBe(hashOf(LONG));
    expect(left.body).toBeLessThan(LEFT);
    expect(left.socket).toBeLessThan(LEFT);
  });

  it("memory of a body is kept if it is short", async () => {
    const ask = await open();
    const { hash, left } = await read(ask("/short"));
    expect(hash).toBe(hashOf(SHORT));
    expect(left.body).toBe(SHORT.length);
    expect(left.socket).toBeGreaterThan(SHORT.length);
  });

  it("memory of a body is complete for many requests on one connection", async () => {
    const ask = await open();
    const sockets = new Set<Socket>();
    for (const path of ["/whole", "/short", "/pieces", "/whole"]) {
      const { hash, socket } = await read(ask(path));
      expect(hash).toBe(hashOf(path === "/short" ? SHORT : LONG));
      sockets.add(socket);
    }
    expect(sockets.size).toBe(1);
  });
});

const CHUNK = 64 * 1024;

/** A response that already counts as long, and its socket. */
function long(
  bytesRead: number,
  response: PassThrough = new PassThrough(),
): { response: PassThrough; socket: PassThrough; spent: ChunkReclaimer } {
  const socket = Object.assign(new PassThrough(), { bytesRead });
  Object.assign(
    response.on("data", () => undefined),
    { socket },
  );
  const spent = new ChunkReclaimer(response as unknown as IncomingMessage);
  for (let count = 0; count < 4; count += 1) spent.add(Buffer.alloc(CHUNK));
  return { response, socket, spent };
}

it("a socket chunk is freed if the system has read it", () => {
  const { socket } = long(4 * CHUNK);
  const chunk = Buffer.alloc(CHUNK);
  socket.emit("data", chunk);
  expect(chunk).toHaveLength(0);
});

it("a socket chunk is kept if the system has not read it", () => {
  const { socket } = long(0);
  const chunk = Buffer.alloc(CHUNK);
  socket.emit("data", chunk);
  expect(chunk).toHaveLength(CHUNK);
});

it("a socket chunk is kept if the body chunk shares its memory", () => {
  const { response, socket } = long(4 * CHUNK);
  const chunk = Buffer.alloc(CHUNK);
  response.emit("data", chunk.subarray(10));
  socket.emit("data", chunk);
  expect(chunk).toHaveLength(CHUNK);
});

it("a socket chunk is kept while part of the body is buffered", () => {
  const { response, socket } = long(4 * CHUNK);
  response.pause();
  response.push(Buffer.from("waits"));
  const chunk = Buffer.alloc(CHUNK);
  socket.emit("data", chunk);
  expect(chunk).toHaveLength(CHUNK);
});

it.each(["end", "close"])("a socket chunk is kept after the %s of the body", (name) => {
  const { response, socket } = long(4 * CHUNK);
  response.emit(name);
  const chunk = Buffer.alloc(CHUNK);
  socket.emit("data", chunk);
  expect(chunk).toHaveLength(CHUNK);
  expect(socket.listenerCount("data")).toBe(0);
});

it("a socket chunk is not watched if the body ended before it was long", async () => {
  const over = new PassThrough();
  over.resume().end();
  await once(over, "end");
  const { socket } = long(4 * CHUNK, over);
  expect(socket.listenerCount("data")).toBe(0);
});

it("a socket chunk is kept if others share its memory", () => {
  const { spent } = long(0);
  const shared = Buffer.alloc(2 * CHUNK);
  spent.add(shared.subarray(0, CHUNK));
  expect(shared).toHaveLength(2 * CHUNK);
});

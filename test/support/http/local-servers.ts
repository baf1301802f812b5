// What tests of our own requests over HTTP share: servers that go when the test is over, and the error of what must
// fail. How such a server answers is each test's own.

import { once } from "node:events";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { expect } from "vitest";
import type { ConnectionError } from "../../../src/core/errors.ts";
import type { ClientHttpRequest } from "../../../src/http/client/requester.ts";

const closing: (() => unknown)[] = [];

/** At the end of the test, before what was put here earlier. */
export function later(close: () => unknown): void {
  closing.unshift(close);
}

export async function closeAll(): Promise<void> {
  for (const close of closing.splice(0)) await close();
}

/** On a port of its own; gone at the end of the test, with its connections. */
export async function listen(server: Server, scheme = "http"): Promise<URL> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    // A reset is an end like any other here.
    socket.on("error", () => {}).once("close", () => sockets.delete(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  later(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, "close");
  });
  return new URL(`${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
}

/** When a connection is over, however it ended. */
export function closed(socket: Socket | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (socket === undefined || socket.closed) resolve();
    else socket.once("close", () => resolve());
  });
}

/** The error of what must fail with a ConnectionError. */
export async function failure(promise: Promise<unknown>): Promise<ConnectionError> {
  const error: unknown = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(error).toMatchObject({ name: "ConnectionError" });
  return error as ConnectionError;
}

export async function all(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

export interface Seen {
  readonly socket: Socket;
  /** Of all connections, from 1. */
  readonly connection: number;
  /** By this connection, from 1. */
  readonly turn: number;
  readonly text: string;
}

/** An end that answers by hand. It is asked with small requests, each of which comes in one piece. */
export async function handEnd(answer: (seen: Seen) => void): Promise<{ url: URL; seen: Seen[] }> {
  const seen: Seen[] = [];
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    const connection = connections;
    let turn = 0;
    socket.on("data", (chunk) => {
      turn += 1;
      const one = { socket, connection, turn, text: chunk.toString() };
      seen.push(one);
      answer(one);
    });
  });
  return { url: await listen(server), seen };
}

export const OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

export function get(url: URL, rest: Partial<ClientHttpRequest> = {}): ClientHttpRequest {
  return { method: "GET", url, headers: {}, ...rest };
}

export function post(url: URL, rest: Partial<ClientHttpRequest> = {}): ClientHttpRequest {
  return { method: "POST", url, headers: {}, body: "{}", ...rest };
}

// For tests of the HTTP client: servers that are closed after the test, requests to send, and the error of a failure.

import { once } from "node:events";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { expect } from "vitest";
import type { ConnectionError } from "../../../src/core/errors.ts";
import type { ClientHttpRequest } from "../../../src/http/client/requester.ts";

const closing: (() => unknown)[] = [];

/** Closes something in closeAll(), the last one first. */
export function closeLater(close: () => unknown): void {
  closing.unshift(close);
}

export async function closeAll(): Promise<void> {
  for (const close of closing.splice(0)) await close();
}

/** Listens on a free port; closeAll() closes the server and its connections. */
export async function listen(server: Server, scheme = "http"): Promise<URL> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    // A reset counts as a close.
    socket.on("error", () => {}).once("close", () => sockets.delete(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closeLater(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, "close");
  });
  return new URL(`${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
}

/** Resolves when the connection is closed, for any reason. */
export function untilClosed(socket: Socket | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (socket === undefined || socket.closed) resolve();
    else socket.once("close", () => resolve());
  });
}

/** The error of a promise that must reject with a ConnectionError. */
export async function failure(promise: Promise<unknown>): Promise<ConnectionError> {
  const error: unknown = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(error).toMatchObject({ name: "ConnectionError" });
  return error as ConnectionError;
}

export async function readText(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

export interface ReceivedRequest {
  readonly socket: Socket;
  /** The number of the connection, from 1. */
  readonly connection: number;
  /** The number of the request on its connection, from 1. */
  readonly index: number;
  readonly text: string;
}

/** A server whose answers the test writes. Requests must be small enough to arrive in one piece. */
export async function manualServer(
  answer: (request: ReceivedRequest) => void,
): Promise<{ url: URL; requests: ReceivedRequest[] }> {
  const requests: ReceivedRequest[] = [];
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    const connection = connections;
    let index = 0;
    socket.on("data", (chunk) => {
      index += 1;
      const request = { socket, connection, index, text: chunk.toString() };
      requests.push(request);
      answer(request);
    });
  });
  return { url: await listen(server), requests };
}

export const OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

export function get(url: URL, rest: Partial<ClientHttpRequest> = {}): ClientHttpRequest {
  return { method: "GET", url, headers: {}, ...rest };
}

export function post(url: URL, rest: Partial<ClientHttpRequest> = {}): ClientHttpRequest {
  return { method: "POST", url, headers: {}, body: "{}", ...rest };
}

// Listens on a port with node:http: limits the time and size of request heads, answers malformed HTTP, and closes
// gracefully. Passes each well-formed request to `onRequest`.

import { createServer, STATUS_CODES } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { Server as NetServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { ConnectionError } from "../../core/errors.ts";
import { isLoopback, urlHost, withoutBrackets } from "../../core/hosts.ts";
import { NodeHttpRequest } from "./node-request.ts";
import type { LimitValues } from "./options.ts";

export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  readonly limits: ListenLimits;
  /** Called for each request. Requests of one connection come in the order in which they were sent. */
  readonly onRequest: (request: NodeHttpRequest) => void;
}

export type ListenLimits = Pick<LimitValues, "headerBytes" | "headerMs" | "bodyMs">;

export interface Listener {
  /** `http://host:port`, reachable from this machine. */
  readonly url: string;
  readonly port: number;
  /** Stops accepting connections. Closes idle ones at once, and others after their response or after `graceMs`. */
  close(graceMs: number): Promise<void>;
}

/** Longer than most proxies keep idle connections, so that we do not close one that a proxy is about to use. */
const KEEP_ALIVE_TIMEOUT_MS = 65_000;

/** How long a client has to read the response to a malformed request. */
const LINGER_MS = 2_000;

/** Each open connection with its latest response. */
type Connections = Map<Duplex, ServerResponse | undefined>;

export async function listen(options: ListenOptions): Promise<Listener> {
  const { host, port, limits, onRequest } = options;
  const connections: Connections = new Map();
  let isClosing = false;
  const server = createServer({
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.headerMs,
    requestTimeout: limits.headerMs + limits.bodyMs,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    connectionsCheckingInterval: Math.max(50, Math.min(limits.headerMs, limits.bodyMs, 4_000) / 4),
    noDelay: true,
    // TCP keep-alive: the operating system detects clients whose network is gone.
    keepAlive: true,
    joinDuplicateHeaders: true,
    // The guard itself rejects a request without Host, with an error message.
    requireHostHeader: false,
  });
  // By default, Node silently drops headers above a certain number. `headerBytes` limits them instead.
  server.maxHeadersCount = 0;
  const take = (request: IncomingMessage, response: ServerResponse, awaitsContinue = false): void => {
    connections.set(request.socket, response);
    if (isClosing) closeAfter(response);
    onRequest(new NodeHttpRequest(request, response, awaitsContinue));
  };
  server.on("request", take);
  server.on("checkContinue", (request: IncomingMessage, response: ServerResponse) => take(request, response, true));
  server.on("connection", (socket: Socket) => {
    connections.set(socket, undefined);
    socket.once("close", () => connections.delete(socket));
  });
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    answerMalformed(error, socket, connections.get(socket));
  });
  const address = await bind(server, host, port);
  // An error while accepting a connection must not end the existing ones.
  server.on("error", () => {});
  const close = async (graceMs: number): Promise<void> => {
    isClosing = true;
    await shut(server, connections, graceMs);
  };
  let closing: Promise<void> | undefined;
  return {
    url: `http://${displayHost(host, address.address)}:${address.port}`,
    port: address.port,
    close: (graceMs) => (closing ??= close(graceMs)),
  };
}

function bind(server: Server, host: string, port: number): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException): void => {
      reject(new ConnectionError("refused", listenErrorText(error, host, port), { cause: error }));
    };
    server.once("error", failed);
    server.listen({ port, host: withoutBrackets(host) }, () => {
      server.off("error", failed);
      resolve(server.address() as AddressInfo);
    });
  });
}

function listenErrorText({ code, message }: NodeJS.ErrnoException, host: string, port: number): string {
  switch (code) {
    case "EADDRINUSE":
      return (
        `Port ${port} on ${host} is in use: stop the program that uses it, or choose another port ` +
        "(0 picks a free one)."
      );
    case "EACCES":
      return `Listening on port ${port} of ${host} is not permitted: choose port 1024 or above.`;
    case "EADDRNOTAVAIL":
      return `${host} is not an address of this machine, so port ${port} cannot be opened on it: choose another host.`;
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `The host ${host} has no address, so port ${port} cannot be opened on it: choose another host.`;
    default:
      return `Port ${port} on ${host} cannot be opened: ${message}.`;
  }
}

/**
 * The host for `url`. For a wildcard such as 0.0.0.0, this is the loopback address; for a loopback name, the actual
 * address. Any other name is used unchanged, since the guard rejects the address behind it.
 */
function displayHost(host: string, address: string): string {
  const configured = urlHost(host);
  const actual = urlHost(address);
  if (actual === "0.0.0.0") return "127.0.0.1";
  if (actual === "[::]") return "[::1]";
  return isLoopback(actual) || configured === "" ? actual : configured;
}

/** Answers data that is not a valid HTTP request, unless the client could mistake the answer for another response. */
function answerMalformed(error: NodeJS.ErrnoException, socket: Duplex, latest: ServerResponse | undefined): void {
  const isBusy = latest !== undefined && !latest.writableFinished;
  if (socket.writableEnded) return;
  // An answer sent before or inside the response to an earlier request would be taken for that response.
  if (!socket.writable || error.code === "ECONNRESET" || (isBusy && (latest.headersSent || latest.req.complete))) {
    socket.destroy();
    return;
  }
  const status = MALFORMED_STATUSES.get(error.code) ?? 400;
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`;
  // The connection stays open for a while and ignores incoming data. If it were closed at once, it would be reset, and
  // the response would be lost.
  socket.end(head);
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once("close", () => clearTimeout(timer));
}

/** By the code of the error; all others are a 400. */
const MALFORMED_STATUSES: ReadonlyMap<string | undefined, number> = new Map([
  ["HPE_HEADER_OVERFLOW", 431],
  ["HPE_CHUNK_EXTENSIONS_OVERFLOW", 413],
  ["ERR_HTTP_REQUEST_TIMEOUT", 408],
]);

async function shut(server: Server, connections: Connections, graceMs: number): Promise<void> {
  // Not http.Server.close: it destroys connections whose response is written but not yet flushed.
  const closed = new Promise<void>((resolve) => {
    if (server instanceof NetServer) NetServer.prototype.close.call(server, () => resolve());
    // In Bun, an HTTP server is not a server of node:net.
    else (server as Server).close(() => resolve());
  });
  for (const [socket, response] of connections) {
    if (response === undefined || response.writableFinished) socket.destroy();
    else closeAfter(response);
  }
  const timer = setTimeout(() => {
    for (const socket of connections.keys()) socket.destroy();
  }, graceMs);
  await closed;
  clearTimeout(timer);
  // The server forgets a connection before its "close" listeners have run.
  await Promise.all([...connections.keys()].map((socket) => new Promise((resolve) => socket.once("close", resolve))));
  // Releases the other resources that http.Server.close releases.
  server.close();
}

/** Closes the connection after this response. */
function closeAfter(response: ServerResponse): void {
  if (!response.headersSent) response.shouldKeepAlive = false;
  const { socket } = response.req;
  response.once("close", () => socket.destroySoon());
}

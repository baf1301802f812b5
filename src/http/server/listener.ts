// A port that is listened on: node:http with limits on how long and how large a head may be, and an end that lets
// answers finish. A caller that breaks HTTP itself is answered here, because no visit ever comes of it. Everything
// else is for whoever gets the visits.

import { createServer, STATUS_CODES } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { Server as NetServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { ConnectionError } from "../../core/errors.ts";
import { boundName, isLoopback } from "./guard.ts";
import { NodeHttpRequest } from "./node-request.ts";

export interface ListenOptions {
  readonly host: string;
  /** 0: the system picks one. */
  readonly port: number;
  readonly limits: ListenLimits;
  /** Called for each request, never before the one before it on the same connection. */
  readonly onVisit: (visit: NodeHttpRequest) => void;
}

export interface ListenLimits {
  readonly headerBytes: number;
  readonly headerMs: number;
  readonly bodyMs: number;
}

export interface Listener {
  /** `http://host:port`, at which it can be called from this machine. */
  readonly url: string;
  readonly port: number;
  /** Takes no more connections, and ends those there are: idle ones at once, others after their answer or the grace. */
  close(graceMs: number): Promise<void>;
}

/** Longer than most proxies keep theirs, so that it is not we who close one that is just being used. */
const KEEP_ALIVE_MS = 65_000;

/** How long a caller that was refused has to read why. */
const LINGER_MS = 2_000;

/** Each open connection with the response that was begun last on it. */
type Connections = Map<Socket, ServerResponse | undefined>;

export async function listen(options: ListenOptions): Promise<Listener> {
  const { host, port, limits, onVisit } = options;
  const connections: Connections = new Map();
  let isClosing = false;
  const server = createServer({
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.headerMs,
    requestTimeout: limits.headerMs + limits.bodyMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: Math.max(50, Math.min(limits.headerMs, limits.bodyMs, 4_000) / 4),
    noDelay: true,
    // A caller whose network is gone without a word is found by the system.
    keepAlive: true,
    joinDuplicateHeaders: true,
    // A request without Host is refused by the guard, which says why.
    requireHostHeader: false,
  });
  // Those that it would leave out without a word are bounded by their bytes.
  server.maxHeadersCount = 0;
  const take = (request: IncomingMessage, response: ServerResponse, awaitsContinue: boolean): void => {
    connections.set(request.socket, response);
    if (isClosing) endAfter(response, request.socket);
    onVisit(new NodeHttpRequest(request, response, awaitsContinue));
  };
  server.on("request", (request, response) => take(request, response, false));
  server.on("checkContinue", (request: IncomingMessage, response: ServerResponse) => take(request, response, true));
  server.on("connection", (socket: Socket) => {
    connections.set(socket, undefined);
    socket.once("close", () => connections.delete(socket));
  });
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    rebuke(error, socket as Socket, connections.get(socket as Socket));
  });
  const address = await bind(server, host, port);
  // Where the system cannot give us one more connection, those there are go on.
  server.on("error", () => {});
  const close = async (graceMs: number): Promise<void> => {
    isClosing = true;
    await shut(server, connections, graceMs);
  };
  let closing: Promise<void> | undefined;
  return {
    url: `http://${shownHost(host, address.address)}:${address.port}`,
    port: address.port,
    close: (graceMs) => (closing ??= close(graceMs)),
  };
}

function bind(server: Server, host: string, port: number): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException): void => {
      reject(new ConnectionError("refused", unboundText(error, host, port), { cause: error }));
    };
    server.once("error", failed);
    server.listen({ port, host: host.replace(/^\[(.*)\]$/, "$1") }, () => {
      server.off("error", failed);
      resolve(server.address() as AddressInfo);
    });
  });
}

function unboundText({ code, message }: NodeJS.ErrnoException, host: string, port: number): string {
  switch (code) {
    case "EADDRINUSE":
      return `Port ${port} on ${host} is in use: end the program that has it, or choose another port (0 for any).`;
    case "EACCES":
      return `Listening on port ${port} of ${host} is not permitted: choose a port from 1024 up.`;
    case "EADDRNOTAVAIL":
      return `${host} is no address of this machine, so port ${port} cannot be opened there: choose another host.`;
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `The host ${host} has no address, so port ${port} cannot be opened there: choose another host.`;
    default:
      return `Port ${port} on ${host} cannot be opened: ${message}.`;
  }
}

/** A name is shown as it was given, since by another one the guard would not let anybody in. */
function shownHost(host: string, address: string): string {
  const own = boundName(host);
  const actual = boundName(address);
  if (actual === "0.0.0.0") return "127.0.0.1";
  if (actual === "[::]") return "[::1]";
  return isLoopback(actual) || own === "" ? actual : own;
}

/** Answers what is no HTTP request, where the answer can still reach its place. */
function rebuke(error: NodeJS.ErrnoException, socket: Socket, latest: ServerResponse | undefined): void {
  const isBusy = latest !== undefined && !latest.writableFinished;
  if (socket.writableEnded) return;
  // Behind an answer that is still to come, or in the middle of one, ours would be taken for another.
  if (!socket.writable || error.code === "ECONNRESET" || (isBusy && (latest.headersSent || latest.req.complete))) {
    socket.destroy();
    return;
  }
  const status = rebukeStatus(error.code);
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`;
  // What still comes is thrown away for a while: a connection closed at once would be reset, and the answer lost.
  socket.end(head);
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once("close", () => clearTimeout(timer));
}

function rebukeStatus(code: string | undefined): number {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return 431;
    case "HPE_CHUNK_EXTENSIONS_OVERFLOW":
      return 413;
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return 408;
    default:
      return 400;
  }
}

async function shut(server: Server, connections: Connections, graceMs: number): Promise<void> {
  // Not the server's own close: that one cuts off answers which are encodeResponse and not yet taken.
  const closed = new Promise<void>((resolve) => {
    NetServer.prototype.close.call(server, () => resolve());
  });
  for (const [socket, response] of connections) {
    if (response === undefined || response.writableFinished) socket.destroy();
    else endAfter(response, socket);
  }
  const timer = setTimeout(() => {
    for (const socket of connections.keys()) socket.destroy();
  }, graceMs);
  await closed;
  clearTimeout(timer);
  // The server counts a connection out before those who wait for its end have heard of it.
  await Promise.all([...connections.keys()].map((socket) => new Promise((heard) => socket.once("close", heard))));
  // Only now, for what else it lets go of.
  server.close();
}

/** The last answer on this connection. */
function endAfter(response: ServerResponse, socket: Socket): void {
  if (!response.headersSent) response.shouldKeepAlive = false;
  response.once("close", () => socket.destroySoon());
}

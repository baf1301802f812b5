// Connects our client to a faulty server. After each test, the clients are closed, and the test fails if one of their
// connections stays open.

import { afterEach, expect } from "vitest";
import { connect, ConnectionError, McpError, type Client, type ConnectOptions } from "../../../src/client/index.ts";
import { FaultyServer, type FaultyServerOptions } from "../../support/faulty-server/server.ts";

/** All kinds of servers, by the name in test titles. */
export const STYLES: Readonly<Record<string, FaultyServerOptions>> = {
  stateless: { style: "stateless" },
  "stateless with SSE": { style: "stateless", stateless: { answers: "sse" } },
  sessions: { style: "session", session: { retryMs: 10 } },
  "sessions with JSON": { style: "session", session: { answers: "json", get: "refused", eventIds: false } },
  "sessions without event ids": { style: "session", session: { eventIds: false, retryMs: 10 } },
  "sessions without ids": { style: "session", session: { sessionIds: false, eventIds: false, get: "refused" } },
};

export const LEGACY_SSE: FaultyServerOptions = { style: "legacy-sse" };

const clients: Client[] = [];
const servers: FaultyServer[] = [];
/** Servers with idle connections of a fetch() that we cannot close. */
const pooled = new WeakSet<FaultyServer>();

export async function startServer(options: FaultyServerOptions = {}): Promise<FaultyServer> {
  const server = await FaultyServer.open(options);
  servers.push(server);
  return server;
}

export async function connectTo(server: FaultyServer, options: ConnectOptions = {}): Promise<Client> {
  const client = await connect(server.url, options);
  clients.push(client);
  if (options.fetch !== undefined) pooled.add(server);
  return client;
}

export async function startAndConnect(
  options: FaultyServerOptions = {},
  how: ConnectOptions = {},
): Promise<{ server: FaultyServer; client: Client }> {
  const server = await startServer(options);
  return { server: server, client: await connectTo(server, how) };
}

afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()));
  for (const server of servers.splice(0)) {
    server.clearFaults();
    if (pooled.has(server))
      await server.until(() => server.requests.every(({ isFinished, closed }) => isFinished || closed.aborted));
    else await server.until(() => server.server.connections === 0);
    await server.close();
  }
});

export function textOf(result: { readonly content?: unknown }): string {
  return String((result.content as readonly { readonly text?: string }[] | undefined)?.[0]?.text);
}

/** The value or the error of a promise; the error must be one of ours. */
export async function outcome<T>(promise: Promise<T>): Promise<{ value?: T; error?: ConnectionError | McpError }> {
  try {
    return { value: await promise };
  } catch (error) {
    expect(error instanceof ConnectionError || error instanceof McpError, String(error)).toBe(true);
    return { error: error as ConnectionError | McpError };
  }
}

/** Checks that an error message names the server and contains no internal values. */
export function expectHelpful(error: ConnectionError | McpError | undefined): void {
  expect(error).toBeInstanceOf(Error);
  const { message = "" } = error ?? {};
  expect(message).toMatch(/\bserver\b|127\.0\.0\.1/i);
  expect(message.length).toBeGreaterThan(25);
  expect(message).not.toMatch(/undefined|\[object|<html|NaN/);
}

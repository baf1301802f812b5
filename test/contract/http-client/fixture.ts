// Where a client of ours meets an end that can be told to fail, and what is true after every test: the client closes,
// and no connection of it is left at the end. The ends are on ports of their own; an end is in the style that the row
// of a table names.

import { afterEach, expect } from "vitest";
import { connect, ConnectionError, McpError, type Client, type ConnectOptions } from "../../../src/client/index.ts";
import { FaultyServer, type FaultyServerOptions } from "../../support/faulty-server/server.ts";

/** Every way in which an end may speak, by a name that fits into a sentence. */
export const STYLES: Readonly<Record<string, FaultyServerOptions>> = {
  exchanges: { style: "stateless" },
  "exchanges as streams": { style: "stateless", stateless: { answers: "sse" } },
  sessions: { style: "session", session: { retryMs: 10 } },
  "sessions of JSON": { style: "session", session: { answers: "json", get: "refused", eventIds: false } },
  "sessions without ids of events": { style: "session", session: { eventIds: false, retryMs: 10 } },
  "sessions without a name": { style: "session", session: { sessionIds: false, eventIds: false, get: "refused" } },
};

export const LEGACY_SSE: FaultyServerOptions = { style: "old" };

const clients: Client[] = [];
const servers: FaultyServer[] = [];
/** Ends whose idle connections are kept by a fetch that is not ours to close. */
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
    if (pooled.has(server)) await server.until(() => server.requests.every(({ isFinished, closed }) => isFinished || closed.aborted));
    else await server.until(() => server.server.connections === 0);
    await server.close();
  }
});

export function textOf(result: { readonly content?: unknown }): string {
  return String((result.content as readonly { readonly text?: string }[] | undefined)?.[0]?.text);
}

/** What a promise came to: it settles once by its nature, so what counts is to what. */
export async function outcome<T>(promise: Promise<T>): Promise<{ value?: T; error?: ConnectionError | McpError }> {
  try {
    return { value: await promise };
  } catch (error) {
    expect(error instanceof ConnectionError || error instanceof McpError, String(error)).toBe(true);
    return { error: error as ConnectionError | McpError };
  }
}

/** An error that helps: words for people that name who failed, and no remains of what went on inside. */
export function expectHelpful(error: ConnectionError | McpError | undefined): void {
  expect(error).toBeInstanceOf(Error);
  const { message = "" } = error ?? {};
  expect(message).toMatch(/\bserver\b|127\.0\.0\.1/i);
  expect(message.length).toBeGreaterThan(25);
  expect(message).not.toMatch(/undefined|\[object|<html|NaN/);
}

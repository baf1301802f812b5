// Clients of both official SDKs for the tests of the pages, over HTTP. They answer questions when the test says so.

import { Client as Client2, StreamableHTTPClientTransport as Transport2 } from "@modelcontextprotocol/client";
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as Transport1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import type { TestGateway } from "./gateway.ts";

export interface SdkClient {
  call(name: string, args?: Record<string, unknown>): Promise<{ readonly [field: string]: unknown }>;
  toolNames(): Promise<string[]>;
  close(): Promise<void>;
}

export interface SdkOptions {
  readonly name: string;
  /** Called with a question; resolves to the content of the form when the person has answered. */
  readonly answer?: (message: string) => Promise<Record<string, string | number | boolean>>;
}

const CAPABILITIES = { capabilities: { elicitation: { form: {} } } } as const;

function headersOf({ token }: TestGateway): Record<string, string> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}

/** The client of `@modelcontextprotocol/sdk`, with a session. */
export async function connectSdk1(gateway: TestGateway, { name, answer }: SdkOptions): Promise<SdkClient> {
  const client = new Client1({ name, version: "1.0" }, answer === undefined ? {} : CAPABILITIES);
  if (answer !== undefined) {
    client.setRequestHandler(ElicitRequestSchema, async ({ params }) => ({
      action: "accept" as const,
      content: await answer(params.message),
    }));
  }
  const requestInit = { headers: headersOf(gateway) };
  await client.connect(new Transport1(new URL(gateway.url), { requestInit }));
  return {
    call: (tool, args = {}) => client.callTool({ name: tool, arguments: args }),
    toolNames: async () => (await client.listTools()).tools.map((tool) => tool.name),
    close: () => client.close(),
  };
}

/** The client of `@modelcontextprotocol/client`, in the stateless style. */
export async function connectSdk2(gateway: TestGateway, { name, answer }: SdkOptions): Promise<SdkClient> {
  const client = new Client2(
    { name, version: "2.0" },
    { ...(answer !== undefined && CAPABILITIES), versionNegotiation: { mode: "auto" } },
  );
  if (answer !== undefined) {
    client.setRequestHandler("elicitation/create", async ({ params }) => ({
      action: "accept" as const,
      content: await answer(params.message),
    }));
  }
  await client.connect(new Transport2(new URL(gateway.url), { requestInit: { headers: headersOf(gateway) } }));
  return {
    call: (tool, args = {}) => client.callTool({ name: tool, arguments: args }),
    toolNames: async () => (await client.listTools(undefined, { cacheMode: "refresh" })).tools.map((tool) => tool.name),
    close: () => client.close(),
  };
}

/** A promise that the test settles. */
export interface Later<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
}

export function later<T>(): Later<T> {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((settle) => (resolve = settle));
  return { promise, resolve };
}

// Published servers under `npx` behind a gateway, and clients of different kinds that come and go: how many processes
// each server has, and that a gateway with broken upstreams starts nothing more for a list than one without them.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client as Sdk1Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as Http1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { StreamableHTTPClientTransport as Http2 } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { eventually } from "../support/waiting.ts";
import { chain } from "../../src/chain/chain.ts";
import type { Gateway } from "../../src/chain/gateway.ts";
import { upstream } from "../../src/chain/upstream/upstream.ts";
import { connect } from "../../src/client/index.ts";
import { serve, type Serving } from "../../src/serve.ts";
import { openOver as openSdk1 } from "./sdk-1-client.ts";
import { openOver as openSdk2 } from "./sdk-2-client.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** How long a session is kept after its client has gone. A minute by default. */
const SESSION_DISCONNECTED_MS = 500;

let folder = "";
let gateway: Gateway;
let serving: Serving;
let url = "";

const npx = (program: string, ...args: readonly string[]): ReturnType<typeof upstream> =>
  upstream({ command: "npx", args: ["--no-install", program, ...args], cwd: ROOT });

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "catenary-shared-"));
  vi.stubEnv("CATENARY_CACHE", join(folder, "cache"));
  vi.stubEnv("MEMORY_FILE_PATH", join(folder, "memory.json"));
  gateway = chain().to(
    {
      everything: npx("mcp-server-everything"),
      files: npx("mcp-server-filesystem", folder),
      files2: npx("mcp-server-filesystem", folder),
      memory: npx("mcp-server-memory"),
      memory2: npx("mcp-server-memory"),
      memory3: npx("mcp-server-memory"),
      thinking: npx("mcp-server-sequential-thinking"),
      thinking2: npx("mcp-server-sequential-thinking"),
    },
    { names: "always" },
  );
  serving = await serve(gateway, { http: { port: 0, limits: { sessionDisconnectedMs: SESSION_DISCONNECTED_MS } } });
  url = serving.url ?? "";
});
afterAll(async () => {
  await serving.close();
  await gateway.close();
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

/** The number of processes of each server. */
const processes = (): Record<string, number> =>
  Object.fromEntries(Object.entries(gateway.status()).map(([name, { pids }]) => [name, pids.length]));

const ONE_EACH = {
  ...{ everything: 1, files: 1, files2: 1, memory: 1, memory2: 1, memory3: 1, thinking: 1, thinking2: 1 },
};
const QUIET = ["memory", "memory2", "memory3", "thinking", "thinking2"] as const;
const ASKING = ["everything", "files", "files2"] as const;
/** A call to each server. */
const CALLS: readonly (readonly [string, Record<string, unknown>])[] = [
  ["everything_echo", { message: "hi" }],
  ["files_list_allowed_directories", {}],
  ["files2_list_allowed_directories", {}],
  ...["memory", "memory2", "memory3"].map((name) => [`${name}_read_graph`, {}] as const),
  ...["thinking", "thinking2"].map(
    (name) =>
      [
        `${name}_sequentialthinking`,
        { thought: "a", nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 },
      ] as const,
  ),
];

interface AnyClient {
  call(name: string, args: Record<string, unknown>): Promise<unknown>;
  close(): Promise<void>;
}

async function plainSdk1(): Promise<AnyClient> {
  const client = new Sdk1Client({ name: "plain", version: "1" }, { capabilities: {} });
  await client.connect(new Http1(new URL(url)));
  return { call: (name, args) => client.callTool({ name, arguments: args }), close: () => client.close() };
}

async function ours(): Promise<AnyClient> {
  const client = await connect(url);
  return { call: (name, args) => client.callTool(name, args), close: () => client.close() };
}

const roots = (name: string): { uri: string; name: string }[] => [{ uri: `file://${folder}`, name }];

async function use(client: AnyClient): Promise<void> {
  for (const [name, args] of CALLS) await client.call(name, args);
}

// A server may ask for roots only after it has answered a call, and a client that called it before keeps the shared
// process. On a machine that stalls this takes another try, by which time the gateway knows which servers ask.
it(
  "has one process for each server, whatever clients come and go, and one more for each client that can be asked",
  {
    retry: 2,
  },
  async () => {
    // The first client makes every server start. Some ask for roots, which this client does not have.
    for (const open of [ours, plainSdk1]) {
      const client = await open();
      await use(client);
      await eventually(() => expect(processes()).toEqual(ONE_EACH), 100);
      await client.close();
    }
    const askable = [
      await openSdk1(new Http1(new URL(url)), roots("first")),
      await openSdk1(new Http1(new URL(url)), roots("second")),
      await openSdk2(new Http2(new URL(url)), {}, roots("third")),
    ];
    for (const client of askable) await use(client);
    const now = processes();
    for (const name of QUIET) expect([name, now[name]]).toEqual([name, 1]);
    // The clients that cannot be asked share the first process.
    for (const name of ASKING) expect([name, now[name]]).toEqual([name, 1 + askable.length]);
    // These clients leave without a word.
    for (const client of askable) await client.close();
    await eventually(() => expect(processes()).toEqual(ONE_EACH), 100);
  },
);

it("starts no broken upstream anew for a list, and lists the others", async () => {
  const broken = Object.fromEntries(
    ["a", "b", "c"].map((name) => [
      name,
      upstream({ command: "npx", args: ["--no-install", "catenary-no-such-server"] }),
    ]),
  );
  const many = chain().to({ ...broken, memory: npx("mcp-server-memory") });
  const client = await connect(many);
  try {
    // The first list waits for all of them to fail.
    const first = await client.listTools();
    const failures = (): number => ["a", "b", "c"].filter((name) => many.status()[name]?.problem !== undefined).length;
    await eventually(() => expect(failures()).toBe(3), 100);
    expect(first.tools.length).toBeGreaterThan(0);
    const states = ["a", "b", "c"].map((name) => many.status()[name]?.restarts);
    for (let count = 0; count < 20; count += 1) {
      expect((await client.request("tools/list", {}))["tools"]).toHaveLength(first.tools.length);
    }
    expect(["a", "b", "c"].map((name) => many.status()[name]?.restarts)).toEqual(states);
  } finally {
    await client.close();
    await many.close();
  }
});

// A gateway that has never run, with eight published servers, two slow ones made with SDK 2, one that asks for roots in its
// list, one that fails, and one that needs a variable that is not set. A stateless client comes first. Both SDKs get every
// tool that the servers list when they are used directly, and a list does not wait for any server once all have started.

import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { StreamableHTTPClientTransport as Http2 } from "@modelcontextprotocol/client";
import { StdioClientTransport as Stdio1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as Http1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { connect } from "catenary";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OWN_NAMES, UNAVAILABLE, type Unavailable, UPSTREAM } from "../../src/protocol/lists.ts";
import { canListProcesses, commandLine, withEnvironment } from "../support/processes.ts";
import { compiledImport } from "../support/programs.ts";
import { installPublishedServers, publishedServers } from "./published-servers.ts";
import type { ServerCommand } from "./real-server-steps.ts";
import { openOver as openSdk1 } from "./sdk-1-client.ts";
import { openOver as openSdk2 } from "./sdk-2-client.ts";
import type { Json, TestClient } from "./test-client.ts";

const CLI = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
const ROOTS_PROGRAM = fileURLToPath(new URL("../contract/chain/roots-program.js", import.meta.url));
const MARK = "CATENARY_MANY_SERVERS";
const mark = randomUUID();
/** How long all servers may take to start, on a machine that runs other tests as well. */
const MAX_START_MS = 150_000;
/** The longest list once all servers have started. On a busy machine some take longer, but not all of them. */
const MAX_LIST_MS = 2_000;
/** Shorter and longer than the gateway takes a silent program to be starting. */
const SLOW_MS = { slow: 2_500, slower: 5_000 } as const;
/** What the server made with SDK 2 lists only in a session. */
const ONLY_IN_SESSIONS = "ping-back";

const reason = await installPublishedServers();
if (reason !== undefined && process.env["CI"] === "true") throw new Error(reason);

const node = (...args: string[]): ServerCommand => ({ command: process.execPath, args });

/** Made with SDK 2, which answers in both styles, and stays in a session once there was an `initialize`. */
const slowServer = (ms: number): ServerCommand =>
  node(
    "--input-type=module",
    "--eval",
    `setTimeout(() => import(${compiledImport("fixtures/sdk-2-program.ts", import.meta.url)}), ${ms})`,
  );

/** Those that work, and those that do not. */
function serversIn(folder: string): { working: Record<string, ServerCommand>; failing: Record<string, ServerCommand> } {
  const published = Object.entries(publishedServers(folder)).map(([name, { command }]) => [name, command] as const);
  return {
    working: {
      ...Object.fromEntries(published),
      slow: slowServer(SLOW_MS.slow),
      slower: slowServer(SLOW_MS.slower),
      roots: node(ROOTS_PROGRAM, "--in-list"),
    },
    failing: {
      broken: node("--eval", "console.error('no such account'); process.exit(3)"),
      unset: { ...node("--eval", "process.exit(4)"), env: { KEY: "${CATENARY_VARIABLE_OF_NOBODY}" } },
    },
  };
}

describe.skipIf(reason !== undefined)(`many servers behind one gateway (${reason ?? "installed"})`, () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "catenary-many-")));
  const env = {
    PATH: process.env["PATH"] ?? "",
    [MARK]: mark,
    CATENARY_CACHE: join(folder, "cache"),
    XDG_STATE_HOME: join(folder, "state"),
  };
  const direct: Record<string, readonly Json[]> = {};
  let gateway: ChildProcess;
  let url: URL;

  beforeAll(async () => {
    const { working, failing } = serversIn(folder);
    await Promise.all(
      Object.entries(working).map(async ([name, { command, args, env: own }]) => {
        const client = await openSdk1(new Stdio1({ command, args, env: { ...env, ...own }, stderr: "ignore" }));
        try {
          direct[name] = (await client.tools()).filter((tool) => tool["name"] !== ONLY_IN_SESSIONS);
        } finally {
          await client.close();
        }
      }),
    );
    const config = join(folder, "catenary.json");
    writeFileSync(config, JSON.stringify({ mcpServers: { ...working, ...failing } }));
    const args = [CLI, "up", config, "--http", "127.0.0.1:0", "--json"];
    gateway = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "ignore"] });
    const line = await new Promise<string>((resolve, reject) => {
      gateway.stdout?.setEncoding("utf8").once("data", resolve);
      gateway.once("exit", (code) => reject(new Error(`The gateway exited with ${code} before it was ready`)));
    });
    url = new URL((JSON.parse(line) as { url: string }).url);
  });

  afterAll(async () => {
    if (gateway.exitCode === null) {
      const exited = new Promise((resolve) => gateway.once("exit", resolve));
      gateway.kill("SIGTERM");
      await exited;
    }
    rmSync(folder, { recursive: true, force: true });
  });

  /** The tools of each server, by their own names. The gateway adds only where they are from. */
  function byServer(listed: readonly Json[]): Record<string, Json[]> {
    const found: Record<string, Json[]> = {};
    for (const { _meta, ...tool } of listed) {
      const { [UPSTREAM]: server, [OWN_NAMES]: names, ...meta } = _meta as Json;
      const own = { ...tool, name: (names as string[] | undefined)?.[0] ?? (tool["name"] as string) };
      (found[String(server)] ??= []).push(Object.keys(meta).length === 0 ? own : { ...own, _meta: meta });
    }
    return found;
  }

  /** The newest revision does not declare whether a tool can be a task. */
  const comparable = (tools: readonly Json[] = []): Json[] => tools.map(({ execution: _execution, ...tool }) => tool);

  async function expectAllTools(client: TestClient): Promise<void> {
    let found: Record<string, Json[]> = {};
    const missing = async (): Promise<string[]> => {
      found = byServer(await client.tools());
      return Object.entries(direct).flatMap(([server, tools]) => {
        const names = new Set(found[server]?.map(({ name }) => name as string));
        return tools.flatMap(({ name }) => (names.has(name as string) ? [] : [`${server}: ${name}`]));
      });
    };
    await expect.poll(missing, { timeout: MAX_START_MS, interval: 500 }).toEqual([]);
    for (const [server, tools] of Object.entries(direct)) {
      expect(tools.length, server).toBeGreaterThan(0);
      // A gateway declares more to a server than this client can do, so the server may list more.
      expect(comparable(found[server]), server).toEqual(expect.arrayContaining(comparable(tools)));
    }
  }

  async function expectFastLists(client: TestClient): Promise<void> {
    const times: number[] = [];
    for (let count = 0; count < 5; count += 1) {
      const begin = performance.now();
      await client.tools();
      times.push(performance.now() - begin);
    }
    expect(Math.min(...times)).toBeLessThan(MAX_LIST_MS);
  }

  it(`many servers behind one gateway (${reason ?? "installed"}): a stateless client of SDK 2, which comes first, gets every tool`, async () => {
    const client = await openSdk2(new Http2(url), { versionNegotiation: { mode: "auto" } });
    try {
      await expectAllTools(client);
      await expectFastLists(client);
    } finally {
      await client.close();
    }
  });

  it(`many servers behind one gateway (${reason ?? "installed"}): a client of SDK 1 gets every tool`, async () => {
    const client = await openSdk1(new Http1(url));
    try {
      await expectAllTools(client);
      await expectFastLists(client);
    } finally {
      await client.close();
    }
  });

  it(`many servers behind one gateway (${reason ?? "installed"}): the list names the servers that do not work, and no other`, async () => {
    const client = await connect(url);
    try {
      const names = async (): Promise<string[]> => {
        const { _meta } = await client.listTools();
        return ((_meta?.[UNAVAILABLE] ?? []) as readonly Unavailable[]).map(({ upstream }) => upstream).toSorted();
      };
      await expect.poll(names, { timeout: MAX_START_MS, interval: 500 }).toEqual(["broken", "unset"]);
    } finally {
      await client.close();
    }
  });
});

it.runIf(canListProcesses)("many servers leave nothing behind", async () => {
  await expect.poll(() => withEnvironment(MARK, mark).map(commandLine)).toEqual([]);
});

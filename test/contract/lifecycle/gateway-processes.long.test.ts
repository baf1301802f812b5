// Gateways as real processes in front of upstreams that do not stop: they ignore signals and the end of their input, run
// behind shells and npx, and have children in process sessions of their own. However the gateway ends, even by kill -9, no
// process is left five seconds later.

import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { randomUUID } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as after } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { connect } from "../../../src/client/index.ts";
import { NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import {
  withEnvironment,
  canListProcesses,
  commandLine,
  processes,
  type ProcessInfo,
} from "../../support/processes.ts";

const CLI = fileURLToPath(new URL("../../../dist/cli/main.js", import.meta.url));
const UPSTREAM = fileURLToPath(new URL("unstoppable-server.js", import.meta.url));
const MARK = "CATENARY_GATEWAY_TEST";
/** How long processes may outlive the gateway. */
const MAX_SURVIVAL_MS = 5_000;

interface UpstreamKind {
  readonly name: string;
  readonly title: string;
  readonly command: readonly [string, ...string[]];
  /** The number of its processes, with shells and children. */
  readonly processes: number;
}

let folder = "";
const upstreamKinds = (): readonly UpstreamKind[] => [
  { name: "plain", title: "an upstream", command: [process.execPath, UPSTREAM], processes: 1 },
  {
    name: "shell",
    title: "an upstream behind a shell",
    command: ["sh", "-c", `"${process.execPath}" "${UPSTREAM}"; true`],
    processes: 2,
  },
  {
    name: "npx",
    title: "an upstream behind npx",
    command: ["npx", "--no-install", "unstoppable-server"],
    processes: 1,
  },
  {
    name: "children",
    title: "an upstream with children",
    command: [process.execPath, UPSTREAM, "--children"],
    processes: 3,
  },
];

class Gateway {
  readonly process: ChildProcessWithoutNullStreams;
  readonly exited: Promise<{ code: number | null; signal: string | null }>;
  readonly #mark = randomUUID();
  /** Its children that were seen; the guardian does not have the mark. */
  readonly #children = new Map<number, ProcessInfo>();
  #out = "";

  constructor(...args: readonly string[]) {
    const env = { ...process.env, [MARK]: this.#mark, CATENARY_CACHE: join(folder, "cache") };
    // npx finds the program in this folder.
    this.process = spawn(process.execPath, [CLI, ...args], { env, cwd: folder });
    this.process.stdout.setEncoding("utf8").on("data", (text: string) => (this.#out += text));
    this.process.stderr.resume();
    this.process.stdin.on("error", () => undefined);
    this.exited = new Promise((resolve) => this.process.once("close", (code, signal) => resolve({ code, signal })));
  }

  send(...messages: readonly object[]): void {
    for (const message of messages) this.process.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }

  /** The parsed line of its stdout that contains this. */
  async line(part: string): Promise<Record<string, unknown>> {
    const find = (): string | undefined =>
      this.#out.split("\n").find((line) => line.endsWith("}") && line.includes(part));
    await expect.poll(find).toBeDefined();
    return JSON.parse(find() ?? "") as Record<string, unknown>;
  }

  /** Opens a session on its stdio and calls the upstream. */
  async callUpstream(): Promise<void> {
    const params = {
      protocolVersion: NEWEST_SESSION.name,
      capabilities: {},
      clientInfo: { name: "test", version: "1" },
    };
    this.send({ id: 0, method: "initialize", params }, { method: "notifications/initialized" });
    await this.line('"id":0');
    this.send({ id: 1, method: "tools/call", params: { name: "pid", arguments: {} } });
    expect(await this.line('"id":1')).toMatchObject({
      result: { content: [{ text: expect.stringMatching(/^\d+$/) }] },
    });
  }

  /** The pids of the gateway and of all its processes. */
  family(): number[] {
    const seen = processes().filter(({ state }) => state !== "Z");
    for (const one of seen) if (one.parent === this.process.pid) this.#children.set(one.pid, one);
    const children = seen
      .filter(({ pid, startTime }) => this.#children.get(pid)?.startTime === startTime)
      .map(({ pid }) => pid);
    return [...new Set([...withEnvironment(MARK, this.#mark), ...children])];
  }

  /** The processes that are left after MAX_SURVIVAL_MS; returns earlier if there are none. */
  async survivors(): Promise<string[]> {
    const until = performance.now() + MAX_SURVIVAL_MS;
    while (this.family().length > 0 && performance.now() < until) await after(20);
    return this.family().map((pid) => `${pid} ${commandLine(pid)}`);
  }

  async end(): Promise<void> {
    for (const pid of this.family()) process.kill(pid, "SIGKILL");
    await this.exited;
  }
}

const started: Gateway[] = [];
function start(...args: readonly string[]): Gateway {
  const gateway = new Gateway(...args);
  started.push(gateway);
  return gateway;
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-gateway-"));
  const bin = join(folder, "node_modules", ".bin");
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "test", private: true }));
  writeFileSync(join(bin, "unstoppable-server"), `#!/bin/sh\n"${process.execPath}" "${UPSTREAM}" "$@"\n`);
  chmodSync(join(bin, "unstoppable-server"), 0o755);
});
afterEach(async () => {
  await Promise.all(started.splice(0).map((gateway) => gateway.end()));
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

describe.runIf(canListProcesses)("catenary run", () => {
  for (const { title, command, processes: count } of upstreamKinds()) {
    it(`catenary run leaves no process behind in front of ${title}`, async () => {
      const endings = ["SIGKILL", "SIGTERM", "the end of input"] as const;
      const gateways = await Promise.all(
        endings.map(async (ending) => {
          const gateway = start("run", "--", ...command);
          await gateway.callUpstream();
          // Plus the gateway and its guardian.
          expect(gateway.family().length).toBeGreaterThanOrEqual(count + 2);
          return { ending, gateway };
        }),
      );
      await Promise.all(
        gateways.map(async ({ ending, gateway }) => {
          if (ending === "the end of input") gateway.process.stdin.end();
          else gateway.process.kill(ending);
          const code = ending === "SIGKILL" ? null : 0;
          expect([ending, await gateway.survivors()]).toEqual([ending, []]);
          expect(await gateway.exited).toMatchObject({ code });
        }),
      );
    });
  }

  it("catenary run leaves no process behind if it is killed while its upstream starts", async () => {
    const command = ["npx", "--no-install", "unstoppable-server", "--children"];
    const params = {
      protocolVersion: NEWEST_SESSION.name,
      capabilities: {},
      clientInfo: { name: "test", version: "1" },
    };
    const runs = [1, 2, 3].map(async (children) => {
      const gateway = start("run", "--", ...command);
      gateway.send({ id: 0, method: "initialize", params });
      // The gateway, its guardian, and this many others.
      await expect.poll(() => gateway.family().length, { interval: 5 }).toBeGreaterThan(children + 1);
      gateway.process.kill("SIGKILL");
      expect(await gateway.survivors()).toEqual([]);
    });
    await Promise.all(runs);
  });
});

it.runIf(canListProcesses).each(["SIGKILL", "SIGTERM"] as const)(
  "catenary serve in front of all upstreams leaves no process behind after %s",
  async (signal) => {
    const servers = upstreamKinds().map(({ name, command: [command, ...args] }) => [name, { command, args }] as const);
    const config = join(folder, `${signal}.json`);
    writeFileSync(config, JSON.stringify({ mcpServers: Object.fromEntries(servers) }));
    const gateway = start("serve", config, "--http", "0", "--json");
    const { url } = await gateway.line("url");
    const client = await connect(String(url), { revision: NEWEST_SESSION.name });
    const calls = upstreamKinds().map(({ name }) => client.callTool(`${name}_pid`));
    expect((await Promise.all(calls)).map(({ isError }) => isError ?? false)).toEqual(upstreamKinds().map(() => false));
    const total = upstreamKinds().reduce((sum, { processes: count }) => sum + count, 0);
    expect(gateway.family().length).toBeGreaterThanOrEqual(total + 2);
    gateway.process.kill(signal);
    expect(await gateway.survivors()).toEqual([]);
    await client.close();
  },
);

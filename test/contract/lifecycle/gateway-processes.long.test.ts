// Gateways as real processes, in front of ends that will not go: deaf to signals and to the end of their input, behind
// shells and package managers, with children in sessions of their own. However the gateway comes to its end, by kill -9
// too, nobody is left five seconds later.

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
import { withEnvironment, canListProcesses, commandLine, processes, type ProcessInfo } from "../../support/processes.ts";

const CLI = fileURLToPath(new URL("../../../dist/cli/main.js", import.meta.url));
const END = fileURLToPath(new URL("unstoppable-server.js", import.meta.url));
const MARK = "CATENARY_GATEWAY_TEST";
/** How long anybody may outlive the gateway. */
const BOUND_MS = 5_000;

interface Way {
  readonly name: string;
  readonly title: string;
  readonly command: readonly [string, ...string[]];
  /** Processes that run for it when it is up, its own shells and children counted. */
  readonly family: number;
}

let folder = "";
/** Each with what runs for it. */
const ways = (): readonly Way[] => [
  { name: "plain", title: "an end that is deaf", command: [process.execPath, END], family: 1 },
  {
    name: "shell",
    title: "an end behind a shell",
    command: ["sh", "-c", `"${process.execPath}" "${END}"; true`],
    family: 2,
  },
  { name: "npx", title: "an end behind npx", command: ["npx", "--no-install", "deaf-end"], family: 3 },
  {
    name: "brood",
    title: "an end with children in sessions of their own",
    command: [process.execPath, END, "--brood"],
    family: 3,
  },
];

class Gateway {
  readonly process: ChildProcessWithoutNullStreams;
  readonly exited: Promise<{ code: number | null; signal: string | null }>;
  readonly #mark = randomUUID();
  /** What it has started, as far as it was seen: the guardian bears no mark. */
  readonly #children = new Map<number, ProcessInfo>();
  #out = "";

  constructor(...args: readonly string[]) {
    const env = { ...process.env, [MARK]: this.#mark, CATENARY_CACHE: join(folder, "cache") };
    // In the folder of the package whose program npx finds.
    this.process = spawn(process.execPath, [CLI, ...args], { env, cwd: folder });
    this.process.stdout.setEncoding("utf8").on("data", (text: string) => (this.#out += text));
    this.process.stderr.resume();
    this.process.stdin.on("error", () => undefined);
    this.exited = new Promise((resolve) => this.process.once("close", (code, signal) => resolve({ code, signal })));
  }

  send(...messages: readonly object[]): void {
    for (const message of messages) this.process.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }

  /** What a line on its stdout says that has this in it. */
  async line(part: string): Promise<Record<string, unknown>> {
    const find = (): string | undefined =>
      this.#out.split("\n").find((line) => line.endsWith("}") && line.includes(part));
    await expect.poll(find, { timeout: 20_000 }).toBeDefined();
    return JSON.parse(find() ?? "") as Record<string, unknown>;
  }

  /** A session on its stdio, and a call that its end has answered. */
  async speak(): Promise<void> {
    const params = {
      protocolVersion: NEWEST_SESSION.name,
      capabilities: {},
      clientInfo: { name: "life", version: "1" },
    };
    this.send({ id: 0, method: "initialize", params }, { method: "notifications/initialized" });
    await this.line('"id":0');
    this.send({ id: 1, method: "tools/call", params: { name: "pid", arguments: {} } });
    expect(await this.line('"id":1')).toMatchObject({
      result: { content: [{ text: expect.stringMatching(/^\d+$/) }] },
    });
  }

  /** All that lives because of it, itself too. */
  family(): number[] {
    const seen = processes().filter(({ state }) => state !== "Z");
    for (const one of seen) if (one.parent === this.process.pid) this.#children.set(one.pid, one);
    const children = seen.filter(({ pid, startTime }) => this.#children.get(pid)?.startTime === startTime).map(({ pid }) => pid);
    return [...new Set([...withEnvironment(MARK, this.#mark), ...children])];
  }

  /** Who is left when the bound is over; looked at sooner, since all may be gone sooner. */
  async survivors(): Promise<string[]> {
    const until = performance.now() + BOUND_MS;
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
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "life", private: true }));
  writeFileSync(join(bin, "deaf-end"), `#!/bin/sh\n"${process.execPath}" "${END}" "$@"\n`);
  chmodSync(join(bin, "deaf-end"), 0o755);
});
afterEach(async () => {
  await Promise.all(started.splice(0).map((gateway) => gateway.end()));
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

describe.runIf(canListProcesses)("catenary run", { timeout: 40_000 }, () => {
  for (const { title, command, family } of ways()) {
    it(`in front of ${title}: nobody outlives it`, async () => {
      const endings = ["SIGKILL", "SIGTERM", "the end of input"] as const;
      const gateways = await Promise.all(
        endings.map(async (ending) => {
          const gateway = start("run", "--", ...command);
          await gateway.speak();
          // The gateway and its guardian as well.
          expect(gateway.family().length).toBeGreaterThanOrEqual(family + 2);
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

  it("leaves nobody when it is killed while its end starts", async () => {
    const command = ["npx", "--no-install", "deaf-end", "--brood"];
    const params = {
      protocolVersion: NEWEST_SESSION.name,
      capabilities: {},
      clientInfo: { name: "life", version: "1" },
    };
    const moments = [1, 2, 3].map(async (children) => {
      const gateway = start("run", "--", ...command);
      gateway.send({ id: 0, method: "initialize", params });
      // Itself, its guardian, and as many of the rest.
      await expect.poll(() => gateway.family().length, { timeout: 20_000, interval: 5 }).toBeGreaterThan(children + 1);
      gateway.process.kill("SIGKILL");
      expect(await gateway.survivors()).toEqual([]);
    });
    await Promise.all(moments);
  });
});

describe.runIf(canListProcesses)("catenary serve in front of all of them", { timeout: 40_000 }, () => {
  it.each(["SIGKILL", "SIGTERM"] as const)("leaves nobody after %s", async (signal) => {
    const servers = ways().map(({ name, command: [command, ...args] }) => [name, { command, args }] as const);
    const config = join(folder, `${signal}.json`);
    writeFileSync(config, JSON.stringify({ mcpServers: Object.fromEntries(servers) }));
    const gateway = start("serve", config, "--http", "0", "--json");
    const { url } = await gateway.line("url");
    const client = await connect(String(url), { revision: NEWEST_SESSION.name });
    const calls = ways().map(({ name }) => client.callTool(`${name}.pid`));
    expect((await Promise.all(calls)).map(({ isError }) => isError ?? false)).toEqual(ways().map(() => false));
    const families = ways().reduce((sum, { family }) => sum + family, 0);
    expect(gateway.family().length).toBeGreaterThanOrEqual(families + 2);
    gateway.process.kill(signal);
    expect(await gateway.survivors()).toEqual([]);
    await client.close();
  });
});

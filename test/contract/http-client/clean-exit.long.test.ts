// A closed client leaves nothing behind: no connection, no timer, no unhandled rejection. A child process uses clients in
// many situations, closes them, and must exit by itself without output on stderr.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, it } from "vitest";
import { compiled } from "../../support/programs.ts";
import { connect } from "../../../src/client/index.ts";
import { cut, hangUp, silence, status } from "../../support/faulty-server/faults.ts";
import type { FaultyServerOptions, FaultyServer } from "../../support/faulty-server/server.ts";
import { LEGACY_SSE, startServer, STYLES } from "./fixture.ts";

const PROGRAM = compiled("exiting-client.ts", import.meta.url);

const [stateless, session] = [STYLES["stateless"] ?? {}, STYLES["sessions"] ?? {}];
/** Asks clients to resume only after a minute. */
const slowRetry: FaultyServerOptions = { style: "session", session: { retryMs: 60_000 } };

async function runAndExit(...tasks: readonly (readonly [string, FaultyServer])[]): Promise<void> {
  const args = tasks.map(([name, server]) => `${name}@${server.url}`);
  const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let [out, err] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (err += text));
  const [code] = await once(child, "close");
  expect(err).toBe("");
  expect(out.trim().split("\n")).toEqual(tasks.map(([name]) => name));
  expect(code).toBe(0);
  for (const [, server] of tasks) await server.until(() => server.server.connections === 0);
}

async function failing(
  options: FaultyServerOptions,
  operation: string,
  ...faults: Parameters<FaultyServer["inject"]>[1][]
): Promise<FaultyServer> {
  const server = await startServer(options);
  for (const fault of faults) server.inject(operation, fault, 100);
  return server;
}

it("a process exits by itself after calls, subscriptions, cancellations and broken connections, in each style", async () => {
  const tasks: [string, FaultyServer][] = [];
  for (const options of [stateless, session, LEGACY_SSE]) {
    for (const name of ["calls", "subscribes", "cancels", "closes during a call"])
      tasks.push([name, await startServer(options)]);
    tasks.push(["fails", await failing(options, "tools/call", hangUp)]);
    tasks.push(["fails", await failing(options, "tools/call", status(500))]);
    tasks.push(["cannot connect", await failing(options, "*", status(404))]);
    tasks.push(["cannot connect", await failing(options, "*", silence)]);
  }
  await runAndExit(...tasks);
});

it("a process exits by itself after its clients were closed while they waited for a retry", async () => {
  await runAndExit(
    ["closes while waiting", await failing(stateless, "tools/list", hangUp)],
    ["closes while waiting", await failing(stateless, "tools/call", silence)],
    ["closes while waiting", await failing(slowRetry, "tools/call", cut(400))],
    ["closes while waiting", await failing(session, "GET", hangUp)],
    ["closes while waiting", await failing(session, "GET", silence)],
    ["calls", await failing(session, "DELETE", silence)],
    ["calls", await failing(session, "notifications/initialized", status(500))],
  );
});

it.each([...Object.entries(STYLES), ["legacy HTTP+SSE", LEGACY_SSE] as const])(
  "a closed client leaves no timer and no connection in the process (%s)",
  async (_, options) => {
    const server = await startServer(options);
    const count = (): number =>
      process.getActiveResourcesInfo().filter((kind) => kind === "Timeout" || kind === "TCPSocketWrap").length;
    const before = count();
    for (let n = 0; n < 5; n += 1) {
      const client = await connect(server.url);
      await client.callTool("run", { key: `k${n}` });
      await client.close();
    }
    await server.until(() => server.server.connections === 0);
    for (let turns = 0; turns < 3; turns += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(count()).toBeLessThanOrEqual(before);
  },
);

it("a closed client does not close other clients", async () => {
  const server = await startServer(session);
  const [one, two] = [await connect(server.url), await connect(server.url)];
  await one.close();
  await two.callTool("run", { key: "a" });
  await two.close();
  expect(server.count("DELETE")).toBe(2);
});

it("a closed client may be closed twice, and by its signal", async () => {
  const server = await startServer(session);
  const stop = new AbortController();
  const client = await connect(server.url, { signal: stop.signal });
  stop.abort();
  expect(await client.closed).toBeUndefined();
  await Promise.all([client.close(), client.close()]);
  expect(server.count("DELETE")).toBe(1);
  await expect(client.callTool("run", { key: "a" })).rejects.toMatchObject({ kind: "closed", mayHaveRun: false });
  expect(server.backend.runCount("a")).toBe(0);
});

// Nothing of a client is left when it is closed: no connection, no timer, no promise that fails with nobody to see it.
// Shown by a process that has clients in every situation, closes them, and must leave by itself without a word.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { connect } from "../../../src/client/index.ts";
import { cut, hangUp, silence, status } from "../../support/faulty-server/faults.ts";
import type { FaultyServerOptions, FaultyServer } from "../../support/faulty-server/server.ts";
import { LEGACY_SSE, startServer, STYLES } from "./fixture.ts";

const LEAVER = fileURLToPath(new URL("exiting-client.ts", import.meta.url));

const [exchange, session] = [STYLES["exchanges"] ?? {}, STYLES["sessions"] ?? {}];
/** One that wants its callers to come back much later. */
const patient: FaultyServerOptions = { style: "session", session: { retryMs: 60_000 } };

async function leave(...tasks: readonly (readonly [string, FaultyServer])[]): Promise<void> {
  const words = tasks.map(([name, end]) => `${name}@${end.url}`);
  const child = spawn(process.execPath, ["--import", "tsx", LEAVER, ...words], { stdio: ["ignore", "pipe", "pipe"] });
  let [out, err] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (err += text));
  const [code] = await once(child, "close");
  expect(err).toBe("");
  expect(out.trim().split("\n")).toEqual(tasks.map(([name]) => name));
  expect(code).toBe(0);
  for (const [, end] of tasks) await end.until(() => end.server.connections === 0);
}

async function failing(
  options: FaultyServerOptions,
  what: string,
  ...faults: Parameters<FaultyServer["inject"]>[1][]
): Promise<FaultyServer> {
  const server = await startServer(options);
  for (const fault of faults) server.inject(what, fault, 100);
  return server;
}

describe("a process leaves by itself", () => {
  it("after its clients have called, listened, cancelled and been cut off, in every style", async () => {
    const tasks: [string, FaultyServer][] = [];
    for (const options of [exchange, session, LEGACY_SSE]) {
      for (const name of ["calls", "listens", "cancels", "closes in mid-call"])
        tasks.push([name, await startServer(options)]);
      tasks.push(["fails", await failing(options, "tools/call", hangUp)]);
      tasks.push(["fails", await failing(options, "tools/call", status(500))]);
      tasks.push(["refused", await failing(options, "*", status(404))]);
      tasks.push(["refused", await failing(options, "*", silence)]);
    }
    await leave(...tasks);
  });

  it("after its clients were closed while they waited to try again", async () => {
    await leave(
      ["closes while it waits", await failing(exchange, "tools/list", hangUp)],
      ["closes while it waits", await failing(exchange, "tools/call", silence)],
      ["closes while it waits", await failing(patient, "tools/call", cut(400))],
      ["closes while it waits", await failing(session, "GET", hangUp)],
      ["closes while it waits", await failing(session, "GET", silence)],
      ["calls", await failing(session, "DELETE", silence)],
      ["calls", await failing(session, "notifications/initialized", status(500))],
    );
  });
});

describe("a client that is closed", () => {
  it.each([...Object.entries(STYLES), ["the old pair of addresses", LEGACY_SSE] as const])(
    "in %s leaves no timer and no connection in the process",
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

  it("does not close those of others", async () => {
    const server = await startServer(session);
    const [one, two] = [await connect(server.url), await connect(server.url)];
    await one.close();
    await two.callTool("run", { key: "a" });
    await two.close();
    expect(server.count("DELETE")).toBe(2);
  });

  it("may be closed twice, and is closed by its signal", async () => {
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
});

// Nothing of a client is left when it is closed: no connection, no timer, no promise that fails with nobody to see it.
// Shown by a process that has clients in every situation, closes them, and must leave by itself without a word.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { connect } from "../../../src/client/index.ts";
import { cut, hangUp, silence, status } from "../../support/faulty-server/faults.ts";
import type { UpstreamOptions, FaultyServer } from "../../support/faulty-server/server.ts";
import { OLD, opened, STYLES } from "./fixture.ts";

const LEAVER = fileURLToPath(new URL("exiting-client.ts", import.meta.url));

const [exchange, session] = [STYLES["exchanges"] ?? {}, STYLES["sessions"] ?? {}];
/** One that wants its callers to come back much later. */
const patient: UpstreamOptions = { style: "session", session: { retryMs: 60_000 } };

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
  options: UpstreamOptions,
  what: string,
  ...faults: Parameters<FaultyServer["lay"]>[1][]
): Promise<FaultyServer> {
  const end = await opened(options);
  for (const fault of faults) end.lay(what, fault, 100);
  return end;
}

describe("a process leaves by itself", () => {
  it("after its clients have called, listened, cancelled and been cut off, in every style", async () => {
    const tasks: [string, FaultyServer][] = [];
    for (const options of [exchange, session, OLD]) {
      for (const name of ["calls", "listens", "cancels", "closes in mid-call"])
        tasks.push([name, await opened(options)]);
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
  it.each([...Object.entries(STYLES), ["the old pair of addresses", OLD] as const])(
    "in %s leaves no timer and no connection in the process",
    async (_, options) => {
      const end = await opened(options);
      const count = (): number =>
        process.getActiveResourcesInfo().filter((kind) => kind === "Timeout" || kind === "TCPSocketWrap").length;
      const before = count();
      for (let n = 0; n < 5; n += 1) {
        const client = await connect(end.url);
        await client.callTool("run", { key: `k${n}` });
        await client.close();
      }
      await end.until(() => end.server.connections === 0);
      for (let turns = 0; turns < 3; turns += 1) await new Promise((resolve) => setImmediate(resolve));
      expect(count()).toBeLessThanOrEqual(before);
    },
  );

  it("does not close those of others", async () => {
    const end = await opened(session);
    const [one, two] = [await connect(end.url), await connect(end.url)];
    await one.close();
    await two.callTool("run", { key: "a" });
    await two.close();
    expect(end.count("DELETE")).toBe(2);
  });

  it("may be closed twice, and is closed by its signal", async () => {
    const end = await opened(session);
    const stop = new AbortController();
    const client = await connect(end.url, { signal: stop.signal });
    stop.abort();
    expect(await client.closed).toBeUndefined();
    await Promise.all([client.close(), client.close()]);
    expect(end.count("DELETE")).toBe(1);
    await expect(client.callTool("run", { key: "a" })).rejects.toMatchObject({ kind: "closed", mayHaveRun: false });
    expect(end.desk.runsOf("a")).toBe(0);
  });
});

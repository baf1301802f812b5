// A server that is a command: its stderr, its stray output, and its limits.

import { afterEach, expect, it } from "vitest";
import { IS_LONG } from "../../test/support/thoroughness.ts";
import { NEWEST_SESSION } from "../protocol/revisions/index.ts";
import type { Client } from "./client.ts";
import { connect } from "./connect.ts";

const open: Client[] = [];
afterEach(async () => {
  for (const client of open.splice(0)) await client.close();
});

/** A server in a few lines that speaks the newest session revision, noisily. */
const script = (extra = ""): string => `
  console.log("starting up...");
  console.error("a warning");
  ${extra}
  require("node:readline").createInterface({ input: process.stdin }).on("line", (text) => {
    const { id, method, params } = JSON.parse(text);
    if (id === undefined) return;
    const result = method === "initialize"
      ? { protocolVersion: ${JSON.stringify(NEWEST_SESSION.name)}, capabilities: { tools: {} }, serverInfo: { name: "noisy", version: "1" } }
      : { content: [{ type: "text", text: "x".repeat(params.arguments?.size ?? 0) }] };
    console.log(JSON.stringify(method === "server/discover" ? { jsonrpc: "2.0", id, error: { code: -32601, message: "no" } } : { jsonrpc: "2.0", id, result }));
  });`;
const command = (extra?: string) => ({ command: process.execPath, args: ["-e", script(extra)] });

it("exposes stray output and stderr", async () => {
  const lines: string[] = [];
  const client = await connect(command(), { onNoise: (line) => lines.push(line) });
  open.push(client);
  expect(client.program?.noise).toEqual({ count: 1, last: ["starting up..."] });
  expect(lines).toEqual(["starting up..."]);
  await expect.poll(() => client.program?.stderrTail()).toBe("a warning\n");
  expect(client.program?.pid).toBeGreaterThan(1);
});

it("applies the limits", async () => {
  const client = await connect(command(), { limits: { messageBytes: 10_000 } });
  open.push(client);
  expect(await client.callTool("x", { size: 10 })).toMatchObject({ content: [{ text: "xxxxxxxxxx" }] });
  await expect(client.callTool("x", { size: 20_000 })).rejects.toMatchObject({ kind: "protocol" });
  expect(await client.callTool("x", { size: 1 })).toMatchObject({ content: [{ text: "x" }] });
});

it.runIf(IS_LONG)("quotes the output of a command that does not answer", async () => {
  const silent = "console.log('Listening on a port'); console.error('not in stdio mode'); setInterval(() => 0, 1000)";
  const connecting = connect({ command: process.execPath, args: ["-e", silent] }, { startTimeoutMs: 300 });
  await expect(connecting).rejects.toMatchObject({
    kind: "timeout",
    message: expect.stringMatching(/startTimeoutMs[^]*Listening on a port[^]*not in stdio mode/) as string,
  });
});

it("gives up on a command that only writes stray output", async () => {
  const flood =
    "const line = 'y\\n'.repeat(1000); const go = () => { while (process.stdout.write(line)); process.stdout.once('drain', go); }; go()";
  await expect(connect({ command: process.execPath, args: ["-e", flood] })).rejects.toMatchObject({
    kind: "protocol",
    message: expect.stringContaining("none of them a message") as string,
  });
});

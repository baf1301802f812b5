// An upstream that writes short lines to its stderr without end delays neither the calls of other upstreams nor the log.

import { afterEach, expect, it, vi } from "vitest";
import { chain, upstream } from "../../../src/chain/index.ts";
import { connect } from "../../../src/client/index.ts";
import { EventLog } from "../../../src/cli/serve/event-log.ts";
import { UpstreamReport } from "../../../src/cli/serve/upstream-report.ts";
import { MAX_LINES_PER_SECOND } from "../../../src/cli/terminal/line-splitter.ts";
import { NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { createServer } from "../../../src/server/index.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

const FLOOD = `
  const { writeSync } = require("node:fs");
  const { Worker } = require("node:worker_threads");
  new Worker('const { writeSync } = require("node:fs"); const text = "x\\\\n".repeat(30_000); for (;;) try { writeSync(2, text); } catch {}', { eval: true });
  const known = { initialize: { protocolVersion: "${NEWEST_SESSION.name}", capabilities: { tools: {} }, serverInfo: { name: "flood", version: "1" } },
    "tools/list": { tools: [{ name: "slow", inputSchema: { type: "object" } }] } };
  require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
    const { id, method } = JSON.parse(line);
    if (known[method]) writeSync(1, JSON.stringify({ jsonrpc: "2.0", id, result: known[method] }) + "\\n");
  }).on("close", () => process.exit());`;

it("an upstream that floods its stderr does not delay others, and its lines are counted", async () => {
  let written = 0;
  let leftOut = 0;
  vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    written += 1;
    if (/\(\d+ lines left out/.test(String(text))) leftOut += 1;
    return true;
  });
  const start = performance.now();
  const { onStderr } = new UpstreamReport(new EventLog(), false);
  const flood = upstream(
    { command: process.execPath, args: ["-e", FLOOD] },
    { revision: NEWEST_SESSION.name, remember: false, onStderr: (text) => onStderr("flood", text) },
  );
  const good = createServer({ name: "good", version: "1" }).tool("echo", { description: "Echo" }, () => "yes");
  const gateway = chain().to({ flood, good: upstream(good) });
  const client = await connect(gateway);
  try {
    await client.listTools();
    await expect.poll(() => leftOut).toBeGreaterThan(0);
    for (let count = 0; count < 20; count += 1) {
      expect(await client.callTool("echo")).toMatchObject({ content: [{ text: "yes" }] });
    }
    await expect.poll(() => leftOut).toBeGreaterThan(1);
    const seconds = (performance.now() - start) / 1_000;
    expect(written).toBeLessThan((MAX_LINES_PER_SECOND + 2) * (seconds + 2));
  } finally {
    await client.close();
    await gateway.close();
  }
});

// A server that answers a call with neither a result nor an error: the call fails at once instead of timing out, and the
// connection stays usable.

import { expect, it } from "vitest";
import { connect } from "../../../src/client/index.ts";

const SERVER = `
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const say = (more) => console.log(JSON.stringify({ jsonrpc: "2.0", id, ...more }));
  if (method === "initialize") {
    say({ result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "a", version: "1" } } });
  } else if (method === "tools/call" && params.name === "empty") say({});
  else if (method === "tools/call") say({ result: { content: [{ type: "text", text: "well" }] } });
  else say({ error: { code: -32601, message: "no" } });
});`;

it("fails the call that it names, at once", async () => {
  const program = { command: process.execPath, args: ["-e", SERVER] };
  // A call that waited for its timeout would outlast the test.
  const client = await connect(program, { revision: "2025-11-25", timeoutMs: 600_000 });
  await expect(client.callTool("empty")).rejects.toMatchObject({
    kind: "protocol",
    message: expect.stringContaining("The server's answer is not a valid message") as string,
  });
  expect(await client.callTool("other")).toMatchObject({ content: [{ text: "well" }] });
  await client.close();
});

// A process of its own that takes one big result, by our client or by bare node:http that keeps nothing of it, and
// writes how much memory that took at most: more than it held just before, counted from the greatest size that the
// system saw of it. What is needed once for the first call of all (code, tables) was taken before, by small calls.

import { readFileSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { connect } from "../../src/client/index.ts";
import { META } from "../../src/protocol/model/index.ts";
import { NEWEST } from "../../src/protocol/revisions/index.ts";

const [, , url = "", bytes = "0", manner = ""] = process.argv;

function kilobytes(name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(readFileSync("/proc/self/status", "utf8"))?.[1]);
}

type Take = (bytes: number) => Promise<number>;

async function byClient(): Promise<{ take: Take; close(): Promise<void> }> {
  const client = await connect(url);
  const take: Take = async (many) => {
    const { content } = await client.callTool("big", { key: "big", bytes: many });
    return (content[0] as { readonly text: string }).text.length;
  };
  return { take, close: () => client.close() };
}

function byNobody(): { take: Take; close(): Promise<void> } {
  const agent = new Agent({ keepAlive: true });
  const take: Take = (many) => {
    const params = { name: "big", arguments: { key: "big", bytes: many }, _meta: { [META.revision]: NEWEST.name } };
    const headers = { "mcp-method": "tools/call", "mcp-protocol-version": NEWEST.name };
    return new Promise((resolve, reject) => {
      const sent = request(url, { agent, method: "POST", headers }, (response) => {
        let length = 0;
        response.on("data", (chunk: Buffer) => (length += chunk.length));
        response.once("end", () => resolve(length));
      });
      sent.once("error", reject);
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
      sent.setHeader("content-length", Buffer.byteLength(body));
      sent.end(body);
    });
  };
  return { take, close: async () => agent.destroy() };
}

const { take, close } = manner === "nobody" ? byNobody() : await byClient();
for (let n = 0; n < 20; n += 1) await take(10_000);
globalThis.gc?.();
// From here on the greatest size is counted anew.
writeFileSync("/proc/self/clear_refs", "5");
const before = kilobytes("VmRSS");
const length = await take(Number(bytes));
const peak = (kilobytes("VmHWM") - before) * 1024;
process.stdout.write(`${JSON.stringify({ length, peak })}\n`);
await close();

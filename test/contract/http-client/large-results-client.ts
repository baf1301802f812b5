// A process that receives large results with our client and prints its peak memory: the peak resident size during the calls
// minus the size before them. Small calls come first, so that memory for code and tables is not counted.

import { readFileSync, writeFileSync } from "node:fs";
import { connect } from "../../../src/client/index.ts";

const [, , url = "", unit = "x", bytes = "0", count = "1"] = process.argv;

function kilobytes(name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(readFileSync("/proc/self/status", "utf8"))?.[1]);
}

const client = await connect(url);

async function take(many: number): Promise<number> {
  const { content } = await client.callTool("big", { key: "big", unit, bytes: many });
  return (content[0] as { readonly text: string }).text.length;
}

for (let n = 0; n < 20; n += 1) await take(10_000);
globalThis.gc?.();
// Resets the peak.
writeFileSync("/proc/self/clear_refs", "5");
const before = kilobytes("VmRSS");
let length = 0;
for (let n = 0; n < Number(count); n += 1) length += await take(Number(bytes));
const peak = (kilobytes("VmHWM") - before) * 1024;
process.stdout.write(`${JSON.stringify({ length, peak })}\n`);
await client.close();

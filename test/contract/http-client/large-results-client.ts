// A process of its own that takes big results by our client, one after another, and writes how much memory that took at
// most: more than it held just before, counted from the greatest size that the system saw of it. What is needed once
// for the first call of all (code, tables) was taken before, by small calls.

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
// From here on the greatest size is counted anew.
writeFileSync("/proc/self/clear_refs", "5");
const before = kilobytes("VmRSS");
let length = 0;
for (let n = 0; n < Number(count); n += 1) length += await take(Number(bytes));
const peak = (kilobytes("VmHWM") - before) * 1024;
process.stdout.write(`${JSON.stringify({ length, peak })}\n`);
await client.close();

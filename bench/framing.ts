// 100 MB that never come to a newline, sent to a real server in chunks of 4 KiB: how long until it has refused
// and passed over all of it, and how much more memory it ever held than a server that got one ping. Node's own
// streams leave some 30 MB of buffers to the collector on the way; a bare reader in the same run says how much.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Figure } from "./main.ts";
import { median } from "./median.ts";
import { costIn } from "./report.ts";

const TOTAL = 100 * 1024 * 1024;
const CHUNK = Buffer.alloc(4 * 1024, 97);
const ROUNDS = 5;
const PING = '{"jsonrpc":"2.0","id":"ping","method":"ping"}\n';

/** Sends so many bytes, then a newline and a ping; resolves when the ping is answered and the server has ended. */
async function run(server: string, bytes: number): Promise<{ ms: number; rssMb: number; refusals: number }> {
  const script = fileURLToPath(new URL(server, import.meta.url));
  const child = spawn(process.execPath, [script], { stdio: ["pipe", "pipe", "pipe"] });
  let out = "";
  let report = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (report += text));
  const exited = once(child, "close");
  const answered = new Promise<void>((resolve) => {
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      out += text;
      if (out.includes('"id":"ping"')) resolve();
    });
  });
  // Once it answers a ping it is started, and what follows is the work alone.
  child.stdin.write(PING.replace('"id":"ping"', '"id":0'));
  while (!out.includes('"id":0')) await once(child.stdout, "data");
  const begin = performance.now();
  for (let sent = 0; sent < bytes; sent += CHUNK.length) {
    if (!child.stdin.write(CHUNK)) await once(child.stdin, "drain");
  }
  child.stdin.write(`\n${PING}`);
  await answered;
  const ms = performance.now() - begin;
  child.stdin.end();
  await exited;
  return { ms, rssMb: costIn(report).maxRssKb / 1024, refusals: out.split("-32600").length - 1 };
}

export async function framingCosts(tell: (text: string) => void): Promise<Figure[]> {
  tell(`framing: 100 MB without a newline, ${ROUNDS} times`);
  const times: number[] = [];
  const ours: number[] = [];
  const bare: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const idle = await run("catenary-echo.js", 0);
    const flooded = await run("catenary-echo.js", TOTAL);
    if (flooded.refusals !== 1) throw new Error(`refused ${flooded.refusals} times instead of once`);
    times.push(flooded.ms);
    ours.push(flooded.rssMb - idle.rssMb);
    bare.push((await run("bare-drain.js", TOTAL)).rssMb - (await run("bare-drain.js", 0)).rssMb);
  }
  const detail = `100 MB in 4 KiB chunks, no newline, median of ${ROUNDS}`;
  const grown = `grew by ${median(ours).toFixed(1)} MB, a bare reader by ${median(bare).toFixed(1)} MB`;
  return [
    { name: "unending line, time", value: median(times) / 1000, unit: "s", bound: 1, detail },
    {
      name: "unending line, memory",
      value: median(ours) - median(bare),
      unit: "MB over bare",
      bound: 20,
      detail: grown,
    },
  ];
}

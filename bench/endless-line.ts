// Sends 100 MB without a newline to a server, in chunks of 4 KiB: the time until it has rejected and skipped all of it,
// and how much its memory grows, compared with a server that got one ping. Node's own streams use about 30 MB of
// buffers; a bare reader in the same run measures them.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { median, parseCost, programPath, type Measurement } from "./measurement.ts";

const TOTAL = 100 * 1024 * 1024;
const CHUNK = Buffer.alloc(4 * 1024, 97);
const ROUNDS = 5;
const PING = '{"jsonrpc":"2.0","id":"ping","method":"ping"}\n';

/** Sends the bytes, a newline and a ping. Resolves when the ping was answered and the server has exited. */
async function run(program: string, bytes: number): Promise<{ ms: number; rssMb: number; rejections: number }> {
  const child = spawn(process.execPath, [programPath(program)], { stdio: ["pipe", "pipe", "pipe"] });
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
  // The first ping waits until the server has started, so that the start is not measured.
  child.stdin.write(PING.replace('"id":"ping"', '"id":0'));
  while (!out.includes('"id":0')) await once(child.stdout, "data");
  const startedAt = performance.now();
  for (let sent = 0; sent < bytes; sent += CHUNK.length) {
    if (!child.stdin.write(CHUNK)) await once(child.stdin, "drain");
  }
  child.stdin.write(`\n${PING}`);
  await answered;
  const ms = performance.now() - startedAt;
  child.stdin.end();
  await exited;
  return { ms, rssMb: parseCost(report).maxRssKb / 1024, rejections: out.split("-32600").length - 1 };
}

export const measureEndlessLine: Measurement = async (onProgress) => {
  onProgress(`framing: 100 MB without a newline, ${ROUNDS} times`);
  const times: number[] = [];
  const ours: number[] = [];
  const bare: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const idle = await run("catenary-stdio.js", 0);
    const flooded = await run("catenary-stdio.js", TOTAL);
    if (flooded.rejections !== 1) throw new Error(`Got ${flooded.rejections} rejections instead of one`);
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
};

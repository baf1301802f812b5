// What an echo call over stdio costs the server in CPU, beside a bare line echo, one call at a time and
// with 32 in flight. The driver is the same for both; only the child's own CPU time counts.

import { spawn } from "node:child_process";
import type { Figure } from "./main.ts";
import { median } from "./median.ts";

const CALLS = 20_000;
const ROUNDS = 5;

interface Cost {
  readonly cpuMs: number;
}

/** Starts a child, makes the calls, ends its input, and reads what it says it cost. */
async function drive(script: string, calls: number, inFlight: number): Promise<number> {
  const child = spawn(process.execPath, [new URL(script, import.meta.url).pathname], {
    stdio: ["pipe", "pipe", "pipe"],
  });
  let report = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (report += text));
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  let sent = 0;
  let answered = 0;
  const call = (id: number): string =>
    `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello there"}}}\n`;
  await new Promise<void>((resolve, reject) => {
    child.once("error", reject);
    child.stdout.on("data", (chunk: Buffer) => {
      let batch = "";
      for (const byte of chunk) {
        if (byte !== 10) continue;
        answered += 1;
        if (sent < calls) batch += call((sent += 1));
      }
      if (batch !== "") child.stdin.write(batch);
      if (answered === calls + 1) resolve();
    });
    const initialize = '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}\n';
    child.stdin.write(initialize);
    let first = "";
    while (sent < inFlight) first += call((sent += 1));
    child.stdin.write(first);
  });
  child.stdin.end();
  await exited;
  return (JSON.parse(report.trim().split("\n").at(-1) ?? "{}") as Cost).cpuMs;
}

/** CPU of the calls alone: a run of many calls less a run of few. */
async function perCall(script: string, inFlight: number): Promise<number> {
  const few = await drive(script, 500, inFlight);
  const many = await drive(script, CALLS + 500, inFlight);
  return ((many - few) / CALLS) * 1000;
}

export async function echoCosts(tell: (text: string) => void): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const inFlight of [1, 32]) {
    tell(`echo over stdio, ${inFlight} in flight: ${ROUNDS} rounds of ${CALLS} calls`);
    const bare: number[] = [];
    const ours: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      bare.push(await perCall("bare-echo.js", inFlight));
      ours.push(await perCall("catenary-echo.js", inFlight));
    }
    const detail = `${median(ours).toFixed(1)} us a call, bare ${median(bare).toFixed(1)} us`;
    figures.push({
      name: `echo over stdio, ${inFlight} in flight`,
      value: median(ours) / median(bare),
      unit: "x bare",
      bound: 2.5,
      detail,
    });
  }
  return figures;
}

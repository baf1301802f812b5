// CPU time of a server per echo call over stdio, compared with a bare line echo, with 1 and 32 calls in flight. The driver
// is the same for both and checks every response; only the CPU time of the server counts.

import { spawn } from "node:child_process";
import { median, parseCost, programPath, type Figure, type Measurement } from "./measurement.ts";

const CALLS = 20_000;
const ROUNDS = 5;

const HEAD = '{"jsonrpc":"2.0","id":';
const INITIALIZE = `${HEAD}0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}\n`;

const call = (id: number): string =>
  `${HEAD}${id},"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello there"}}}\n`;

/** Checks that every line is the response to a pending request, without parsing it. */
class PendingCalls {
  /** 1 for each id that was sent and not answered yet. */
  readonly #pending: Uint8Array;
  #rest = "";

  constructor(calls: number) {
    this.#pending = new Uint8Array(calls + 1);
  }

  add(id: number): void {
    this.#pending[id] = 1;
  }

  /** Returns the number of responses that the text completes. Throws for any other line. */
  receive(text: string): number {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      const id = line.startsWith(HEAD) ? Number.parseInt(line.slice(HEAD.length, HEAD.length + 10), 10) : Number.NaN;
      if (this.#pending[id] !== 1 || !isEcho(line, id)) throw new Error(`Unexpected line: ${line}`);
      this.#pending[id] = 0;
    }
    return lines.length;
  }
}

function isEcho(line: string, id: number): boolean {
  if (!line.startsWith(`${id},"result":{`, HEAD.length)) return false;
  return id === 0 || (line.includes('"text":"hello there"') && line.includes('"isError":false'));
}

/** Starts a server, makes the calls, closes its stdin, and returns the CPU time it reports. */
async function run(program: string, calls: number, inFlight: number): Promise<number> {
  const child = spawn(process.execPath, [programPath(program)], { stdio: "pipe" });
  let report = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (report += text));
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const pending = new PendingCalls(calls);
  let sent = 0;
  let answered = 0;
  const next = (): string => {
    sent += 1;
    pending.add(sent);
    return call(sent);
  };
  try {
    await new Promise<void>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", () => reject(new Error(`${program} exited after ${answered} responses: ${report}`)));
      child.stdin.on("error", reject);
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        let batch = "";
        try {
          for (let count = pending.receive(text); count > 0; count -= 1) {
            answered += 1;
            if (sent < calls) batch += next();
          }
        } catch (error) {
          reject(error);
          return;
        }
        if (batch !== "") child.stdin.write(batch);
        if (answered === calls + 1) resolve();
      });
      pending.add(0);
      let first = INITIALIZE;
      while (sent < inFlight) first += next();
      child.stdin.write(first);
    });
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  }
  child.stdin.end();
  await closed;
  return parseCost(report).cpuMs;
}

/** Microseconds of CPU per call: a run of many calls minus a run of few. */
async function costPerCall(program: string, inFlight: number): Promise<number> {
  const few = await run(program, 500, inFlight);
  const many = await run(program, CALLS + 500, inFlight);
  return ((many - few) / CALLS) * 1000;
}

export const measureStdioServer: Measurement = async (onProgress) => {
  const figures: Figure[] = [];
  for (const inFlight of [1, 32]) {
    onProgress(`echo over stdio, ${inFlight} in flight: ${ROUNDS} rounds of ${CALLS} calls`);
    const bare: number[] = [];
    const ours: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      bare.push(await costPerCall("bare-stdio.js", inFlight));
      ours.push(await costPerCall("catenary-stdio.js", inFlight));
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
};

// What an echo call over stdio costs the server in CPU, beside a bare line echo, one call at a time and
// with 32 in flight. The driver is the same for both and looks at every answer; only the child's own CPU counts.

import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Figure } from "./main.ts";
import { median } from "./median.ts";
import { costIn } from "./report.ts";

const CALLS = 20_000;
const ROUNDS = 5;

const HEAD = '{"jsonrpc":"2.0","id":';
const INITIALIZE = `${HEAD}0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}\n`;

const call = (id: number): string =>
  `${HEAD}${id},"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello there"}}}\n`;

/** Holds that every line answers a request that still waits, and with what was asked for; text is not parsed. */
class Answers {
  /** By id: whether it was sent and not answered yet. */
  readonly #waiting: Uint8Array;
  #rest = "";

  constructor(calls: number) {
    this.#waiting = new Uint8Array(calls + 1);
  }

  expect(id: number): void {
    this.#waiting[id] = 1;
  }

  /** How many answers the text has completed; throws with the line that is none. */
  take(text: string): number {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      const id = line.startsWith(HEAD) ? Number.parseInt(line.slice(HEAD.length, HEAD.length + 10), 10) : Number.NaN;
      if (this.#waiting[id] !== 1 || !isEcho(line, id)) throw new Error(`Not an answer that was waited for: ${line}`);
      this.#waiting[id] = 0;
    }
    return lines.length;
  }
}

function isEcho(line: string, id: number): boolean {
  if (!line.startsWith(`${id},"result":{`, HEAD.length)) return false;
  return id === 0 || (line.includes('"text":"hello there"') && line.includes('"isError":false'));
}

/** Starts a child, makes the calls, ends its input, and reads what it says it cost. */
async function drive(script: string, calls: number, inFlight: number): Promise<number> {
  const child = spawn(process.execPath, [fileURLToPath(new URL(script, import.meta.url))], { stdio: "pipe" });
  let report = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (report += text));
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const answers = new Answers(calls);
  let sent = 0;
  let answered = 0;
  const next = (): string => {
    sent += 1;
    answers.expect(sent);
    return call(sent);
  };
  try {
    await new Promise<void>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", () => reject(new Error(`${script} ended after ${answered} answers: ${report}`)));
      child.stdin.on("error", reject);
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        let batch = "";
        try {
          for (let count = answers.take(text); count > 0; count -= 1) {
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
      answers.expect(0);
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
  return costIn(report).cpuMs;
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

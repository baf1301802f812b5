// What an inner call of code mode costs, compared with the same call made directly: both go through one gateway to a
// server over stdio. All processes count: the caller, the gateway, the server, and the session with the code.

import { readFileSync } from "node:fs";
import { connect, type Client } from "catenary";
import { canListProcesses, processes } from "../test/support/processes.ts";
import { BASELINE, createFigure, OURS, takeTurns, type Figure } from "./figures.ts";
import { programPath } from "./measured-server.ts";
import type { Measurement } from "./measurement.ts";

const ROUNDS = 10;
const SLICE = 1_000;
const FIRST_CALLS = 5_000;
const BOUND = { ratio: 2 };
const TICK_MS = 10;
const ARGUMENTS = { text: "hello there" };

export const measureCode: Measurement = async ({ onProgress, divisor }) => {
  if (!canListProcesses) {
    onProgress("left out code: the CPU time of other processes can be read only on Linux");
    return [];
  }
  const client = await connect({ command: process.execPath, args: [programPath("catenary-code.js")] });
  try {
    const figures: Figure[] = [];
    for (const inFlight of [1, 8]) {
      const name = `Call from code, ${inFlight} in flight`;
      onProgress(`${name}: ${ROUNDS / divisor} slices of ${SLICE} calls from code and directly`);
      const measure = (makeCalls: typeof callDirectly) => async (): Promise<number> => {
        const before = cpuMs(client);
        await makeCalls(client, SLICE, inFlight);
        return ((cpuMs(client) - before) / SLICE) * 1000;
      };
      for (const makeCalls of [callDirectly, callFromCode]) await makeCalls(client, FIRST_CALLS / divisor, inFlight);
      const subjects = { [BASELINE]: measure(callDirectly), [OURS]: measure(callFromCode) };
      figures.push(createFigure("code", name, "µs", await takeTurns(subjects, ROUNDS / divisor), BOUND));
    }
    return figures;
  } finally {
    await client.close();
  }
};

async function callDirectly(client: Client, count: number, inFlight: number): Promise<void> {
  let remaining = count;
  const work = async (): Promise<void> => {
    while (remaining > 0) {
      remaining -= 1;
      const { content } = await client.callTool("echo", ARGUMENTS);
      if ((content[0] as { text?: string }).text !== ARGUMENTS.text) throw new Error("The echo is missing");
    }
  };
  await Promise.all(Array.from({ length: inFlight }, work));
}

async function callFromCode(client: Client, count: number, inFlight: number): Promise<void> {
  const code = `{
    let remaining = ${count};
    const work = async () => {
      while (remaining > 0) {
        remaining -= 1;
        if ((await tools.echo.echo(${JSON.stringify(ARGUMENTS)})) !== "${ARGUMENTS.text}") throw new Error("The echo is missing");
      }
    };
    await Promise.all(Array.from({ length: ${inFlight} }, work));
  }`;
  const { isError, content } = await client.callTool("run-code", { code, timeout: 0 });
  if (isError === true) throw new Error(JSON.stringify(content));
}

/** The CPU time of this process, of the gateway, and of all processes that it has started. */
function cpuMs({ program }: Client): number {
  const { user, system } = process.cpuUsage();
  const all = processes();
  const family = new Set([program?.pid]);
  // A parent has started before its children, but may have a greater pid.
  for (let size = 0; size < family.size;) {
    size = family.size;
    for (const { pid, parent } of all) if (family.has(parent)) family.add(pid);
  }
  const others = [...family].map((pid) => ticks(pid) * TICK_MS);
  return others.reduce((sum, ms) => sum + ms, (user + system) / 1000);
}

function ticks(pid: number | undefined): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(fields[11]) + Number(fields[12]);
}

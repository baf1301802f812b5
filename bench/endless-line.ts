// Sends 100 MB without a newline to a server, in chunks of 4 KiB: the time until it has rejected and skipped all of it,
// and the peak of its memory, compared with a bare reader.

import { once } from "node:events";
import { BASELINE, createFigure, OURS, takeTurns } from "./figures.ts";
import { MeasuredServer } from "./measured-server.ts";
import type { Measurement } from "./measurement.ts";

const TOTAL = 100 * 1024 * 1024;
const CHUNK = Buffer.alloc(4 * 1024, 97);
const ROUNDS = 5;
const ping = (id: string): string => `{"jsonrpc":"2.0","id":${id},"method":"ping"}\n`;

/** Sends the bytes, a newline and a ping. Resolves when the ping was answered. */
async function flood(program: string, rejections: number): Promise<{ ms: number; mb: number }> {
  const server = MeasuredServer.startStdio(program);
  const { stdin, stdout } = server.child;
  if (stdin === null || stdout === null) throw new Error(`${program} has no streams`);
  let out = "";
  stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
  const untilAnswered = async (id: string): Promise<void> => {
    while (!out.includes(`"id":${id}`)) await once(stdout, "data");
  };
  // The first ping waits until the server has started, so that the start is not measured.
  stdin.write(ping("0"));
  await untilAnswered("0");
  const startedAt = performance.now();
  for (let sent = 0; sent < TOTAL; sent += CHUNK.length) if (!stdin.write(CHUNK)) await once(stdin, "drain");
  stdin.write(`\n${ping('"ping"')}`);
  await untilAnswered('"ping"');
  const ms = performance.now() - startedAt;
  const { peakMb } = await server.cost();
  await server.stop();
  const rejected = out.split("-32600").length - 1;
  if (rejected !== rejections) throw new Error(`Got ${rejected} rejections instead of ${rejections}`);
  return { ms, mb: peakMb };
}

export const measureEndlessLine: Measurement = async ({ onProgress }) => {
  onProgress(`100 MB without a newline: ${ROUNDS} times`);
  const subjects = { [BASELINE]: () => flood("bare-drain.js", 0), [OURS]: () => flood("catenary-stdio.js", 1) };
  const values = Object.entries(await takeTurns(subjects, ROUNDS));
  const only = (key: "ms" | "mb"): Record<string, number[]> =>
    Object.fromEntries(values.map(([who, each]) => [who, each.map((one) => one[key])]));
  return [
    createFigure("others", "100 MB without a newline, time", "ms", only("ms"), { ratio: 1.5 }),
    createFigure("others", "100 MB without a newline, peak memory", "MB", only("mb"), { ratio: 2.5 }),
  ];
};

// CPU time of a client per call over HTTP, compared with bare node:http: our client in both styles, and SDK 2.x with a
// session. All of them call the same server and check every result.

import { fork } from "node:child_process";
import { once } from "node:events";
import { MeasuredServer, median, nextMessage, programPath, type Measurement } from "./measurement.ts";

const ROUNDS = 3;
const CALLS = 5_000;
const WARM_UP = 2_000;

/** Microseconds of CPU for each call. */
async function measureCaller(kind: string, url: string): Promise<number> {
  const args = [kind, url, String(CALLS), String(WARM_UP)];
  const child = fork(programPath("http-caller.js"), args, { execArgv: ["--no-warnings"] });
  const exited = once(child, "exit");
  const { microseconds } = await nextMessage<{ microseconds: number }>(child, kind);
  await exited;
  return microseconds;
}

export const measureHttpClient: Measurement = async (onProgress) => {
  onProgress(`calls of a client over HTTP: ${ROUNDS} rounds of ${CALLS} calls`);
  const server = await MeasuredServer.start("catenary-http.js");
  const costs = { bare: [], stateless: [], session: [], sdk: [] } as Record<string, number[]>;
  try {
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const [kind, values] of Object.entries(costs)) values.push(await measureCaller(kind, server.url));
    }
  } finally {
    await server.stop();
  }
  const medianOf = (kind: string): number => median(costs[kind] ?? []);
  const others = `bare ${medianOf("bare").toFixed(0)} us, SDK 2.x ${medianOf("sdk").toFixed(0)} us`;
  return ["stateless", "session"].map((kind) => ({
    name: `call of a client over HTTP, ${kind} style`,
    value: medianOf(kind) / medianOf("bare"),
    unit: "x bare",
    detail: `${medianOf(kind).toFixed(0)} us a call, ${others}`,
  }));
};

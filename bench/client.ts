// What a call over HTTP costs the caller in CPU, beside bare node:http in the same run: our client in exchange style and
// in a session, and the official SDK's in a session. All speak to the same server, and every answer is looked at.

import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { MeasuredChild } from "./child.ts";
import type { Figure } from "./main.ts";
import { median } from "./median.ts";

const ROUNDS = 3;
const CALLS = 5_000;
const WARM_UP = 2_000;

/** Microseconds of CPU for each call. */
async function cost(kind: string, url: string): Promise<number> {
  const script = fileURLToPath(new URL("client-caller.js", import.meta.url));
  const child = fork(script, [kind, url, String(CALLS), String(WARM_UP)], { execArgv: ["--no-warnings"] });
  const exited = once(child, "exit");
  const ended = exited.then(([code]) => {
    throw new Error(`${kind} ended with ${String(code)}`);
  });
  const [{ microseconds }] = (await Promise.race([once(child, "message"), ended])) as [{ microseconds: number }];
  ended.catch(() => undefined);
  await exited;
  return microseconds;
}

export async function clientCosts(tell: (text: string) => void): Promise<Figure[]> {
  tell(`calls of a client over HTTP: ${ROUNDS} rounds of ${CALLS} calls`);
  const server = await MeasuredChild.start("catenary-http.js");
  const costs = { bare: [], exchange: [], session: [], sdk: [] } as Record<string, number[]>;
  try {
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const [kind, measured] of Object.entries(costs)) measured.push(await cost(kind, server.url));
    }
  } finally {
    await server.end();
  }
  const of = (kind: string): number => median(costs[kind] ?? []);
  const beside = `bare ${of("bare").toFixed(0)} us, SDK 2.x ${of("sdk").toFixed(0)} us`;
  return ["stateless", "session"].map((kind) => ({
    name: `call of a client over HTTP, ${kind} style`,
    value: of(kind) / of("bare"),
    unit: "x bare",
    detail: `${of(kind).toFixed(0)} us a call, ${beside}`,
  }));
}

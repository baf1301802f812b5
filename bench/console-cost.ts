// `node --import tsx bench/console-cost.ts [SLICES]`: CPU of a call through `catenary up` with the console on, as a ratio to
// one with the console off: while nobody looks, and while a page is open. One run measures all gateways in slices, one after the other.

import { request } from "node:http";
import { overHttp } from "./callers.ts";
import { median, takeTurns } from "./figures.ts";
import type { MeasuredServer } from "./measured-server.ts";

const SUBJECTS = ["off", "off again", "on", "a page is open"];
const SLICE = 1_000;
/** So that the log is full of bodies, as after hours of work. */
const FIRST_CALLS = 30_000;
const TOPICS = "info,calls,overview,log,questions,catalogue,live,transcript";
const slices = Number(process.argv[2] ?? 20);

/** Reads the events of a page, and drops them. */
async function openPage({ console: link = "" }: MeasuredServer): Promise<void> {
  const { origin, hash } = new URL(link);
  const body = JSON.stringify({ token: hash.slice(1) });
  const headers = { "content-type": "application/json" };
  const login = await fetch(`${origin}/api/login`, { method: "POST", headers, body });
  const cookie = (login.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  await new Promise<void>((resolve, reject) => {
    const reading = request(`${origin}/api/events?topics=${TOPICS}`, { headers: { cookie } }, (response) => {
      response.resume();
      if (response.statusCode === 200) resolve();
      else reject(new Error(`The console answered ${response.statusCode}`));
    });
    reading.on("error", () => undefined).end();
  });
}

for (const style of ["session", "stateless"] as const) {
  const start = overHttp({ style, connections: 16 });
  const subjects = await Promise.all(
    SUBJECTS.map(async (name) => ({
      name,
      ...(await start("catenary-console.js", name.startsWith("off") ? "off" : "on")()),
    })),
  );
  for (const { name, server, makeCalls } of subjects) {
    await makeCalls(FIRST_CALLS);
    if (name === "a page is open") await openPage(server);
  }
  const cpu = subjects.map(({ name, server, makeCalls }) => {
    const measure = async (): Promise<number> => {
      const before = await server.cost();
      await makeCalls(SLICE);
      return ((await server.cost()).cpuMs - before.cpuMs) / SLICE;
    };
    return [name, measure] as const;
  });
  const rounds = await takeTurns(Object.fromEntries(cpu), slices);
  const base = rounds["off"] ?? [];
  for (const [name, values] of Object.entries(rounds)) {
    const ratio = median(values.map((value, round) => value / (base[round] ?? Number.NaN)));
    const us = (median(values) * 1_000).toFixed(0);
    process.stdout.write(`${style}, ${name}: ${us} µs, ${ratio.toFixed(3)}x\n`);
  }
  await Promise.all(subjects.map(({ server }) => server.stop()));
}
process.exit();

// `node --import tsx bench/hops.ts`: how many functions of ours one call of a tool runs through, on each path. Counted by
// V8 over many calls, so what happens only now and then does not count. With `--list`, also which functions.

import { overHttp, overStdio } from "./callers.ts";
import { MeasuredServer } from "./measured-server.ts";
import type { Start } from "./measurement.ts";

const CALLS = 200;

/** One connection, so that calls do not share work. */
const session = overHttp({ style: "session" });
const stateless = overHttp({ style: "stateless" });

const client: Start = async () => {
  const target = await MeasuredServer.start("catenary-http.js", [""]);
  const server = await MeasuredServer.start("http-caller.js", ["stateless", target.url]);
  return { server, makeCalls: async (calls) => void (await server.ask({ calls })) };
};

const PATHS: Readonly<Record<string, Start>> = {
  "stdio, session style": overStdio(1)("catenary-stdio.js"),
  "HTTP, session style": session("catenary-http.js"),
  "HTTP, stateless": stateless("catenary-http.js"),
  "gateway, HTTP session style to stdio": session("catenary-gateway.js"),
  "gateway, HTTP stateless to stdio": stateless("catenary-gateway.js"),
  "client, HTTP stateless": client,
};

for (const [path, start] of Object.entries(PATHS)) {
  const { server, makeCalls } = await start();
  await makeCalls(CALLS);
  await server.ask("functions");
  await makeCalls(CALLS);
  const counted = await server.ask<{ name: string; count: number }[]>("functions");
  const each = counted.map(({ name, count }) => ({ name, count: Math.round(count / CALLS) }));
  const used = each.filter(({ count }) => count > 0);
  const calls = used.reduce((sum, { count }) => sum + count, 0);
  process.stdout.write(`${path}: ${used.length} functions, ${calls} calls of them\n`);
  if (process.argv.includes("--list")) {
    for (const { name, count } of used) process.stdout.write(`  ${count} ${name}\n`);
  }
  await server.stop();
}
process.exit();

// The gateway in front of the ends that are killed, as a process of its own: served at once on its stdio and over HTTP,
// with its address as the first line on stderr. Each `--end NAME=REVISIONS` is an end of the worker; one alone is
// passed through as it is, several are merged.

import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { chain, upstream, serve } from "catenary";

const { values } = parseArgs({
  options: { log: { type: "string" }, end: { type: "string", multiple: true } },
});
const WORKER = fileURLToPath(new URL("worker.js", import.meta.url));

function worker(name, revisions) {
  const args = [WORKER, "--log", values.log, "--end", name, ...(revisions === "" ? [] : ["--revisions", revisions])];
  const restart = { firstMs: 5, maxMs: 20, maxFailures: 1_000_000 };
  return upstream({ command: process.execPath, args }, { name, restart, idleMs: 0 });
}

const ends = values.end.map((given) => given.split("="));
const [first] = ends;
const target =
  ends.length === 1 ? worker(...first) : Object.fromEntries(ends.map(([name, of]) => [name, worker(name, of)]));
const gateway = chain().to(target);
const front = await serve(gateway, { http: { port: 0 } });
process.stderr.write(`${front.url}\n`);
await serve(gateway);

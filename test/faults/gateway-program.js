// The gateway in front of the workers that are killed. Serves on stdio and over HTTP at once, and prints its URL as the
// first line on stderr. Each `--upstream NAME=REVISIONS` is a worker; several are merged.

import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { chain, upstream, serve } from "catenary";

const { values } = parseArgs({
  options: { log: { type: "string" }, upstream: { type: "string", multiple: true } },
});
const WORKER = fileURLToPath(new URL("worker-program.js", import.meta.url));

function createWorker(name, revisions) {
  const args = [WORKER, "--log", values.log, "--name", name, ...(revisions === "" ? [] : ["--revisions", revisions])];
  const restart = { firstMs: 5, maxMs: 20, maxFailures: 1_000_000 };
  return upstream({ command: process.execPath, args }, { name, restart, idleMs: 0 });
}

const workers = values.upstream.map((option) => option.split("="));
const [first] = workers;
const target =
  workers.length === 1
    ? createWorker(...first)
    : Object.fromEntries(workers.map(([name, revisions]) => [name, createWorker(name, revisions)]));
const gateway = chain().to(target);
const front = await serve(gateway, { http: { port: 0 } });
process.stderr.write(`${front.url}\n`);
await serve(gateway);

// A server that does not stop: it ignores SIGTERM, SIGINT, SIGHUP and the end of its input. With `--children` it starts
// children in process sessions of their own that ignore the signals too.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, serve } from "catenary";

for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => undefined);
setInterval(() => undefined, 1_000);

if (process.argv.includes("--children")) {
  const script = "trap '' TERM INT HUP; echo ready; while :; do sleep 1000; done";
  for (let count = 0; count < 2; count += 1) {
    const child = spawn("sh", ["-c", script], { detached: true, stdio: ["ignore", "pipe", "ignore"] });
    await once(child.stdout, "data");
    child.unref();
  }
}

const server = createServer({ name: "unstoppable", version: "1" }).tool(
  "pid",
  { inputSchema: { type: "object" } },
  () => String(process.pid),
);
// With given streams, the end of input ends only the connection, not the process.
await serve(server, { stdio: { input: process.stdin, output: process.stdout } });

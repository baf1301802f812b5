// An end that will not go: it ignores SIGTERM, SIGINT, SIGHUP and the end of its input. With `--brood` it has children
// in sessions of their own, which ignore the same.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, serve } from "catenary";

for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => undefined);
setInterval(() => undefined, 1_000);

if (process.argv.includes("--brood")) {
  const script = "trap '' TERM INT HUP; echo ready; while :; do sleep 1000; done";
  for (let count = 0; count < 2; count += 1) {
    const child = spawn("sh", ["-c", script], { detached: true, stdio: ["ignore", "pipe", "ignore"] });
    await once(child.stdout, "data");
    child.unref();
  }
}

const server = createServer({ name: "deaf", version: "1" }).tool("pid", { inputSchema: { type: "object" } }, () =>
  String(process.pid),
);
// On streams that are given, the end of input is the end of the connection alone.
await serve(server, { stdio: { input: process.stdin, output: process.stdout } });

// The conversation with `server-everything` by each of its ways: as a child on stdio, over HTTP with sessions, and by the
// old pair of addresses. It takes unknown arguments in silence, so a mark on its command line finds it among the
// processes; on a port it would listen to the whole world, which the preloaded loopback keeps it from.

import { randomUUID } from "node:crypto";
import { spawn, type ChildProcess } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { connect } from "../../src/client/index.ts";
import { converseWithEverything } from "./everything.ts";
import { runningWith } from "./peer.ts";

const require = createRequire(import.meta.url);
const SCRIPT = require.resolve("@modelcontextprotocol/server-everything/dist/index.js");
const LOOPBACK = fileURLToPath(new URL("fixtures/loopback.ts", import.meta.url));

const mark = `mark-${randomUUID()}`;
converseWithEverything({
  title: "over stdio",
  open: (options) => connect({ command: process.execPath, args: [SCRIPT, "stdio", mark] }, options),
  left: () => runningWith(mark).length,
  stays: 0,
  close: () => undefined,
});

for (const [title, mode, path] of [
  ["over HTTP", "streamableHttp", "/mcp"],
  ["over the old HTTP+SSE", "sse", "/sse"],
] as const) {
  let child: ChildProcess;
  converseWithEverything({
    title,
    open: async (options) => {
      child = spawn(process.execPath, ["--import", "tsx", "--import", LOOPBACK, SCRIPT, mode], {
        env: { ...process.env, PORT: "0" },
        stdio: ["ignore", "ignore", "ignore", "ipc"],
      });
      const port = await new Promise((resolve, reject) => {
        child.once("message", resolve);
        child.once("exit", (code) => reject(new Error(`It left with ${code} before it was ready`)));
      });
      return connect(`http://127.0.0.1:${String(port)}${path}`, options);
    },
    left: () => (child.exitCode === null && child.signalCode === null ? 1 : 0),
    stays: 1,
    close: async () => {
      const gone = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await gone;
    },
  });
}

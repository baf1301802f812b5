// Our client with `server-everything` over stdio, Streamable HTTP and legacy HTTP+SSE. It ignores unknown arguments, so a
// mark on its command line identifies its process. Its port would be open on all interfaces, which the preloaded
// loopback-only.ts prevents.

import { randomUUID } from "node:crypto";
import { spawn, type ChildProcess } from "node:child_process";
import { createRequire } from "node:module";
import { compiled } from "../support/programs.ts";
import { connect } from "../../src/client/index.ts";
import { testServerEverything } from "./server-everything-tests.ts";
import { commandLinesWith } from "./test-client.ts";

const require = createRequire(import.meta.url);
const SCRIPT = require.resolve("@modelcontextprotocol/server-everything/dist/index.js");
const LOOPBACK_ONLY = compiled("fixtures/loopback-only.ts", import.meta.url);

const mark = `mark-${randomUUID()}`;
testServerEverything({
  title: "over stdio",
  open: (options) => connect({ command: process.execPath, args: [SCRIPT, "stdio", mark] }, options),
  running: () => commandLinesWith(mark).length,
  runningAfterClose: 0,
  close: () => undefined,
});

for (const [title, mode, path] of [
  ["over HTTP", "streamableHttp", "/mcp"],
  ["over legacy HTTP+SSE", "sse", "/sse"],
] as const) {
  let child: ChildProcess;
  testServerEverything({
    title,
    open: async (options) => {
      child = spawn(process.execPath, ["--import", LOOPBACK_ONLY, SCRIPT, mode], {
        env: { ...process.env, PORT: "0" },
        stdio: ["ignore", "ignore", "ignore", "ipc"],
      });
      const port = await new Promise((resolve, reject) => {
        child.once("message", resolve);
        child.once("exit", (code) => reject(new Error(`The server exited with ${code} before it was ready`)));
      });
      return connect(`http://127.0.0.1:${String(port)}${path}`, options);
    },
    running: () => (child.exitCode === null && child.signalCode === null ? 1 : 0),
    runningAfterClose: 1,
    close: async () => {
      const exited = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await exited;
    },
  });
}

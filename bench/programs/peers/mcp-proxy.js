// The command `mcp-proxy` in front of the echo server over stdio. It does not tell its port, so a free one is chosen.

import { once } from "node:events";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";

const probe = createServer().listen(0, "127.0.0.1");
await once(probe, "listening");
const { port } = probe.address();
probe.close();
await once(probe, "close");

const upstream = fileURLToPath(new URL("../catenary-stdio.js", import.meta.url));
const options = ["--host", "127.0.0.1", "--port", String(port), "--server", "stream"];
process.argv.splice(2, Infinity, ...options, "--", process.execPath, upstream);
await import("./node_modules/mcp-proxy/dist/bin/mcp-proxy.mjs");

const url = `http://127.0.0.1:${port}`;
const isUp = () =>
  fetch(`${url}/ping`).then(
    ({ ok }) => ok,
    () => false,
  );
while (!(await isUp())) await new Promise((resolve) => setTimeout(resolve, 20));
process.send?.({ url: `${url}/mcp` });

// A gateway over stdio in code mode, with the echo server as an upstream over stdio. `echo` can also be called directly.

import { fileURLToPath } from "node:url";
import { chain, upstream, serve } from "catenary";
import { codeMode } from "catenary/live";

const args = [fileURLToPath(new URL("catenary-stdio.js", import.meta.url))];
const gateway = chain().to({ echo: upstream({ command: process.execPath, args }, { remember: false }) });
const unlimited = { maxCalls: 1e9, maxResultBytes: 1e12 };
await serve(codeMode(gateway, { include: ["echo"], sandbox: false, ...unlimited }));

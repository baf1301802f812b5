// A gateway over HTTP with an empty chain, and the echo server as an upstream over stdio.

import { fileURLToPath } from "node:url";
import { chain, upstream, serve } from "catenary";

const args = [fileURLToPath(new URL("catenary-stdio.js", import.meta.url))];
const gateway = chain().to(upstream({ command: process.execPath, args }, { remember: false }));
const { url } = await serve(gateway, { http: { port: 0 } });
process.send?.({ url });

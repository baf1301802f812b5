// A gateway over HTTP with an empty chain; behind it the echo as a program, reached by stdio.

import { fileURLToPath } from "node:url";
import { chain, upstream, serve } from "catenary";
import { tellCosts } from "./cost.js";

const args = [fileURLToPath(new URL("catenary-echo.js", import.meta.url))];
const gateway = chain().to(upstream({ command: process.execPath, args }, { remember: false }));
const { url } = await serve(gateway, { http: { port: 0 } });
tellCosts(url);

// The server that a crowd comes to (see crowd.ts): `echo` to feel how fast it answers, and `announce`, which changes
// its list of tools, so that everybody who listens has to be told.

import { createServer, serve } from "catenary";
import { tellCosts } from "./cost.js";

const server = createServer({ name: "hall", version: "1" })
  .tool("echo", { description: "Echo a text" }, ({ text }) => String(text))
  .tool("announce", { description: "Change the list of tools" }, () => {
    server.tool("news", { description: "Stands here anew each time" }, () => "none");
    return "announced";
  });

const { url } = await serve(server, { http: { port: 0 } });
tellCosts(url);

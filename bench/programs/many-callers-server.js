// The server under load: `echo` to measure latency, and `announce`, which changes the list of tools, so that every
// stream and subscription is notified.

import { createServer, serve } from "catenary";

let announcements = 0;
const server = createServer({ name: "load", version: "1" })
  .tool("echo", { description: "Echo a text" }, ({ text }) => String(text))
  .tool("announce", { description: "Change the list of tools" }, () => {
    announcements += 1;
    server.tool(`announcement-${announcements}`, { description: "Added by an announcement" }, () => "none");
    return "announced";
  });

const { url } = await serve(server, { http: { port: 0 } });
process.send?.({ url });

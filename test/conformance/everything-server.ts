// Starts the everything server: `--port N` over HTTP (0: any free port; the address is said on stderr), `--stdio`
// on the process's own streams, `--revisions a,b` to speak only those.

import { parseArgs } from "node:util";
import { serve } from "../../src/index.ts";
import { everythingServer } from "./everything/server.ts";

const { values } = parseArgs({
  options: {
    port: { type: "string", default: "3000" },
    stdio: { type: "boolean", default: false },
    revisions: { type: "string" },
  },
});
const spoken = values.revisions === undefined ? {} : { revisions: values.revisions.split(",") };

if (values.stdio) await serve(everythingServer(), spoken);
else {
  const front = await serve(everythingServer(), { ...spoken, http: { port: Number(values.port) } });
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void front.close());
  process.stderr.write(`everything-server listens on ${front.url}\n`);
}

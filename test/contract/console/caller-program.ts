// A server on stdio whose tool says who has called it, as far as handlers know.

import { createServer } from "../../../src/server/server.ts";
import { serve } from "../../../src/serve.ts";

const server = createServer({ name: "noting", version: "1" }).tool(
  "who",
  { description: "Says who calls" },
  (_, context) => JSON.stringify(context.caller),
);
await serve(server);

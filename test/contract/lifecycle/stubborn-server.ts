// A server that would never end by itself: a timer runs, and with `child` a process hangs on it too.

import { createServer } from "../../../src/server/index.ts";
import { connect } from "../../../src/client/index.ts";
import { serve } from "../../../src/serve.ts";

setInterval(() => undefined, 1_000);
const server = createServer({ name: "stubborn", version: "1" })
  .tool(
    "wait",
    { description: "Waits", input: { type: "object", properties: { ms: { type: "number" } } } },
    async ({ ms }) => {
      await new Promise((resolve) => setTimeout(resolve, Number(ms)));
      return "waited";
    },
  )
  .tool("print", { description: "Prints where it should not" }, () => {
    console.log("this line is for people");
    return "printed";
  });

if (process.argv.includes("child")) {
  // Ignores the end of its input and SIGTERM, as bad servers do.
  const script = 'process.on("SIGTERM", () => 0); setInterval(() => 0, 1000); process.stdin.resume();';
  const stubborn = connect({ command: process.execPath, args: ["-e", script] }, { timeoutMs: 60_000 });
  stubborn.catch(() => undefined);
  const close = async (budgetMs?: number): Promise<void> => {
    const soon = new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), 100));
    const client = await Promise.race([stubborn, soon]);
    await client?.close(budgetMs);
  };
  await serve(Object.assign(server, { close }));
} else await serve(server);

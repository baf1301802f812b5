// A server that never exits by itself: it has a timer and, with `child`, a client with a child process.

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
  .tool("print", { description: "Prints to stdout" }, () => {
    console.log("printed line");
    return "printed";
  });

if (process.argv.includes("child")) {
  // The child ignores SIGTERM and the end of its input.
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

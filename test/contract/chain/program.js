// A server as a program, for upstreams that are started: its tools return the process id, ask their caller, end the
// process, and change the lists. `--revisions a,b` limits what it speaks; `--fail FILE` makes it exit at once while the
// file exists; `--log FILE` gets a line for each call that ran.

import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as after } from "node:timers/promises";
import { parseArgs } from "node:util";
import { createServer, serve } from "catenary";

const { values } = parseArgs({
  options: {
    revisions: { type: "string" },
    fail: { type: "string" },
    log: { type: "string" },
    tool: { type: "string" },
  },
});
if (values.fail !== undefined && existsSync(values.fail)) {
  console.error("the program was told to fail");
  process.exit(3);
}

const plain = { inputSchema: { type: "object" } };
const inputOf = (args) => ({ type: "object", properties: args });
let board = "empty";

const server = createServer({ name: "program", version: "1" })
  .tool("pid", plain, () => String(process.pid))
  .tool("echo", { inputSchema: inputOf({ text: { type: "string" } }) }, ({ text }) => {
    if (values.log !== undefined) appendFileSync(values.log, `${String(text)}\n`);
    return text;
  })
  .tool("slow", { inputSchema: inputOf({ ms: { type: "number" } }) }, async ({ ms }, context) => {
    context.progress(1, 2);
    await after(ms, undefined, { signal: context.signal }).catch(() => undefined);
    return String(process.pid);
  })
  .tool("ask", { inputSchema: inputOf({ name: { type: "string" } }) }, async ({ name }, context) => {
    const requestedSchema = { type: "object", properties: { answer: { type: "string" } } };
    const { content } = await context.ask.elicit({ message: `Who is ${String(name)}?`, requestedSchema });
    return `${String(name)}: ${String(content?.answer)}`;
  })
  .tool("roots", plain, async (_args, context) => JSON.stringify((await context.ask.roots()).roots))
  .tool("exit", plain, () => {
    process.exit(7);
  })
  .tool("grow", plain, () => {
    server.tool(`grown-${process.pid}`, plain, () => "grown");
    return "grown";
  })
  .tool("write", { inputSchema: inputOf({ text: { type: "string" } }) }, ({ text }) => {
    board = text;
    server.resourceUpdated("board://one");
    return "written";
  })
  .resource("board://one", { name: "board" }, () => board);

if (values.tool !== undefined) server.tool(values.tool, plain, () => String(process.pid));
await serve(server, values.revisions === undefined ? {} : { revisions: values.revisions.split(",") });

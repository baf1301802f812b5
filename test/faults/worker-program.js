// The upstream that is killed. Its tool first logs to a file which call ran in which process; the text identifies the
// call. `--name NAME` is the name of the upstream, `--revisions a,b` limits the revisions.

import { appendFileSync } from "node:fs";
import { setTimeout as after } from "node:timers/promises";
import { parseArgs } from "node:util";
import { createServer, serve } from "catenary";

const { values } = parseArgs({
  options: { log: { type: "string" }, name: { type: "string" }, revisions: { type: "string" } },
});
const writeLog = (line) => appendFileSync(values.log, `${line}\n`);

const held = new Set();
// A different URI for each upstream, so that the router does not rewrite it.
const uri = `board://${values.name}`;
let board = "empty";
const properties = {
  text: { type: "string" },
  ms: { type: "number" },
  steps: { type: "number" },
  ask: { type: "boolean" },
  hold: { type: "boolean" },
};

const server = createServer({ name: "worker", version: "1" })
  .tool("work", { inputSchema: { type: "object", properties } }, async ({ text, ms, steps, ask, hold }, context) => {
    writeLog(`ran ${process.pid} ${String(text)}`);
    for (let step = 1; step <= (steps ?? 0); step += 1) context.progress(step, steps, text);
    if (ms > 0) await after(ms);
    if (hold) await new Promise((resolve) => held.add(resolve));
    if (!ask) return `${process.pid} ${String(text)}`;
    const requestedSchema = { type: "object", properties: { answer: { type: "string" } } };
    const { content } = await context.ask.elicit({ message: text, requestedSchema });
    return `${process.pid} ${String(content?.answer)}`;
  })
  .tool("release", { inputSchema: { type: "object" } }, () => {
    for (const resolve of held) resolve();
    held.clear();
    return "released";
  })
  .tool("write", { inputSchema: { type: "object", properties } }, ({ text }) => {
    board = text;
    server.resourceUpdated(uri);
    return "written";
  })
  .resource(uri, { name: "board" }, () => board);

let hasLogged = false;
const handler = (request, context) => {
  // Logs for which style this process runs: callers use the style as their name.
  if (!hasLogged)
    writeLog(`here ${process.pid} ${values.name} ${context.caller.info?.name ?? "unknown"} ${Date.now()}`);
  hasLogged = true;
  return server(request, context);
};

await serve(handler, values.revisions === undefined ? {} : { revisions: values.revisions.split(",") });

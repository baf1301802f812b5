// The end that is killed: a program whose tool tells in a file of each call that ran, and in which process, before it
// does anything else. A text stands for one call and for no other. `--end NAME` is what its end is called;
// `--revisions a,b` bounds what it speaks.

import { appendFileSync } from "node:fs";
import { setTimeout as after } from "node:timers/promises";
import { parseArgs } from "node:util";
import { createServer, serve } from "catenary";

const { values } = parseArgs({
  options: { log: { type: "string" }, end: { type: "string" }, revisions: { type: "string" } },
});
const tell = (line) => appendFileSync(values.log, `${line}\n`);

const held = new Set();
// Of each end another, so that a merged chain leaves it as it is.
const uri = `board://${values.end}`;
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
    tell(`ran ${process.pid} ${String(text)}`);
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

let isKnown = false;
const known = (request, context) => {
  // Whose process this is: callers go by the name of their style.
  if (!isKnown) tell(`here ${process.pid} ${values.end} ${context.caller.info?.name ?? "nobody"} ${Date.now()}`);
  isKnown = true;
  return server(request, context);
};

await serve(known, values.revisions === undefined ? {} : { revisions: values.revisions.split(",") });

// The package in Bun and Deno: a fetch handler in the runtime's own server, serving on stdio and over HTTP, and clients
// that connect to a URL and to a command. The same programs for both.

import { afterAll, describe, expect, it } from "vitest";
import { connect } from "../../../src/client/index.ts";
import { REVISIONS } from "../../../src/protocol/revisions/index.ts";
import { outputOf } from "../../support/blocking-program.ts";
import { missingRuntimes, programOf, SERVER, Workspace } from "./runtimes.ts";

const reason = await missingRuntimes();
if (reason !== undefined) console.warn(`Skipped: Bun and Deno, because ${reason}`);

const NAMES = JSON.stringify(REVISIONS.map(({ name }) => name));
const ELICIT = '({ action: "accept", content: { name: "Ann" } })';
const CALLS = `
async function call(client) {
  const lines = [];
  for (const [name, args] of [["echo", { text: "hi" }], ["add", { n: 1 }], ["steps", {}], ["ask", {}], ["slow", {}]]) {
    lines.push((await client.callTool(name, args)).content[0].text);
  }
  return lines.join(" ");
}
`;

const workspace = new Workspace({
  "server.js": SERVER,
  "stdio.js":
    'import { serve } from "catenary"; import { createNotes } from "./server.js"; await serve(createNotes());',
  "fetch.js": `
import { connect } from "catenary";
import { fetchHandler } from "catenary/http";
import { createNotes } from "./server.js";
${CALLS}
const mcp = fetchHandler(createNotes());
const own = globalThis.Bun === undefined ? Deno.serve({ port: 0, onListen() {} }, mcp) : Bun.serve({ port: 0, fetch: mcp });
const port = own.port ?? own.addr.port;
for (const revision of ${NAMES}) {
  // Clients of the oldest revision have no elicitation.
  const options = { revision, elicit: () => ${ELICIT} };
  const client = await connect(\`http://127.0.0.1:\${port}/mcp\`, options);
  console.log(revision, (await client.callTool("echo", { text: "hi" })).content[0].text);
  if (revision >= "2025-11-25") console.log(await call(client));
  await client.close();
}
await mcp.close();
await (own.stop?.(true) ?? own.shutdown());
console.log("closed");
`,
  "http.js": `
import { connect, serve } from "catenary";
import { createNotes } from "./server.js";
${CALLS}
const front = await serve(createNotes(), { http: { port: 0 } });
const client = await connect(front.url, { elicit: () => ${ELICIT} });
console.log(await call(client));
await client.close();
await front.close();
console.log("closed");
`,
  "command.js": `
import { connect } from "catenary";
${CALLS}
const client = await connect({ command: process.execPath, args: ["run", ...(globalThis.Deno ? ["-A"] : []), "stdio.js"] }, { elicit: () => ${ELICIT} });
console.log(await call(client));
await client.close();
console.log("closed");
`,
});
afterAll(() => workspace.remove());

const CALLED = "hi 2 all Ann done\n";

describe.skipIf(reason !== undefined).each([
  ["bun", []],
  ["deno", ["-A"]],
] as const)("in %s", (runtime, flags) => {
  const run = (file: string): string =>
    outputOf(programOf(runtime), ["run", ...flags, file], { cwd: workspace.folder });

  it("in Bun and Deno, a fetch handler answers clients of all revisions", () => {
    const output = run("fetch.js");
    for (const { name } of REVISIONS) expect(output).toContain(`${name} hi\n`);
    expect(output.split(CALLED)).toHaveLength(3);
    expect(output).toMatch(/closed\n$/);
  });

  it("in Bun and Deno, a server on stdio answers", async () => {
    const command = { command: programOf(runtime), args: ["run", ...flags, "stdio.js"], cwd: workspace.folder };
    await using client = await connect(command, { elicit: () => ({ action: "accept", content: { name: "Ann" } }) });
    expect(await client.callTool("ask")).toMatchObject({ content: [{ text: "Ann" }] });
    expect(await client.callTool("add", { n: 1 })).toMatchObject({ content: [{ text: "2" }] });
  });

  it("in Bun and Deno, a server over HTTP answers and closes", () => {
    expect(run("http.js")).toBe(`${CALLED}closed\n`);
  });

  it("in Bun and Deno, a client starts a command", () => {
    expect(run("command.js")).toBe(`${CALLED}closed\n`);
  });
});

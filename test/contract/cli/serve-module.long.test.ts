// `catenary serve FILE.ts` as a person starts a chain of their own: how the chain is found, that stdout has nothing but
// messages, and what is printed if there is no chain.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { catenary, CLI } from "./cli-process.ts";

const folder = mkdtempSync(join(tmpdir(), "catenary-chain-"));
afterAll(() => rmSync(folder, { recursive: true }));

const HEAD = `
import { chain, createServer } from "catenary";
import { transform } from "catenary/chain";

console.log("noise while it is loaded");
const notes = createServer({ name: "notes", version: "1.0.0" }).tool("add", {}, () => "added");
const loud = transform({
  metadata: ({ tools = [], ...rest }) => ({ ...rest, tools: tools.map((tool) => ({ ...tool, title: "LOUD" })) }),
  request: async (request, context, next) => {
    console.log("noise in a call");
    const result: Record<string, unknown> = await next(request, context);
    return { ...result, content: [{ type: "text", text: "ADDED" }] };
  },
});
`;

let count = 0;
function written(text: string): string {
  const file = join(folder, `chain-${(count += 1)}.ts`);
  writeFileSync(file, text);
  return file;
}

async function failure(file: string): Promise<{ code: number | null; err: string }> {
  const { code, out, err } = await catenary(["serve", file]);
  expect(out).toBe("");
  return { code, err };
}

it.each([
  ["the default export", "export default chain(loud).to(notes);"],
  ["the export `chain`", "const made = chain(loud).to(notes); export { made as chain };"],
  ["the only gateway under any name", "export class Other { close() {} } export const mine = chain(loud).to(notes);"],
  ["a gateway in front of a gateway", "export const whole = chain(loud).to({ notes: chain().to(notes) });"],
])("serve FILE.ts serves %s", async (_name, last) => {
  const file = written(HEAD + last);
  const call = await catenary(["call", "add", "--", process.execPath, CLI, "serve", file]);
  expect([call.code, call.out]).toEqual([0, "ADDED\n"]);
  const list = await catenary(["tools", "--json", "--", process.execPath, CLI, "serve", file]);
  expect(JSON.parse(list.out)).toMatchObject({ tools: [{ name: "add", title: "LOUD" }] });
});

it("serve FILE.ts prints nothing but messages on stdout", async () => {
  const file = written(`${HEAD}export default chain(loud).to(notes);`);
  const requests = [
    {
      id: 1,
      method: "initialize",
      params: { protocolVersion: "2025-03-26", capabilities: {}, clientInfo: { name: "test", version: "1" } },
    },
    { id: 2, method: "tools/call", params: { name: "add", arguments: {} } },
  ];
  const input = requests.map((one) => `${JSON.stringify({ jsonrpc: "2.0", ...one })}\n`).join("");
  const { code, out, err } = await catenary(["serve", file], input);
  const answers = out.trimEnd().split("\n");
  expect(answers.map((line) => (JSON.parse(line) as { id: number }).id)).toEqual([1, 2]);
  expect([code, err]).toEqual([0, "noise while it is loaded\nnoise in a call\n"]);
});

it("serve FILE.ts names the candidates if there are several", async () => {
  const last = "export const one = chain(loud).to(notes); export const two = chain().to(notes);";
  const { code, err } = await failure(written(HEAD + last));
  expect(code).toBe(1);
  expect(err).toContain("exports several servers: one, two; export one of them as the default\n");
});

it("serve FILE.ts says that a chain needs an upstream", async () => {
  const { code, err } = await failure(written(`${HEAD}export default chain(loud);`));
  expect(code).toBe(1);
  expect(err).toContain("but the chain has no upstream: write chain(...).to(...) with what it stands in front of\n");
});

it("serve FILE.ts says which exports it looks for", async () => {
  const { code, err } = await failure(written("export const port = 3000;"));
  expect(code).toBe(1);
  expect(err).toContain("exports no server; write one of these, and do not call serve():\n");
  expect(err).toContain("\n  export default chain(...).to(...)\n");
});

it("serve FILE.ts says that there is no file, and why a file cannot be loaded", async () => {
  expect(await failure(join(folder, "none.ts"))).toEqual({
    code: 2,
    err: `catenary: There is no module ${join(folder, "none.ts")}\n`,
  });
  const file = written('import { chains } from "catenary";\nexport default chains;');
  const broken = await failure(file);
  expect(broken.code).toBe(1);
  expect(broken.err).toContain(`catenary: Cannot load ${file}: `);
  expect(broken.err).toContain("chains");
});

// Documents that take long to read, or would never end: they are converted in a thread, and the process goes on. What is
// quick enough for a document of a real API is not refused.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { connect } from "../client/connect.ts";
import { convertText } from "./convert.ts";
import { openapi } from "./index.ts";
import { loadOperations } from "./load.ts";

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "catenary-openapi-"))));
afterAll(() => rm(folder, { recursive: true, force: true }));

const HEAD = "openapi: 3.1.0\nservers: [{url: 'http://127.0.0.1:9'}]\n";
const OK = "paths:\n  /ok:\n    get: {operationId: ok}\n";
const json = (fields: object): string =>
  JSON.stringify({ openapi: "3.1.0", servers: [{ url: "http://127.0.0.1:9" }], ...fields });
const lines = (count: number, line: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => line(at)).join("");
const ok = { get: { operationId: "ok" } };

/** The names of the tools, or the error, and how often the event loop of this thread went round meanwhile. */
async function read(text: string): Promise<{ outcome: string | string[]; rounds: number }> {
  const document = join(folder, `document.${text.startsWith("{") ? "json" : "yaml"}`);
  await writeFile(document, text);
  const server = openapi({ document });
  let rounds = 0;
  const timer = setInterval(() => (rounds += 1), 1);
  const outcome = await connect(server).then(
    async (client) => {
      const { tools } = await client.listTools();
      await client.close();
      return tools.map(({ name }) => name);
    },
    (error: Error) => error.message,
  );
  clearInterval(timer);
  await server.close();
  return { outcome, rounds };
}

const SELF = `${HEAD}paths:
  /a:
    post:
      requestBody:
        content:
          application/json:
            schema: &s {type: object, properties: {a: {anyOf: [*s, *s]}, b: *s}}
`;
const nine = (of: string): string => Array.from({ length: 9 }, () => of).join(",");
const BOMB = `${HEAD}${OK}x:\n  a: &a [${nine("1")}]\n${lines(8, (at) => {
  const [before, name] = "abcdefghi".slice(at);
  return `  ${name}: &${name} [${nine(`*${before}`)}]\n`;
})}`;
const chain = Object.fromEntries(
  Array.from({ length: 60_000 }, (_, at) => [`p${at}`, { $ref: `#/components/parameters/p${at + 1}` }]),
);
const refers = { get: { parameters: [{ $ref: "#/components/parameters/p0" }] } };

it.each([
  ["a YAML alias of itself", SELF, "it has a YAML alias for a value that contains the alias"],
  ["aliases of aliases", BOMB, "Excessive alias count"],
  ["YAML that is nested too deep", `${HEAD}${OK}x: ${"[".repeat(20_000)}`, "Maximum call stack size exceeded"],
  [
    "JSON that is nested too deep",
    `${json({ paths: { "/ok": ok } }).slice(0, -1)},"x":${"[".repeat(1e5)}${"]".repeat(1e5)}}`,
    "nested more than 200",
  ],
  ["a long chain of references", json({ paths: { "/ok": refers }, components: { parameters: chain } }), "is too long"],
  [
    "too many operations",
    json({
      paths: Object.fromEntries(
        Array.from({ length: 20_000 }, (_, at) => [`/p${at}`, { get: { operationId: "same" } }]),
      ),
    }),
    "more than 10000 operations",
  ],
  ["a long path", json({ paths: { [`/${"{".repeat(200_000)}`]: ok } }), "its path is longer than 4096 characters"],
])("refuses a document with %s", async (_what, text, problem) => {
  const { outcome, rounds } = await read(text);
  expect(outcome).toContain(problem);
  expect(rounds).toBeGreaterThan(0);
});

it("reads a document with many keys, operations of the same id, and a brace in its address", async () => {
  const keys = `x:\n${lines(5_000, (at) => `  k${at}: 1\n`)}`;
  const paths = `paths:\n${lines(100, (at) => `  /p${at}:\n    get: {operationId: same}\n`)}`;
  const { outcome } = await read(`${HEAD}${keys}${paths}`);
  expect(outcome).toEqual(["same", ...Array.from({ length: 99 }, (_, at) => `same_${at + 2}`)]);
  const braces = json({ servers: [{ url: `http://127.0.0.1:9/${"{".repeat(200_000)}` }], paths: { "/ok": ok } });
  expect((await read(braces)).outcome).toEqual(["ok"]);
});

it("leaves out the operations after those whose schemas are too long together", async () => {
  const field = { type: "string", description: "d".repeat(400) };
  const properties = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`p${at}`, field]));
  const body = { content: { "application/json": { schema: { type: "object", properties } } } };
  const requestBody = { $ref: "#/components/requestBodies/body" };
  const paths = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`/p${at}`, { post: { requestBody } }]));
  const text = json({ paths, components: { requestBodies: { body } } });
  const { operations, problems } = await convertText(text, "document.json", {});
  expect(JSON.stringify(operations).length).toBeLessThan(32_000_000);
  expect(operations.length).toBeGreaterThan(50);
  expect(operations.length + problems.length).toBe(100);
  expect(problems.at(-1)).toMatch(/^POST \/p99 \(.* longer than 32000000 characters; choose some with include\)$/);
});

it("ends a conversion that takes too long, and one whose server is closed", async () => {
  const document = join(folder, "slow.yaml");
  await writeFile(document, `${HEAD}${OK}x:\n${lines(5_000, (at) => `  k${at}: 1\n`)}`);
  const stop = new AbortController();
  await expect(loadOperations({ document }, stop.signal, 1)).rejects.toThrow("took more than 0.001 s to convert");
  const loading = loadOperations({ document }, stop.signal);
  stop.abort(new Error("closed"));
  await expect(loading).rejects.toThrow();
});

it("does not read a file that never ends", async () => {
  await expect(loadOperations({ document: "/dev/zero" }, new AbortController().signal)).rejects.toThrow("/dev/zero");
});

it("shows the patterns of a document, and does not run them", async () => {
  const pattern = "^([a-zA-Z0-9_.-]+)*@example$";
  const parameters = [{ name: "mail", in: "query", schema: { type: "string", pattern, maxLength: 50 } }];
  const post = { operationId: "send", parameters };
  const requestBody = { content: { "application/json": { schema: { patternProperties: { [pattern]: {} } } } } };
  const server = openapi({
    document: JSON.parse(json({ paths: { "/a": { post: { ...post, requestBody } } } })) as object as never,
  });
  const client = await connect(server);
  const [tool] = (await client.listTools()).tools;
  expect(tool?.inputSchema).toMatchObject({ properties: { mail: { pattern } } });
  const body = { ["a".repeat(40)]: 1 };
  // The API cannot be reached, so the arguments have passed the check.
  const sent = await client.callTool("send", { mail: "a".repeat(40), body });
  expect(JSON.stringify(sent.content)).not.toContain("mail");
  const refused = await client.callTool("send", { mail: "a".repeat(51), body });
  expect(JSON.stringify(refused.content)).toContain("mail: must NOT have more than 50 characters");
  await client.close();
  await server.close();
});

// What callers of a gateway in code mode see, find and call: each what its own list has, through the gateway.

import { afterEach, expect, it } from "vitest";
import { fakeClient, fakeContext } from "../../test/support/handlers/fake-client.ts";
import { hasSbcl } from "../../test/support/setup/sbcl.ts";
import { IS_LONG } from "../../test/support/thoroughness.ts";
import { chain } from "../chain/chain.ts";
import type { Gateway } from "../chain/gateway.ts";
import { filter } from "../chain/transforms/filter.ts";
import { search } from "../chain/transforms/search.ts";
import type { Client } from "../client/client.ts";
import { connect } from "../client/connect.ts";
import { ConnectionError } from "../core/errors.ts";
import type { Handler, Result } from "../core/handler.ts";
import { evaluatesCode } from "../core/handler-marks.ts";
import { REVISIONS } from "../protocol/revisions/index.ts";
import { TASKS_EXTENSION } from "../protocol/tasks.ts";
import { createServer, type Server } from "../server/server.ts";
import { connectInMemory } from "../testing.ts";
import { codeMode, type CodeMode, type CodeModeOptions, javascript } from "./index.ts";
import { sandboxProblem } from "./sandbox.ts";

const input = { type: "object", properties: { query: { type: "string" } }, required: ["query"] } as const;

function notes(): Server {
  return createServer({ name: "notes", version: "1.0.0", instructions: "Be brief." })
    .tool("search", { description: "Finds notes.", inputSchema: input, input: undefined }, ({ query }) => ({
      hits: [query],
    }))
    .tool("delete-all", { description: "Deletes all notes.", annotations: { destructiveHint: true } }, () => "gone")
    .resource("notes://today", { name: "Today" }, () => "Water the plants.");
}

const mail = (): Server =>
  createServer({ name: "mail", version: "1.0.0" })
    .tool(
      "search",
      { description: "Finds mails.", inputSchema: input, input: undefined },
      ({ query }) => `mail about ${String(query)}`,
    )
    .tool("send", { description: "Sends a mail." }, () => "sent");

let opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of opened.toReversed()) await one.close();
  opened = [];
});

async function start(
  given: CodeModeOptions = {},
  gateway: Gateway = chain().to({ notes: notes(), "big-mail": mail() }),
): Promise<{ client: Client; code: CodeMode<Gateway>; call: (name: string, args: object) => Promise<string> }> {
  const code = codeMode(gateway, { sandbox: false, ...given });
  const client = await connect(code);
  opened.push(code, client);
  const call = async (name: string, args: object): Promise<string> => {
    const { content } = await client.callTool(name, args as never);
    return content.map((block) => (block.type === "text" ? block.text : block.type)).join("\n");
  };
  return { client, code, call };
}

const toolsOf = async (client: Client): Promise<string[]> => (await client.listTools()).tools.map(({ name }) => name);

it("shows three tools, and those that are included", async () => {
  const { client } = await start();
  expect(await toolsOf(client)).toEqual(["search-tools", "describe-tools", "run-code"]);
  const { client: other } = await start({ include: ["*_search"] });
  expect(await toolsOf(other)).toEqual([
    "search-tools",
    "describe-tools",
    "run-code",
    "notes_search",
    "big-mail_search",
  ]);
});

it("shows definitions that are small", async () => {
  const { client } = await start();
  const { tools } = await client.listTools();
  expect(JSON.stringify(tools).length).toBeLessThan(2_500);
});

it("names the servers in the description of run-code, and no more than fit", async () => {
  const describe = async (upstreams: Record<string, Server>): Promise<string> => {
    const { client } = await start({}, chain().to(upstreams));
    return (await client.listTools()).tools.at(-1)?.description ?? "";
  };
  expect(await describe({ notes: notes(), "big-mail": mail() })).toMatch(
    / Servers: notes \(2 tools\), big_mail \(2\)\.$/,
  );
  expect(await describe({ notes: notes() })).toMatch(/ Servers: notes \(2 tools\)\.$/);
  const many = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`server-${at}`, mail()]));
  const [, directory = ""] = / Servers: (.*)$/.exec(await describe(many)) ?? [];
  expect(directory.length).toBeLessThan(650);
  expect(directory).toMatch(/^server_0 \(2 tools\), server_1 \(2\), .* and \d+ more\.$/);
});

it("puts how to use it before the instructions of the servers", async () => {
  const { client } = await start({}, chain().to(notes()));
  expect(client.instructions).toMatch(/^The tools of this server are called from code\..*\n\nBe brief\.$/);
});

it("finds tools by words, as code calls them", async () => {
  const { client, call } = await start();
  expect(await call("search-tools", { query: "find notes" })).toBe(
    "notes.search({ query: string }) - Finds notes.\nnotes.delete_all() - Deletes all notes.\nbig_mail.search({ query: string }) - Finds mails.",
  );
  const { structuredContent } = await client.callTool("search-tools", { query: "send", limit: 1 });
  expect(structuredContent).toMatchObject({ tools: [{ name: "big_mail.send" }], total: 1 });
});

it("describes tools as TypeScript, by path or by shown name, and says which do not exist", async () => {
  const { client, call } = await start();
  expect(await call("describe-tools", { names: ["notes.search", "tools.notes.delete_all", "big-mail_search"] })).toBe(
    `declare const tools: {
  notes: {
    /** Finds notes. */
    search(args: { query: string }): Promise<string | object>;
    /** Deletes all notes. */
    delete_all(args?: object): Promise<string | object>;
  };
  big_mail: {
    /** Finds mails. */
    search(args: { query: string }): Promise<string | object>;
  };
};
`,
  );
  const wrong = await client.callTool("describe-tools", { names: ["notes.serch"] });
  expect(wrong).toMatchObject({
    isError: true,
    content: [{ text: expect.stringContaining("did you mean notes.search?") }],
  });
});

it.each([
  [
    "lisp",
    '(call-tool "box.find" :query string [:max-results integer] [:sort-by {"name" | "date"}] ["baseURL" string])',
    '(call-tool "box.empty")',
    '(call-tool "box.list_all" :path string)',
  ] as const,
  [
    "smalltalk",
    `Tools box find: { 'query' -> string. 'maxResults' -> integer (optional). 'sort_by' -> "name" | "date" (optional). 'baseURL' -> string (optional) }`,
    "Tools box empty",
    "Tools call: 'box.list_all' with: { 'path' -> string }",
  ] as const,
])("shows calls as %s writes them", async (language, find, empty, listAll) => {
  const inputSchema = {
    type: "object",
    properties: {
      maxResults: { type: "integer", description: "How many." },
      query: { type: "string" },
      sort_by: { enum: ["name", "date"] },
      baseURL: { type: "string" },
    },
    required: ["query"],
  } as const;
  const listed = { type: "object", properties: { path: { type: "string" } }, required: ["path"] } as const;
  const box = createServer({ name: "box", version: "1.0.0" })
    .tool("find", { description: "Finds things. In a box.", inputSchema, input: undefined }, () => "none")
    .tool("empty", { description: "Empties it." }, () => "empty")
    .tool("list_all", { inputSchema: listed, input: undefined }, () => "all");
  const { client, call } = await start({ language }, chain().to({ box }));
  expect(await call("search-tools", { query: "things" })).toBe(`${find} - Finds things.`);
  expect(await call("describe-tools", { names: ["box.find", "box.empty"] })).toBe(
    [
      find,
      "Finds things. In a box.",
      "  maxResults (optional): number - How many.",
      "  query: string",
      '  sort_by (optional): "name" | "date"',
      "  baseURL (optional): string",
      empty,
      "Empties it.",
    ].join("\n"),
  );
  expect(await call("describe-tools", { names: ["box.list_all"] })).toBe(`${listAll}\n  path: string`);
  const { tools } = await client.listTools();
  expect(JSON.stringify(tools.slice(0, 2))).not.toMatch(/TypeScript|tools\.NAME/);
});

const box = (): Server =>
  createServer({ name: "box", version: "1.0.0" }).tool(
    "find",
    {
      description: "Finds things.",
      inputSchema: { type: "object", properties: { query: { type: "string" }, maxResults: { type: "integer" } } },
      input: undefined,
    },
    (args) => JSON.stringify(args),
  );

it.skipIf(!hasSbcl())("shows signatures of Lisp to code in Lisp, and sends the names of the schema", async () => {
  const { call } = await start({ language: "lisp" }, chain().to({ box: box() }));
  const signature = '(call-tool "box.find" [:query string] [:max-results integer])';
  const code = `(format t "~{~A~%~}" (mapcar (lambda (tool) (getf tool :signature)) (append (tools) (search-tools "find"))))
    (write-string (call-tool "box.find" :max-results 2)) (values)`;
  const text = await call("run-code", { code });
  expect(text.split("\n").slice(0, 3)).toEqual([signature, signature, '{"maxResults":2}']);
});

it.runIf(IS_LONG)("shows signatures of Smalltalk to code in Smalltalk", async () => {
  const { call } = await start({ language: "smalltalk" }, chain().to({ box: box() }));
  const code = "{ Tools catalogue first at: 'signature'. (Tools search: 'find') first at: 'signature' }";
  const signature = "'Tools box find: { ''query'' -> string (optional). ''maxResults'' -> integer (optional) }'";
  expect(await call("run-code", { code })).toContain(`=> an Array (${signature} ${signature})`);
});

it("runs code that calls the tools of all upstreams", async () => {
  const { call } = await start();
  const code = `
    const [a, b] = await Promise.all([tools.notes.search({ query: "x" }), tools.big_mail.search({ query: "y" })]);
    console.log(a.hits[0], b, tools.catalogue.length, (await tools.search("send"))[0].path);`;
  const text = await call("run-code", { code });
  expect(text).toContain("x mail about y 4 big_mail.send");
  expect(text).toMatch(/calls: notes\.search \d+ ms .*, big_mail\.search \d+ ms/);
});

it("tells callers who subscribe to the task of a run when it has ended", async () => {
  const { code } = await start();
  const capabilities = { extensions: { [TASKS_EXTENSION]: {} } };
  const { call, notifications } = fakeClient(code, { caller: { capabilities } });
  const task = await call("tools/call", { name: "run-code", arguments: { code: "6 * 7" } });
  expect(task).toMatchObject({ resultType: "task" });
  const { taskId } = task;
  await call("subscriptions/listen", { notifications: { taskIds: [taskId] } });
  expect(notifications[0]).toMatchObject({ params: { notifications: { taskIds: [taskId] } } });
  expect(notifications.at(-1)).toMatchObject({
    method: "notifications/tasks",
    params: { taskId, status: "completed", result: { content: [{ text: "=> 42" }] } },
  });
});

it("names the only upstream in paths", async () => {
  const { call } = await start({}, chain().to({ notes: notes() }));
  expect(await call("search-tools", { query: "delete" })).toBe("notes.delete_all() - Deletes all notes.");
});

it.runIf(IS_LONG)("offers each caller what its own list has", async () => {
  const { call } = await start(
    {},
    chain(filter({ tools: { exclude: ["*delete*"] } })).to({ notes: notes(), mail: mail() }),
  );
  expect(await call("search-tools", { query: "delete" })).toMatch(/^No tool matches; there are 3 tools/);
  const text = await call("run-code", {
    code: `["delete_all" in tools.notes, await tools.notes.delete_all({}).catch((error) => error.message)]`,
  });
  expect(text).toMatch(/false/);
  expect(text).toContain("There is no tool notes.delete_all");
  expect(text).not.toContain("gone");
});

it.runIf(IS_LONG)("passes resources and other tools on, and shows the resources of sessions beside", async () => {
  const { client, call } = await start();
  await call("run-code", { code: "1 + 1" });
  const uris = (await client.listResources()).resources.map(({ uri }) => uri);
  expect(uris).toContain("notes://today");
  const ours = uris.find((uri) => uri.startsWith("live://"));
  expect(ours).toBeDefined();
  expect((await client.readResource(String(ours))).contents).toHaveLength(1);
  expect((await client.readResource("notes://today")).contents).toMatchObject([{ text: "Water the plants." }]);
  expect(await call("send", {})).toBe("sent");
});

it("leaves resources to a gateway that has live sessions itself", async () => {
  const { client } = await start({}, chain().to({ js: javascript(), notes: notes() }));
  const { resources } = await client.listResources();
  expect(new Set(resources.map(({ uri }) => uri)).size).toBe(resources.length);
});

it.runIf(IS_LONG)("offers resources although the gateway has none", async () => {
  const { client, call } = await start({}, chain().to({ mail: mail() }));
  await call("run-code", { code: "1" });
  expect((await client.listResources()).resources.every(({ uri }) => uri.startsWith("live://"))).toBe(true);
});

it("has all that the gateway has, and closes it", async () => {
  const gateway = chain().to({ notes: notes() });
  const code = codeMode(gateway);
  expect(evaluatesCode(code)).toBe(true);
  expect(Object.keys(code.status())).toEqual(["notes"]);
  expect(code.upstreams).toBe(gateway.upstreams);
  await code.close();
  const refused = (one: Gateway): Promise<Result> => one({ method: "tools/list", params: {} }, fakeContext().context);
  await expect(refused(code)).rejects.toThrow("The gateway is closed");
  await expect(refused(gateway)).rejects.toThrow("The gateway is closed");
});

it("can stand behind other middleware, and in front of any handler", async () => {
  const code = codeMode(notes());
  const gateway = chain(search()).to(code);
  const client = await connect(gateway);
  opened.push(gateway, client);
  expect(await toolsOf(client)).toEqual(["search-tools", "describe-tools", "call-tool"]);
  const direct = await connect(code);
  opened.push(direct);
  expect(await direct.callTool("search-tools", { query: "delete" })).toMatchObject({
    content: [{ text: "delete_all() - Deletes all notes." }],
  });
});

it.runIf(IS_LONG)("runs code in a sandbox, or says what is missing", async () => {
  const problem = await sandboxProblem();
  const { client } = await start({ sandbox: {} });
  const code = `await tools.notes.search({ query: "x" }); (await import("node:fs")).existsSync("${process.cwd()}/README.md")`;
  const { content, isError } = await client.callTool("run-code", { code });
  if (problem === undefined)
    expect(content).toMatchObject([{ text: "=> false" }, { text: expect.stringContaining("calls:") }]);
  else expect(content).toMatchObject([{ text: expect.stringContaining("bubblewrap") }]);
  expect(isError === true).toBe(problem !== undefined);
});

it.runIf(IS_LONG).each(REVISIONS.map(({ name }) => name))("works for callers of %s", async (revision) => {
  const code = codeMode(chain().to({ notes: notes(), mail: mail() }), { sandbox: false });
  const { client, close } = await connectInMemory(code, { revision });
  opened.push(code, { close });
  expect(await toolsOf(client)).toEqual(["search-tools", "describe-tools", "run-code"]);
  const { content } = await client.callTool("run-code", { code: "(await tools.notes.search({ query: 'ab' })).hits" });
  expect(JSON.stringify(content)).toContain("ab");
});

it("gives text that the structured content lacks as `text`, unless the properties can have any name", async () => {
  const counts = { type: "object", additionalProperties: { type: "number" } } as const;
  const words = createServer({ name: "words", version: "1.0.0" }).tool(
    "count",
    { outputSchema: counts, output: undefined },
    () => ({ content: [{ type: "text", text: "one cat" }], structuredContent: { cat: 1 } }),
  );
  const { call } = await start({}, chain().to({ js: javascript(), notes: notes(), words }));
  const code = `const { status, text } = await tools.js.evaluate_js({ code: "1 + 1" });
    [status, text, await tools.notes.search({ query: "x" }), await tools.words.count()]`;
  expect(await call("run-code", { code })).toContain("=> [ 'ok', '=> 2', { hits: [ 'x' ] }, { cat: 1 } ]");
});

it("names the upstream that a chain lacks", () => {
  expect(() => codeMode(chain() as never)).toThrow("codeMode(): the chain has no upstream: write chain(...).to(...)");
});

it.each([
  [{ language: "cobol" }, '`language` must be "js", "lisp" or "smalltalk"'],
  [{ inclued: [] }, "has no option `inclued`; did you mean `include`?"],
  [{ include: "x" }, "`include` must be an array"],
  [{ confirm: "always" }, '`confirm` must be "destructive"'],
  [{ maxCalls: 0 }, "`maxCalls` must be a whole number above 0"],
  [
    { language: "smalltalk", command: "pharo", image: "/tmp/x.image" },
    "`image` cannot be used: code in an image of Pharo, Squeak or Cuis cannot call tools; code mode needs Amber",
  ],
  [{ language: "smalltalk", command: "pharo" }, "`command` cannot be used: is not gst"],
  [{ limits: { timeoutMs: "x" } }, "`limits.timeoutMs` must be a number"],
])("refuses the options %j", (given, message) => {
  expect(() => codeMode(notes(), given as never)).toThrow(message);
});

it.each(["tools/call", "tools/list"])("does not show the output of an upstream that exits in %s", async (failing) => {
  const upstream: Handler = async ({ method }) => {
    if (method === failing) throw new ConnectionError("closed", "node exited", { diagnostics: "; its stderr: secret" });
    return { tools: [{ name: "die", inputSchema: { type: "object" } }] };
  };
  const { call } = await start({}, chain().to(upstream));
  const text = await call("run-code", { code: "await tools.die()" });
  expect(text).toContain("node exited");
  expect(text).not.toContain("secret");
});

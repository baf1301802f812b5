// Options that are undefined are absent. This project is compiled with `exactOptionalPropertyTypes`, so the compiler checks
// here that the type of every optional option of every entry allows undefined, also options within options.

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { PassThrough } from "node:stream";
import { expect, it } from "vitest";
import { z } from "zod";
import * as oauth from "../../src/auth/oauth/index.ts";
import * as chain from "../../src/chain/index.ts";
import * as middleware from "../../src/chain/middleware/index.ts";
import type * as client from "../../src/client/index.ts";
import type { Handler } from "../../src/core/handler.ts";
import type * as config from "../../src/config/index.ts";
import * as http from "../../src/http.ts";
import * as main from "../../src/index.ts";
import * as live from "../../src/live/index.ts";
import * as openapi from "../../src/openapi/index.ts";
import * as programs from "../../src/programs/index.ts";
import { NEWEST, NEWEST_SESSION } from "../../src/protocol/revisions/index.ts";
import * as server from "../../src/server/index.ts";
import * as stdio from "../../src/stdio.ts";
import * as testing from "../../src/testing.ts";

const { connect, createServer, serve } = main;
const { connectInMemory } = testing;

const none = undefined;

type Call = (...args: never) => unknown;
type Plain = string | number | boolean | null | undefined | Call | Promise<unknown> | URL | Uint8Array;

/** The paths of the optional fields, down to this many levels, whose type does not allow undefined. */
type Paths<Value, Levels extends readonly unknown[]> = Levels extends readonly [unknown, ...infer Deeper]
  ? Value extends Plain
    ? never
    : Value extends readonly (infer Item)[]
      ? `[]${Paths<Item, Deeper>}`
      : {
          [Key in keyof Value & string]-?:
            | (string extends Key ? never : IsExact<Value, Key> extends true ? `.${Key}` : never)
            | `.${string extends Key ? "*" : Key}${Paths<NonNullable<Value[Key]>, Deeper>}`;
        }[keyof Value & string]
  : never;
type IsExact<Value, Key extends keyof Value> =
  {} extends Pick<Value, Key> ? (undefined extends Required<Value>[Key] ? false : true) : false;

type At<List, Index> = Index extends keyof List ? NonNullable<List[Index]> : never;
type PathsOfArguments<Call> = Call extends ((...args: infer List) => unknown) | (new (...args: infer List) => unknown)
  ? { [Index in "0" | "1" | "2"]: `${Index}${Paths<At<List, Index>, [1, 2, 3, 4]>}` }["0" | "1" | "2"]
  : never;
type PathsOfMembers<Members> = {
  [Name in keyof Members & string]: `${Name} ${PathsOfArguments<Members[Name]>}`;
}[keyof Members & string];

/** Data, and objects with methods that users write, are not options. */
type IsData =
  | `${string}.privateKey.${string}` // JsonWebKey
  | `${string}.jwks.keys[]${string}`
  | `${string}.auth.${"answered" | "extensions" | "document" | "insufficientScope"}`
  | `${string}.grant.rejectServer`
  | `${string}.${"input" | "output"}.${"_construct" | "_writev" | `errored.${string}`}` // streams of Node
  | `${"to 0.*" | "to 0"}.close`
  | `inputRequired 0.*.params`
  | `encode ${string}` // messages
  | `notify 0.params`
  | `complete ${string}`
  | `${"handler" | "ConfigError" | "describeProblem"} ${string}`
  | `createGateway 0${string}`; // what loadConfig() returns

type Made<Create extends (...args: never) => unknown> = PathsOfMembers<Awaited<ReturnType<Create>>>;
type All = [
  PathsOfMembers<typeof main & typeof server & typeof client & typeof oauth>,
  PathsOfMembers<typeof chain & typeof middleware & typeof live & typeof openapi & typeof programs>,
  PathsOfMembers<typeof config & typeof http & typeof stdio & typeof testing>,
  Made<typeof main.createServer>,
  Made<typeof main.connect>,
  Made<typeof main.chain>,
];
type Wrong = Exclude<All[number], IsData>;

it("has types that take undefined for every optional option of every entry", () => {
  const wrong: [Wrong] extends [never] ? "none" : `missing: ${Wrong}` = "none";
  expect(wrong).toBe("none");
});

it("takes undefined for every optional option of a server, a client and what serves them", async () => {
  const common = { title: none, description: none, icons: none, scopes: none, visible: none, _meta: none };
  const echo = server.defineTool({
    ...common,
    name: "echo",
    input: z.object({ text: z.string() }),
    inputSchema: none,
    output: none,
    outputSchema: none,
    annotations: none,
    task: none,
    handler: ({ text }) => text,
  });
  const notes = createServer({
    name: "a",
    version: "1",
    instructions: none,
    listChanged: none,
    subscribe: none,
    logging: none,
    capabilities: none,
    pageSize: none,
    sealKey: none,
    cache: none,
    tasks: { max: none, ttlMs: none },
    onError: none,
    maskErrors: none,
  })
    .tools([echo])
    .resource("a:b", { ...common, name: none, mimeType: none, size: none, cache: none }, () => "x")
    .template("t:{id}", { ...common, list: none, complete: { id: none } }, ({ id }) => id)
    .prompt("p", { ...common, arguments: { a: { title: none, required: none, complete: none } } }, () => "x")
    .method("acme/m", { input: none, scopes: none }, () => ({}));
  const front = await serve(notes, {
    http: { port: 0, host: none, path: none, auth: none, allowedHosts: none, stateless: none, env: none },
    stdio: none,
    limits: none,
    ordering: none,
    revisions: none,
    parkedCalls: { ttlMs: none, sealKey: none },
    maxInFlight: none,
    graceMs: none,
  });
  const caller = await connect(front.url, {
    info: none,
    revision: none,
    timeoutMs: none,
    startTimeoutMs: none,
    onLog: none,
    elicit: none,
    headers: none,
    auth: none,
    signal: none,
  });
  expect((await caller.callTool("echo", { text: "hi" }, { timeoutMs: none, signal: none })).content).toEqual([
    { type: "text", text: "hi" },
  ]);
  expect(caller.capabilities).toMatchObject({ logging: {}, tools: { listChanged: true } });
  await caller.close();
  await front.close();
  await http.fetchHandler(notes, { auth: none, env: none }).close();
});

/** Arrays in arrays, beyond the depth that is allowed by default. */
const deep = `${"[".repeat(200)}${"]".repeat(200)}`;
const limits = { depth: none, messageBytes: none, batch: none };

it("keeps the default of a limit that is undefined, on both sides of HTTP", async () => {
  const nested = createServer({ name: "a", version: "1" }).tool("deep", {}, () => ({
    deep: JSON.parse(deep) as object,
  }));
  await using front = await serve(nested, { http: { port: 0, limits } });
  const body = `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"deep":${deep}}}`;
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  expect(await (await fetch(front.url, { method: "POST", headers, body })).text()).toContain("deeper than 128 levels");
  await using caller = await connect(front.url, { limits });
  await expect(caller.callTool("deep", {})).rejects.toThrow("deeper than 128 levels");
});

it("keeps the default of a limit that is undefined, on stdio", async () => {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const transport = stdio.stdioTransport({ input, output, limits, protectStdout: none });
  const arrived = new Promise<unknown>((resolve) => void transport.start(resolve));
  input.write(`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"deep":${deep}}}\n`);
  expect(JSON.stringify(await arrived)).toContain("deeper than 128 levels");
  await transport.close();
});

it("keeps the defaults of sessions of the SDK, of a connection in memory, and of metrics", async () => {
  let made = 0;
  const sdk = chain.fromSdk(
    () => {
      made += 1;
      return new McpServer({ name: "a", version: "1" });
    },
    { share: none, maxSessions: none, idleMs: none },
  );
  const session = { revision: NEWEST_SESSION.name };
  for (const each of [await connectInMemory(sdk, session), await connectInMemory(sdk, session)]) {
    await each.client.ping();
    await each.close();
  }
  await sdk.close();
  expect(made).toBe(2);

  const env = { n: 1 };
  const counted = createServer<typeof env>({ name: "a", version: "1" }).tool(
    "n",
    {},
    (_, context) => `${context.env.n}`,
  );
  await using memory = await connectInMemory(counted, { env, revision: none, caller: { env: none, principal: none } });
  expect(memory.client.revision).toBe(NEWEST.name);
  expect((await memory.client.callTool("n")).content).toMatchObject([{ text: "1" }]);

  const gateway = chain.chain(middleware.metrics()).to(counted);
  const mcp = http.fetchHandler(gateway, { metrics: none, health: none, paths: none });
  expect((await mcp(new Request("http://localhost/metrics"))).status).toBe(200);
  await mcp.close();
  await gateway.close();
});

it("creates handlers and credentials of which every option is undefined", async () => {
  const withoutCommand = { cwd: none, env: none, inheritEnv: none };
  const common = {
    ...withoutCommand,
    command: none,
    name: none,
    limits: none,
    maxSessions: none,
    idleMs: none,
    sandbox: none,
  };
  const permission = { read: none, write: none, net: none, childProcess: none };
  const each: (Handler & { close(): Promise<void> })[] = [
    live.javascript({ ...common, permission: none }),
    live.javascript({
      limits: { timeoutMs: none, memoryMb: none },
      sandbox: { read: none, network: none },
      permission,
    }),
    live.lisp(common),
    live.smalltalk({ ...common, image: none, attach: none }),
    live.codeMode(live.javascript(), { ...common, language: none, include: none, confirm: none, maxCalls: none }),
    programs.programs({
      programs: ["git"],
      ...withoutCommand,
      include: none,
      exclude: none,
      name: none,
      timeoutMs: none,
    }),
    openapi.openapi({
      document: { openapi: "3.1.0", info: {}, paths: {} },
      baseUrl: "http://a.test",
      auth: none,
      headers: none,
    }),
    chain.upstream("http://127.0.0.1:9/mcp", {
      restart: { firstMs: none, maxMs: none },
      share: none,
      start: none,
      name: none,
    }),
    chain.chain().to({ a: live.javascript() }, { names: none, upstreams: none, info: none, select: none }),
  ];
  for (const handler of each) await handler.close();
  expect(
    server.bearer({ verify: () => undefined, audience: none, issuer: none, jwks: none, scopes: none }),
  ).toBeDefined();
  const identity = { id: "a", secret: "b", authMethod: none, issuer: none };
  expect(oauth.clientCredentials(identity)).toMatchObject({ interactive: false });
  expect(
    oauth.oauth({ client: identity, store: none, redirect: none, scopes: none, grant: none, dpop: none, fetch: none }),
  ).toBeDefined();
});

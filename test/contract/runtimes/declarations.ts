// Projects that emit declarations, one for each entry of the package: what users export, and probes that make the
// compiler write out the members of everything that the functions of the entry take and return.

import { readFileSync } from "node:fs";
import { outputOf } from "../../support/blocking-program.ts";
import { Workspace } from "./runtimes.ts";

/** What users export, by the entry. All of its types are inferred. */
const SAMPLES: Readonly<Record<string, string>> = {
  ".": `
import { chain, connect, createServer, defineTool, fromSdk, McpError, serve, upstream } from "catenary";
import { z } from "zod";
export const server = createServer({ name: "notes", version: "1.0.0" })
  .tool("echo", { input: z.object({ text: z.string() }) }, ({ text }) => text)
  .tool("add", { input: z.object({ n: z.number() }), output: z.object({ sum: z.number() }) }, ({ n }) => ({ sum: n }))
  .tool("plain", { input: { type: "object", properties: { n: { type: "number" } } } }, ({ n }) => String(n))
  .resource("notes://today", { name: "Today" }, () => "milk")
  .template("notes://day/{date}", { name: "A day" }, ({ date }) => date)
  .prompt("review", { arguments: { name: { required: true } } }, ({ name }) => name);
export const note = defineTool({ name: "note", input: z.object({ text: z.string() }), handler: ({ text }) => text });
export const noted = createServer<{ region: string }>({ name: "notes", version: "1.0.0" }).tools([note]);
export const open = () => connect("http://127.0.0.1:3000/mcp");
export const openTyped = () => connect<typeof server>(server);
export const call = async () => (await openTyped()).callTool("add", { n: 1 });
export const start = async () => (await open()).callToolAsTask("slow");
export const listen = async () => (await open()).listen({ toolsListChanged: true });
export const list = async () => (await open()).listTools();
export const items = async () => (await open()).tools();
export const read = async () => (await open()).readResource("notes://today");
export const prompt = async () => (await open()).getPrompt("review", { name: "a" });
export const notes = upstream({ command: "notes" });
export const gateway = chain().to({ notes, server });
export const run = () => serve(server);
export const runHttp = () => serve(gateway, { http: { port: 0 } });
export const failure = () => new McpError(-32000, "no");
export const moved = fromSdk({ connect: async () => undefined, close: async () => undefined });
export const disposed = async () => {
  await using upstreams = chain().to({ moved, server });
  await using front = await serve(upstreams, { http: { port: 0 } });
  await using client = await connect(front.url);
  await using changes = await client.listen({ toolsListChanged: true });
  return changes;
};
`,
  "./server": `
import { bearer, createServer, defineTool, inputRequired } from "catenary/server";
import { z } from "zod";
export const server = createServer({ name: "notes", version: "1.0.0" })
  .tool("echo", { input: z.object({ text: z.string() }) }, ({ text }, context) => {
    context.progress(1);
    return text;
  })
  .method("acme/search", { input: z.object({ text: z.string() }) }, ({ text }) => ({ text }))
  .use((request, context, next) => next(request, context));
export const echo = defineTool({
  name: "echo",
  input: z.object({ text: z.string(), times: z.number().default(1) }),
  output: z.object({ said: z.string() }),
  handler: ({ text, times }, { session }) => {
    session?.notify({ method: "notifications/acme/said", params: { times } });
    return { said: text.repeat(times) };
  },
});
export const plain = defineTool({ name: "plain", handler: () => [{ type: "text", text: "x" }] });
export const listed = createServer({ name: "notes", version: "1.0.0" }).tools([echo, plain]);
export const withEnv = createServer<{ db: { count(): number } }>({ name: "notes", version: "1.0.0" })
  .tool("count", { output: z.object({ n: z.number() }) }, (_args, { env }) => ({ n: env.db.count() }))
  .prompt(
    "review",
    { arguments: z.object({ name: z.string(), depth: z.coerce.number().optional() }), complete: { name: (value) => [value] } },
    ({ name, depth }) => \`\${name} \${depth?.toFixed(0)}\`,
  )
  .prompt(
    "plain",
    { arguments: { type: "object", properties: { name: { type: "string" } }, required: ["name"] } },
    ({ name }) => name.toUpperCase(),
  );
// @ts-expect-error -- a misspelt type in a bare array of blocks
listed.tool("wrong", {}, () => [{ type: "txt", text: "x" }]);
// @ts-expect-error -- the handler does not return what the output is
defineTool({ name: "wrong", output: z.object({ n: z.number() }), handler: () => ({ n: "x" }) });
export const ask = () => inputRequired({ who: { method: "roots/list", params: {} } });
export const auth = bearer({ token: "secret" } as never);
`,
  "./client": `
import { connect, userRejected } from "catenary/client";
import { z } from "zod";
export const open = () => connect({ command: "notes" }, { elicit: () => ({ action: "decline" }) });
export const listen = async () => (await open()).listen({}, (event) => void event.method);
export const refuse = () => userRejected();
export const ended = async () => (await open()).closed;
export const task = async () => (await open()).task("1");
export const search = async () => {
  await using client = await open();
  const { found } = await client.request("acme/search", { text: "milk" }, z.object({ found: z.number() }));
  const bySchema = await client.request("acme/search", {}, { type: "object", properties: { found: { type: "number" } } });
  return [found.toFixed(0), bySchema.found?.toFixed(0)] as const;
};
export const discover = async () => (await open()).request("tools/list", {}, { timeoutMs: 1_000 });
`,
  "./oauth": `
import { bearerToken, clientCredentials, fileTokens, loopbackRedirect, memoryTokens, oauth } from "catenary/oauth";
export const token = bearerToken("secret");
export const auth = oauth({ store: memoryTokens(), redirect: loopbackRedirect() });
export const grant = clientCredentials({ id: "a", secret: "b" });
export const files = () => fileTokens("tokens");
`,
  "./chain": `
import { chain, compose, define, fields, fromSdk, on, transform, upstream } from "catenary/chain";
export const stamp = on("tools/call", async (request, context, next) => next(request, context));
export const slow = define({
  name: "slow",
  summary: "Delays calls.",
  options: {
    waitMs: fields.required("how long", fields.ms("How long a call waits.")),
    rules: fields.listOf("Rules.", { tools: fields.strings("Names.") }),
    log: fields.func<(line: string) => void>(),
  },
  middleware: ({ waitMs, rules = [] }) => (request, context, next) =>
    next({ ...request, params: { ...request.params, waitMs: waitMs.toFixed(0), rules: rules[0]?.tools?.length } }, context),
});
export const slower = slow({ waitMs: 1, rules: [{ tools: ["a"] }] });
// @ts-expect-error -- a misspelt option
export const slowest = slow({ waitMs: 1, rule: [] });
export const renamed = transform({ metadata: (metadata) => metadata });
export const unfinished = chain(stamp, renamed);
export const gateway = unfinished.to(upstream("http://127.0.0.1:3000/mcp"));
export const upstreams = gateway.upstreams;
export const composed = compose([stamp], gateway);
export const moved = fromSdk(() => ({ connect: async () => undefined, close: async () => undefined }));
`,
  "./middleware": `
import { authorize, filter, log, timeout } from "catenary/middleware";
export const middleware = [log(), timeout(1_000), filter({ tools: { include: ["a"] } })];
export const rules = authorize({ rules: [] } as never);
`,
  "./live": `
import { codeMode, javascript, lisp, smalltalk } from "catenary/live";
export const js = javascript();
export const more = javascript().tool("now", {}, () => "12:00");
export const all = { lisp: lisp(), smalltalk: smalltalk() };
export const code = codeMode(js);
`,
  "./openapi": `
import { openapi } from "catenary/openapi";
export const shop = openapi({ document: {} });
`,
  "./programs": `
import { programs } from "catenary/programs";
export const git = programs(["git"]);
`,
  "./config": `
import { checkConfig, createGateway, examineConfig, loadConfig } from "catenary/config";
export const load = () => loadConfig("catenary.json");
export const gateway = async () => createGateway(await load());
export const servers = async () => (await load()).upstreams;
export const check = () => checkConfig("{}", "catenary.json");
export const report = () => examineConfig("catenary.json");
`,
  "./http": `
import { AuthError, fetchHandler, nodeHandler } from "catenary/http";
export const web = fetchHandler(async () => ({}));
export const node = nodeHandler(async () => ({}), { stateless: true });
export const refuse = () => new AuthError(401, "no", "Bearer");
export const disposed = async () => {
  await using mounted = web;
  return mounted;
};
`,
  "./stdio": `
import { childTransport, serveTransport, stdioTransport } from "catenary/stdio";
export const child = () => childTransport({ command: "notes" });
export const own = () => stdioTransport();
export const served = () => serveTransport(async () => ({}), own());
`,
  "./testing": `
import { connectInMemory, memoryPair, recordTransport, REVISION_NAMES } from "catenary/testing";
export const open = () => connectInMemory(async () => ({}));
export const list = async () => (await open()).client.listTools();
export const pair = memoryPair();
export const recorded = recordTransport(pair[0]);
export const disposed = async () => {
  await using connection = await open();
  return connection.client.revision;
};
export const revisions = REVISION_NAMES;
`,
};

const members = (type: string): string =>
  `{ [Member in keyof ${type} as Member extends symbol ? never : Member]: ${type}[Member] }`;
const deepMembers = (type: string): string =>
  `${type} extends (...args: infer Args) => infer Returned
    ? [...{ [At in keyof Args]: ${members("NonNullable<Args[At]>")} }, ${members("NonNullable<Awaited<Returned>>")}]
    : ${members(type)}`;

/** The types are not aliases, because the compiler would write the name of an alias and not the members. */
const expand = (isDeep: boolean): string =>
  `declare function expand<T>(): { [Key in keyof NonNullable<T> as Key extends symbol ? never : Key]: ${
    isDeep ? deepMembers("NonNullable<NonNullable<T>[Key]>") : "NonNullable<T>[Key]"
  } };`;

const MAX_PARAMETERS = 3;

type ExportKinds = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** A module that exports the members of what each function of an entry takes and returns. */
function probes(name: string, kinds: Readonly<Record<string, string>>, isDeep: boolean): string {
  const lines = Object.entries(kinds).flatMap(([own, kind]) => {
    if (kind === "value") return [`export const ${own} = entry.${own};`];
    const [made, taken] = kind === "class" ? ["InstanceType", "ConstructorParameters"] : ["ReturnType", "Parameters"];
    const parameters = Array.from(
      { length: MAX_PARAMETERS },
      (_, at) => `export const ${own}${at} = expand<At<${taken}<typeof entry.${own}>, "${at}">>();`,
    );
    return [`export const ${own} = expand<Awaited<${made}<typeof entry.${own}>>>();`, ...parameters];
  });
  const at = "type At<List, Index> = Index extends keyof List ? List[Index] : never;";
  return [`import * as entry from ${JSON.stringify(name)};`, at, expand(isDeep), ...lines].join("\n");
}

/** Prints what each entry exports: by entry, by name, whether it is a class, a function or another value. */
const LIST_EXPORTS = `
const kindOf = (value) =>
  typeof value !== "function" ? "value" : /^class\\b/.test(Function.prototype.toString.call(value)) ? "class" : "function";
const exportsOf = async (name) => [
  name,
  Object.fromEntries(Object.entries(await import(name)).map(([own, value]) => [own, kindOf(value)])),
];
console.log(JSON.stringify(Object.fromEntries(await Promise.all(process.argv.slice(2).map(exportsOf)))));
`;

const OPTIONS = {
  module: "nodenext",
  target: "es2023",
  lib: ["es2023", "dom", "dom.iterable", "dom.asynciterable"],
  types: [],
  strict: true,
  skipLibCheck: true,
  preserveSymlinks: true,
  composite: true,
  declaration: true,
  emitDeclarationOnly: true,
  outDir: "out",
};

/** The entries of package.json that are modules. */
export function entries(): readonly string[] {
  const file = new URL("../../../package.json", import.meta.url);
  const { exports } = JSON.parse(readFileSync(file, "utf8")) as { readonly exports: object };
  return Object.keys(exports).filter((entry) => !entry.endsWith(".json"));
}

export function entriesWithSamples(): readonly string[] {
  return Object.keys(SAMPLES);
}

/** Builds the projects with this compiler, and returns the errors that it prints. */
export function declarationErrors(tsc: string, isDeep: boolean): readonly string[] {
  const workspace = new Workspace();
  try {
    const names = entries().map((entry) => `catenary${entry.slice(1)}`);
    const list = workspace.write("list-exports.mjs", LIST_EXPORTS);
    const kinds = JSON.parse(outputOf(process.execPath, [list, ...names], { cwd: workspace.folder })) as ExportKinds;
    // Each entry is a project, since the compiler may name a type through any module that its project imports.
    const references = entries().map((entry, at) => {
      const [path, name] = [entry === "." ? "root" : entry.slice(2), names[at] ?? ""];
      const files = ["sample.ts", "probes.ts"];
      workspace.write(`${path}/sample.ts`, SAMPLES[entry] ?? "export {};");
      workspace.write(`${path}/probes.ts`, probes(name, kinds[name] ?? {}, isDeep));
      workspace.write(`${path}/tsconfig.json`, JSON.stringify({ compilerOptions: OPTIONS, files }));
      return { path };
    });
    workspace.write("tsconfig.json", JSON.stringify({ files: [], references }));
    outputOf(process.execPath, [tsc, "-b", "--pretty", "false"], { cwd: workspace.folder });
    return [];
  } catch (error) {
    const { stdout } = error as { readonly stdout?: string };
    if (stdout === undefined || stdout === "") throw error;
    return stdout.split("\n").filter((line) => line.includes("error"));
  } finally {
    workspace.remove();
  }
}

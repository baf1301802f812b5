// Sends long strings in every field that a caller can set, over HTTP and through all middleware, and prints each request
// before it is sent. It is a program, since a request that takes too long stops everything in its process.
// `--length N` is the length of the strings, `--few` sends a few of them in each field.

import { mkdtempSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { chain, createServer } from "catenary";
import { fetchHandler } from "catenary/http";
import * as middleware from "catenary/middleware";
import { bearer } from "catenary/server";

const { values } = parseArgs({ options: { length: { type: "string" }, few: { type: "boolean" } } });
const LENGTH = Number(values.length);
const folder = mkdtempSync(join(tmpdir(), "catenary-strings-"));
process.env.XDG_STATE_HOME = folder;

const text = { type: "string", description: "Any text" };
const inputSchema = { type: "object", properties: { text: { ...text, maxLength: 1e9 }, "x.y": text } };
const notes = () =>
  createServer({ name: "notes", version: "1" })
    .tool("read_note", { description: "Reads a note", inputSchema, annotations: { readOnlyHint: true } }, () => "read")
    .tool("delete_note", { description: "Deletes a note", inputSchema }, () => "deleted")
    .prompt("review", { arguments: { what: { complete: () => ["this"] } } }, ({ what }) => String(what))
    .resource("note://open/1", { name: "one" }, () => "1")
    .template("note://open/{id}{?a,b}", { name: "open", complete: { id: () => ["1"] } }, ({ id }) => id)
    .template("file:///{+path}/end{/rest*}", { name: "file" }, ({ path }) => path);

const every = { calls: 1e9, per: "second" };
const rules = {
  tools: { exclude: ["*secret*x*y*"] },
  prompts: { exclude: ["*a*b*c"] },
  resources: { exclude: ["file:///secret/*", "db://{+x}/y{?a,b}", "*a*b*c*/z"] },
};
const { authorize, filter, redact, cache, describe, inject, rename, search } = middleware;
const usual = [
  middleware.audit({ file: join(folder, "audit.jsonl") }),
  middleware.trace(),
  middleware.metrics(),
  middleware.timeout(30_000),
  middleware.retry(),
  middleware.breaker(),
  middleware.rateLimit(every),
  middleware.concurrency({ calls: 100 }),
  authorize({ rules: [{ allow: false, ...namesOf(rules) }, { callers: ["*"] }] }),
  filter(rules),
  filter({ resources: { include: ["note://*", "file:///{+path}/end{/rest*}", "*:*"] } }),
  middleware.readOnly({ include: ["delete*"] }),
  redact({
    in: ["results", "arguments"],
    detect: ["tokens", "jwts", "private-keys", "cards", "emails"],
    keys: ["*p*w*"],
  }),
  middleware.shape({ maxChars: 50_000 }),
  middleware.pin(),
  middleware.validate(),
  cache({ lists: { ttlMs: 10 }, resources: { "*x*": { ttlMs: 10 } }, tools: { "*_note": { ttlMs: 10 } } }),
  describe({ tools: { read_note: { description: "Reads one note" } } }),
  rename({ tools: { one_read_note: "one_note_read" } }),
  inject({ tools: { "*delete*": { arguments: { text: "injected" } } } }),
];

/** The patterns of a filter, as a rule of `authorize`. */
function namesOf(all) {
  return Object.fromEntries(Object.entries(all).map(([kind, { exclude }]) => [kind, exclude]));
}

const upstreams = () => ({ one: notes(), two: notes() });
const gateways = {
  all: chain(...usual).to(upstreams(), { names: "always" }),
  found: chain(search()).to(upstreams()),
};
const auth = bearer({ verify: (token) => (token.length < 10 ? { principal: token } : undefined) });

const FEW = [" ", ".", "/", "a.", "%2e", "{a}", "a:a."];
const MORE =
  String.raw`: % { [ \ * a 0 } ] @ - _ , ; ? # & = " ' < > ( ) é 😀 :a /. /../ %25 %e2 {+a} [a] ** a* a, a/`.split(" ");
const WORDS = ["\t", "\n", " \n", "eyJ", "-----BEGIN ", "bearer ", "sk-", "aws_secret_access_key=", "a@a."];
const units = values.few === true ? FEW : [...FEW, ...MORE, ...WORDS];
/** Each as it is, as the end of a URI that a template matches, and with what may be a label and a scheme. */
const strings = units.map((unit) => {
  const long = unit.repeat(Math.ceil(LENGTH / unit.length));
  return [long, `note://open/${long}!`, `a.${long}b:x`];
});

const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientCapabilities": {},
  "io.modelcontextprotocol/clientInfo": { name: "c", version: "1" },
};

/** Every string of every method, one at a time. Each returns the method, its params, and headers. */
const FIELDS = {
  tool: (long) => ["tools/call", { name: long, arguments: {} }],
  "argument of a tool": (long) => ["tools/call", { name: "one_note_read", arguments: { text: long } }],
  "name of an argument": (long) => ["tools/call", { name: "one_note_read", arguments: { [long]: "a" } }],
  prompt: (long) => ["prompts/get", { name: long }],
  "argument of a prompt": (long) => ["prompts/get", { name: "one_review", arguments: { what: long } }],
  uri: (long) => ["resources/read", { uri: long }],
  subscription: (long) => ["subscriptions/listen", { notifications: { resourceSubscriptions: [long] } }],
  subscriptions: (long) => [
    "subscriptions/listen",
    { notifications: { resourceSubscriptions: long.match(/.{1,2000}/gsu).slice(0, 100) } },
  ],
  "task of a subscription": (long) => ["subscriptions/listen", { notifications: { taskIds: [long] } }],
  cursor: (long) => ["tools/list", { cursor: long }],
  "prompt to complete": (long) => [
    "completion/complete",
    { ref: { type: "ref/prompt", name: long }, argument: { name: "what", value: "" } },
  ],
  "template to complete": (long) => [
    "completion/complete",
    { ref: { type: "ref/resource", uri: long }, argument: { name: "id", value: "" } },
  ],
  "value to complete": (long) => [
    "completion/complete",
    { ref: { type: "ref/prompt", name: "one_review" }, argument: { name: "what", value: long } },
  ],
  "argument to complete": (long) => [
    "completion/complete",
    { ref: { type: "ref/resource", uri: "one.note://open/{id}{?a,b}" }, argument: { name: long, value: "" } },
  ],
  task: (long) => ["tasks/get", { taskId: long }],
  requestState: (long) => ["tools/call", { name: "one_note_read", requestState: long, inputResponses: {} }],
  progressToken: (long) => ["tools/call", { name: "one_note_read", _meta: { ...META, progressToken: long } }],
  "name of the client": (long) => [
    "tools/list",
    { _meta: { ...META, "io.modelcontextprotocol/clientInfo": { name: long, version: long } } },
  ],
  revision: (long) => ["tools/list", { _meta: { ...META, "io.modelcontextprotocol/protocolVersion": long } }],
  traceparent: (long) => ["tools/list", { _meta: { ...META, traceparent: long, tracestate: long, baggage: long } }],
  method: (long) => [long, {}],
  "uri of another method": (long) => ["x/read", { uri: long, name: long }],
  "search for tools": (long) => ["tools/call", { name: "search-tools", arguments: { query: long } }, {}, "found"],
  "description of tools": (long) => [
    "tools/call",
    { name: "describe-tools", arguments: { names: [long] } },
    {},
    "found",
  ],
  ...Object.fromEntries(
    [
      "accept authorization content-type content-encoding host origin last-event-id mcp-session-id mcp-method mcp-name",
      "mcp-param-text mcp-protocol-version traceparent x-other",
    ]
      .join(" ")
      .split(" ")
      .map((name) => [`header ${name}`, (long) => ["tools/list", {}, { [name]: long }]]),
  ),
};

const fronts = Object.fromEntries(
  Object.entries(gateways).map(([name, gateway]) => [name, fetchHandler(gateway, { auth })]),
);

/** A request in the stateless style, and the same in the session style where it has the method. */
async function send(method, params, headers = {}, gateway = "all") {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { _meta: META, ...params } });
  const sent = new Headers({
    authorization: "Bearer ada",
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": /^[ -~]+$/.test(method) ? method : "x",
  });
  const name = params.name ?? params.uri ?? params.ref?.name ?? params.ref?.uri ?? params.taskId;
  if (name !== undefined && /^[!-~]+$/.test(name)) sent.set("mcp-name", name);
  for (const [header, value] of Object.entries(headers)) {
    try {
      sent.set(header, header === "authorization" ? `Bearer ${value}` : value);
    } catch {
      // Such a header cannot be sent.
      return "";
    }
  }
  const stop = new AbortController();
  const request = new Request("http://localhost/mcp", { method: "POST", headers: sent, body, signal: stop.signal });
  const response = await fronts[gateway](request);
  // The stream of a subscription goes on, so its first message is enough.
  const first = await response.body?.getReader().read();
  stop.abort();
  return `${response.status} ${Buffer.from(first?.value ?? []).toString()}`;
}

/** Whether requests get through if their strings are short. */
const answers = [];
for (const field of ["argument of a tool", "argument of a prompt", "uri", "value to complete", "search for tools"]) {
  answers.push(await send(...FIELDS[field](field === "uri" ? "one.note://open/1" : "a")));
}
let count = 0;
for (const [at, [field, make]] of Object.entries(FIELDS).entries()) {
  writeSync(1, `${field}\n`);
  for (const [index, forms] of strings.entries()) {
    await send(...make(forms[(at + index) % forms.length]));
    count += 1;
  }
}
for (const front of Object.values(fronts)) await front.close();
for (const gateway of Object.values(gateways)) await gateway.close();
rmSync(folder, { recursive: true, force: true });
writeSync(1, `${JSON.stringify({ count, fields: Object.keys(FIELDS).length, strings: strings.length, answers })}\n`);
process.exit(0);

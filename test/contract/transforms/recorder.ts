// Records what two callers get from a gateway: lists, calls by every name, prompts, completions, reads by every spelling
// of a URI, subscriptions. A recording is text, one line for each item and answer, without what differs between runs.

import { setImmediate } from "node:timers/promises";
import { ownInfo } from "../../../src/client/connect.ts";
import type { Gateway } from "../../../src/chain/gateway.ts";
import type { HeldItem } from "../../../src/chain/middleware/index.ts";
import type { Caller, Params, Result } from "../../../src/core/handler.ts";
import { isObject } from "../../../src/core/values.ts";
import { McpError } from "../../../src/protocol/errors.ts";
import { fakeClient } from "../../support/handlers/fake-client.ts";
import type { Case, Opened } from "./cases.ts";

/** The lines by section, such as `ada calls`. */
export type Recording = Map<string, string[]>;

/** The first sees what a rule gives to it, the second less. */
const CALLERS: Readonly<Record<string, Partial<Caller>>> = {
  ada: { principal: "ada", scopes: ["notes", "mail"], headers: {} },
  bob: { principal: "bob", scopes: ["mail"], headers: {} },
};

const LISTS = [
  ["tools/list", "tools", "name"],
  ["prompts/list", "prompts", "name"],
  ["resources/list", "resources", "uri"],
  ["resources/templates/list", "resourceTemplates", "uriTemplate"],
] as const;
const MAX_PAGES = 20;
const RESULT_ID = /(?<=catenary:\/\/results\/)[\w-]{22}/g;
/** Fields of `_meta` that name a view. */
const VIEW = /\\?"ui\\?":\{[^{}]*\},?|\\?"ui\/resourceUri\\?":\\?"[^"]*",?/g;
const { version: VERSION } = ownInfo();
const ACKNOWLEDGED = "notifications/subscriptions/acknowledged";
const LABELS = ["", "notes_", "mail_"];
const NESTED_LABELS = ["in_", "in_notes_", "in_mail_"];

const withLabels = (labels: readonly string[], names: readonly string[]): string[] =>
  names.flatMap((name) => labels.map((label) => label + name));
const withSchemes = (names: readonly string[]): string[] =>
  withLabels(
    LABELS.map((label) => label.replace("_", ".")),
    names,
  );
/** Names with the labels of a gateway behind a gateway. */
const nested = (isNested: boolean, ...names: readonly string[]): string[] =>
  isNested ? withLabels(NESTED_LABELS, names) : [];
const nestedUris = (isNested: boolean, ...uris: readonly string[]): string[] =>
  isNested ? uris.flatMap((uri) => [`in.${uri}`, `in.notes.${uri}`]) : [];

/** Names that are tried beside those that are listed: own names, with labels, renamed, and names that do not exist. */
const TOOLS = [
  ...withLabels(LABELS, ["search", "add", "remove", "open", "shift", "find", "nothing"]),
  ...["send", "long", "lengthy", "fresh", "list all!", "notes_list all!", "fails"],
  ...["breaks", "view-only", "find_notes", "a_tool_whose_name_is_longer_than_the_limit_of_the_models_api"],
];
const PROMPTS = [
  ...withLabels(LABELS, ["review", "greet", "check", "nothing"]),
  ...["hello", "notes_hello", "check_notes", "secret", "notes_secret", "shift", "fresh", "compose", "mail_compose"],
];
const URIS = [
  ...withSchemes(["note://1", "note://shared", "item://a/1", "memo://shared", "none://x"]),
  ...["note://2", "NOTE://1", "note://%31", "memo://one", "memo://of-notes", "thing://a/1", "notes.thing://a/1"],
  ...["file:///public/a.txt", "file:///public/b.txt", "public://a.txt", "public://b.txt", "file:///public/%61.txt"],
  ...["file:///secret.txt", "file:///%73ecret.txt", "file:///public/../secret.txt", "notes.file:///secret.txt"],
  ...["mail://inbox", "mail://sent", "mail.mail://inbox", "ui://view", "notes.ui://view", "ui://notes/view"],
  ...["fresh://1", "all+note://1", "catenary://results/nothing"],
];
const TEMPLATES = [
  ...withSchemes(["item://{kind}/{id}", "thing://{kind}/{id}", "note://{id}"]),
  ...["file:///public/{name}", "public://{name}", "mail://{box}", "mail.mail://{box}", "fresh://{id}", "none://{x}"],
];
/** A tool that may be called although it is in no list. */
const UNLISTED = ["unlisted", "notes_unlisted", "mail_unlisted"];
/** Arguments of a call; the last is one that a middleware may set. */
const ARGUMENTS = { query: "q", text: "t", apiKey: "of the caller" };

/** Records a case. `folder` holds its file of approved definitions. */
export async function record(tested: Case, folder: string): Promise<Recording> {
  const pins = `${folder}/${tested.name.replaceAll(" ", "+")}.json`;
  const held: HeldItem[] = [];
  const open = async (state: "before" | "after"): Promise<Opened> =>
    tested.open(state, { pins, onHeld: (item) => held.push(item) });
  const before = await open("before");
  const after = await open("after");
  const cold = await open("after");
  const recording: Recording = new Map();
  try {
    // The first lists are approved.
    const callers = Object.entries(CALLERS).map(([name, caller]) => {
      const { endpoint } = tested;
      return [name, endpoint === undefined ? caller : { ...caller, endpoint }] as const;
    });
    await listAll(
      clientOf(before.gateway, CALLERS["ada"]),
      new Set(["tools/list", "prompts/list", "resources/templates/list"]),
    );
    const kept: string[] = [];
    for (const [name, caller] of callers) {
      const sections = await recordCaller(after.gateway, caller, tested.isNested, kept);
      for (const [section, lines] of Object.entries(sections)) recording.set(`${name} ${section}`, lines);
    }
    for (const [name, caller] of callers) {
      recording.set(`${name} subscriptions`, await recordSubscriptions(after, caller, tested.isNested));
    }
    for (const [name, caller] of callers) recording.set(`${name} cold`, await recordCold(cold, caller));
    moveViews(recording);
    recording.set("held", held.map((item) => canonical(item)).toSorted());
  } finally {
    for (const { gateway } of [before, after, cold]) await gateway.close();
  }
  return normalized(recording, folder);
}

type Client = (method: string, params?: Params) => Promise<Result | McpError>;

function clientOf(gateway: Gateway, caller: Partial<Caller> = {}): Client {
  const { call } = fakeClient(gateway, { caller });
  return (method, params) => call(method, params).catch((error: unknown) => error as McpError);
}

/** All pages of the lists. */
async function listAll(
  client: Client,
  methods: ReadonlySet<string> = new Set(LISTS.map(([method]) => method)),
): Promise<{ readonly lines: string[]; readonly names: Readonly<Record<string, readonly string[]>> }> {
  const lines: string[] = [];
  const names: Record<string, string[]> = {};
  for (const [method, field, key] of LISTS) {
    if (!methods.has(method)) continue;
    const listed: string[] = (names[method] = []);
    let cursor: unknown;
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const result = await client(method, cursor === undefined ? {} : { cursor: cursor as string });
      if (result instanceof Error) {
        lines.push(line(`${method} page ${page}`, result));
        break;
      }
      const { [field]: items, nextCursor, ...rest } = result;
      lines.push(`${method} page ${page}: ${canonical({ ...rest, hasNext: nextCursor !== undefined })}`);
      for (const item of items as readonly Record<string, unknown>[]) {
        lines.push(`  ${canonical(item)}`);
        listed.push(String(item[key]));
      }
      cursor = nextCursor;
      if (cursor === undefined) break;
    }
  }
  return { lines, names };
}

/** `kept`: ids of results that were cut for earlier callers; the ids of this caller are added. */
async function recordCaller(
  gateway: Gateway,
  caller: Partial<Caller>,
  isNested: boolean,
  kept: string[],
): Promise<Record<string, string[]>> {
  const client = clientOf(gateway, caller);
  const { lines, names } = await listAll(client);
  const tools = [...(names["tools/list"] ?? []), ...TOOLS, ...nested(isNested, "search", "add", "nothing")];
  const prompts = [...(names["prompts/list"] ?? []), ...PROMPTS, ...nested(isNested, "review", "greet")];
  const templates = [...(names["resources/templates/list"] ?? []), ...TEMPLATES, "note://1"];
  const uris = [...(names["resources/list"] ?? []), ...URIS, ...nestedUris(isNested, "note://1", "note://shared")];
  const call = (name: string, given: object): Promise<Result | McpError> =>
    client("tools/call", { name, arguments: given });
  const complete = (ref: Params): Promise<Result | McpError> =>
    client("completion/complete", { ref, argument: { name: "tone", value: "k" } });
  const ids: string[] = [];
  const callAll = async (name: string): Promise<Result | McpError> => {
    const result = await call(name, ARGUMENTS);
    ids.push(...(JSON.stringify(result).match(RESULT_ID) ?? []));
    return result;
  };
  const sections = {
    lists: [line("server/discover", await client("server/discover")), ...lines],
    calls: await each(tools, callAll),
    "calls of unlisted tools": await each(UNLISTED, callAll),
    tasks: await each(["1", "notes.1", "mail.1", "in.notes.1", "2"], (taskId) => client("tasks/get", { taskId })),
    prompts: await each(prompts, (name) => client("prompts/get", { name, arguments: { tone: "kind" } })),
    "prompt completions": await each(prompts, (name) => complete({ type: "ref/prompt", name })),
    "template completions": await each(templates, (uri) => complete({ type: "ref/resource", uri })),
    reads: await each(uris, (uri) => client("resources/read", { uri })),
    searches: await recordSearches(call),
    rests: await recordRests(client, [...kept.slice(0, 1), ...ids.slice(0, 2), "nothing"]),
  };
  kept.push(...ids);
  return sections;
}

/** The answers by name. */
async function each(all: readonly string[], send: (name: string) => Promise<Result | McpError>): Promise<string[]> {
  const answers: string[] = [];
  for (const name of new Set(all)) answers.push(line(name, await send(name)));
  return answers;
}

/** The rests of results that were cut. */
async function recordRests(client: Client, ids: readonly string[]): Promise<string[]> {
  const lines: string[] = [];
  for (const id of ids) {
    const uri = `catenary://results/${id}`;
    const params = { name: "read-result", arguments: { id, from: 30 } };
    lines.push(line(`read-result ${id}`, await client("tools/call", params)));
    lines.push(line(`read ${id}`, await client("resources/read", { uri })));
    lines.push(line(`read ${id} part`, await client("resources/read", { uri: `${uri}?from=5&to=9` })));
  }
  return lines;
}

/** Calls of the tools that stand in place of others. */
async function recordSearches(call: (name: string, given: object) => Promise<Result | McpError>): Promise<string[]> {
  const lines: string[] = [];
  const add = async (name: string, given: object): Promise<void> => {
    lines.push(line(`${name} ${canonical(given)}`, await call(name, given)));
  };
  for (const query of ["search", "note", ""]) await add("search-tools", { query });
  await add("search-tools", { query: "", limit: 3, offset: 2 });
  await add("describe-tools", { names: ["search", "find", "notes_search", "remove", "shift", "nothing"] });
  for (const name of [
    "search",
    "find",
    "notes_search",
    "find_notes",
    "add",
    "remove",
    "shift",
    "unlisted",
    "nothing",
  ]) {
    await add("call-tool", { name, arguments: { query: "q" } });
  }
  await add("call-tool", { name: "long" });
  await add("call-tool", {});
  return lines;
}

/** The same requests as the first ones of a gateway, without a list before them. */
async function recordCold({ gateway }: Opened, caller: Partial<Caller>): Promise<string[]> {
  const client = clientOf(gateway, caller);
  const lines: string[] = [];
  const add = async (method: string, params: Params): Promise<void> => {
    lines.push(line(`${method} ${canonical(params)}`, await client(method, params)));
  };
  for (const name of ["search", "notes_search", "find", "remove", "shift", "unlisted", "nothing"]) {
    await add("tools/call", { name, arguments: ARGUMENTS });
  }
  for (const name of ["review", "notes_review", "hello", "shift"]) await add("prompts/get", { name });
  for (const uri of ["note://shared", "notes.note://shared", "memo://one", "file:///secret.txt", "item://a/1"]) {
    await add("resources/read", { uri });
  }
  await add("completion/complete", {
    ref: { type: "ref/resource", uri: "file:///public/{name}" },
    argument: { name: "name", value: "a" },
  });
  return lines;
}

/** One subscription to everything, then one to each URI: what is granted, and what arrives. */
async function recordSubscriptions(
  { gateway, upstreams }: Opened,
  caller: Partial<Caller>,
  isNested: boolean,
): Promise<string[]> {
  const lists = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true };
  const listed = (await listAll(clientOf(gateway, caller), new Set(["resources/list"]))).names["resources/list"] ?? [];
  const uris = [...new Set([...listed, ...URIS, ...nestedUris(isNested, "note://1", "note://shared")])];
  const lines: string[] = [];
  const updates = Object.entries(upstreams).flatMap(([name, { uris: all, update }]) =>
    all.map((uri) => [`${name} updates ${uri}`, () => update(uri)] as const),
  );
  const changes = Object.entries(upstreams).flatMap(([name, { changeList }]) =>
    (["tools", "prompts", "resources"] as const).map(
      (kind) => [`${name} changes ${kind}`, () => changeList(kind)] as const,
    ),
  );
  lines.push(...(await listenTo(gateway, caller, lists, [...updates, ...changes], "lists")));
  const everything = { ...lists, resourceSubscriptions: uris };
  lines.push(...(await listenTo(gateway, caller, everything, [...updates, ...changes], "everything")));
  for (const uri of uris) {
    lines.push(...(await listenTo(gateway, caller, { resourceSubscriptions: [uri] }, updates, uri)));
  }
  return lines;
}

type Event = readonly [what: string, happen: () => void];

async function listenTo(
  gateway: Gateway,
  caller: Partial<Caller>,
  filter: object,
  events: readonly Event[],
  title: string,
): Promise<string[]> {
  const client = fakeClient(gateway, { caller });
  let isOver = false;
  const outcome = client.call("subscriptions/listen", { notifications: filter }).then(
    (result) => ({ result }),
    (error: unknown) => ({ error: error as McpError }),
  );
  void outcome.then(() => (isOver = true));
  const isAcknowledged = (): boolean => client.notifications.some(({ method }) => method === ACKNOWLEDGED);
  const until = performance.now() + 60_000;
  while (!isOver && !isAcknowledged() && performance.now() < until) await setImmediate();
  const lines: string[] = [];
  const take = (what: string): void => {
    for (const notification of client.notifications.splice(0)) lines.push(`${what}: ${canonical(notification)}`);
  };
  take(title);
  for (const [what, happen] of events) {
    happen();
    for (let turn = 0; turn < 3; turn += 1) await setImmediate();
    take(`${title}, ${what}`);
  }
  const left = new Error("The caller has left");
  client.abort(left);
  const ended = await outcome;
  if (!("error" in ended)) lines.push(line(`${title} ends`, ended.result));
  else if (ended.error !== left) lines.push(line(`${title} ends`, ended.error));
  return lines;
}

function line(what: string, outcome: Result | McpError): string {
  if (!(outcome instanceof Error)) return `${what}: ${canonical(outcome)}`;
  const { message } = outcome;
  const error = outcome instanceof McpError ? { code: outcome.code, message, data: outcome.data } : { message };
  return `${what}: error ${canonical(error)}`;
}

/** JSON with sorted keys. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    isObject(inner) ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1))) : inner,
  );
}

/**
 * Moves `_meta` that names the view of a tool into a section of its own, which the labels of upstreams may change
 * without any other section.
 */
function moveViews(recording: Recording): void {
  for (const [section, lines] of [...recording]) {
    const views: string[] = [];
    const rest = lines.map((text) =>
      text.replaceAll(VIEW, (found) => {
        views.push(`${section}: ${/^[^{]*/.exec(text)?.[0] ?? ""}${/"name":"[^"]*"/.exec(text)?.[0] ?? ""} ${found}`);
        return "";
      }),
    );
    if (views.length === 0) continue;
    recording.set(section, rest);
    const all = `${section.split(" ", 1)[0] ?? ""} views`;
    recording.set(all, [...(recording.get(all) ?? []), ...views]);
  }
}

/** Replaces random ids of results by numbers, in the order in which they appear, and what depends on the machine. */
function normalized(recording: Recording, folder: string): Recording {
  const ids = new Map<string, string>();
  for (const text of [...recording.values()].flat()) {
    for (const [id] of text.matchAll(RESULT_ID)) if (!ids.has(id)) ids.set(id, `RESULT-${ids.size + 1}`);
  }
  const replace = (text: string): string => {
    let changed = text.replaceAll(folder, "FOLDER").replaceAll(`"version":"${VERSION}"`, '"version":"VERSION"');
    for (const [id, name] of ids) changed = changed.replaceAll(id, name);
    return changed;
  };
  return new Map([...recording].map(([section, lines]) => [section, lines.map(replace)]));
}

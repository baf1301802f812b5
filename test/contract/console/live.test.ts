// The live sessions of a gateway, from the routes of the console to real sessions in JavaScript, Common Lisp and Smalltalk:
// what agents evaluate is seen while it runs, and the operator works in the sessions of their owners.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect } from "../../../src/client/connect.ts";
import { ConfigGateway } from "../../../src/config/gateway.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { CallLog } from "../../../src/console/call-log.ts";
import { Feed } from "../../../src/console/feed.ts";
import { parseFilter } from "../../../src/console/filter.ts";
import type { ConsoleHost } from "../../../src/console/host.ts";
import { liveRoutes } from "../../../src/console/live-routes.ts";
import { LiveSessions } from "../../../src/console/live.ts";
import type {
  CallRow,
  FeedTopic,
  LiveAnswer,
  LiveCompletion,
  LiveDetail,
  LiveInspection,
  LiveOverview,
  LiveSession,
  TranscriptEvent,
  Turn,
} from "../../../src/console/types.ts";
import type { Handler } from "../../../src/core/handler.ts";
import { hasSbcl } from "../../support/setup/sbcl.ts";
import { eventually } from "../../support/waiting.ts";

let folder: string;
let running: ConfigGateway;
let sessions: LiveSessions;
let feed: Feed;
let audited: string[];
/** The calls that are in Traffic. */
let logged: CallRow[];
let api: (method: "GET" | "POST", path: string, given?: Readonly<Record<string, unknown>>) => Promise<unknown>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "catenary-console-live-"));
  process.env["XDG_STATE_HOME"] = join(folder, "state");
  const file = join(folder, "catenary.json");
  const mcpServers = { js: { live: "js" }, lisp: { live: "lisp" }, st: { live: "smalltalk", use: ["retry"] } };
  await writeFile(file, JSON.stringify({ mcpServers }));
  running = await ConfigGateway.create(await loadConfig(file), { changing: true, rememberNames: false });
  running.start();
  audited = [];
  logged = [];
  const log = new CallLog();
  log.onRow = (row) => logged.push(structuredClone<CallRow>(row));
  running.gateway.observe(log.reader);
  running.gateway.observe({
    begin: ({ request, context }) => {
      const { principal = "nobody" } = context.caller;
      if (request.method === "tools/call") audited.push(`${principal} ${String(request.params["name"])}`);
    },
  });
  const host: ConsoleHost = {
    running,
    log: { recent: () => [], follow: () => () => undefined, write: () => undefined },
    info: () => ({ name: "t", version: "0", pid: 1, source: file, url: "", startedAt: "" }),
    restart: (name) => running.restart(name, 0),
    reload: undefined,
  };
  feed = new Feed({ onRow: undefined, refreshed: (row) => row, row: () => undefined, hasText: () => false });
  sessions = new LiveSessions(host, feed);
  const routes = liveRoutes(host, sessions);
  api = async (method, path, given = {}) => {
    const [top = "", id = "", ...rest] = path.split("/");
    const name = [top, ...(id === "" ? [] : [":id"]), ...rest].join("/");
    const route = routes.find((one) => one.method === method && one.path === name);
    if (route === undefined) throw new Error(`There is no route ${method} ${name}`);
    const query = new URLSearchParams(method === "GET" ? (given as Record<string, string>) : {});
    const body = method === "POST" ? given : {};
    return route.run({ params: { id }, query, body, signal: new AbortController().signal });
  };
});

afterAll(async () => {
  sessions.close();
  feed.close();
  await running.gateway.close();
  await rm(folder, { recursive: true, force: true });
});

const detail = async (id: string): Promise<LiveDetail> => (await api("GET", `live/${id}`)) as LiveDetail;
const evaluate = async (id: string, code: string): Promise<LiveAnswer> =>
  (await api("POST", "evaluate", { session: id, code })) as LiveAnswer;
const lastTurn = async (id: string): Promise<Turn> => (await detail(id)).turns.at(-1) as Turn;

/** The handle of the first value of the last evaluation. */
async function lastHandle(id: string): Promise<number | undefined> {
  const { handles } = ((await lastTurn(id)).ended?.evaluation ?? {}) as { readonly handles?: readonly number[] };
  return handles?.[0];
}

/** A client of the gateway that has proved to be this principal. */
async function agent(name: string, principal?: string): ReturnType<typeof connect> {
  const { gateway } = running;
  const handler: Handler = (request, context) =>
    gateway(request, { ...context, caller: { ...context.caller, ...(principal !== undefined && { principal }) } });
  return connect(handler, { info: { name, version: "1" } });
}

/** What a page gets that follows these topics. */
function page(...topics: readonly FeedTopic[]): {
  readonly events: TranscriptEvent[];
  readonly lists: LiveSession[][];
  leave(): void;
} {
  const leaving = new AbortController();
  const events: TranscriptEvent[] = [];
  const lists: LiveSession[][] = [];
  const sendJson = (event: string, json: string): void => {
    if (event === "transcript") events.push(...(JSON.parse(json) as TranscriptEvent[]));
    if (event === "live") lists.push(JSON.parse(json) as LiveSession[]);
  };
  const sink = { sendJson, send: () => undefined, end: () => undefined, bufferedBytes: 0 };
  const filter = parseFilter("");
  feed.add({ topics: new Set(topics), filter, sink }, leaving.signal);
  return { events, lists, leave: () => leaving.abort() };
}

it("lists the servers before there is a session, and says what each language can", async () => {
  const { servers, sessions: none } = (await api("GET", "live")) as LiveOverview;
  expect(servers.map(({ name, language, title }) => [name, language, title])).toEqual([
    ["js", "js", "JavaScript"],
    ["lisp", "lisp", "Common Lisp"],
    ["st", "smalltalk", "Smalltalk (Amber)"],
  ]);
  expect(servers[0]?.can).toEqual(["evaluate", "frame", "restart", "interrupt", "reset", "save", "restore"]);
  expect(none).toEqual([]);
});

it("shows what an agent evaluates while it runs, to the operator and to no other owner, and interrupts it", async () => {
  const ada = await agent("cursor", "ada");
  const bob = await agent("claude", "bob");
  const seen = page("transcript", "live");
  await bob.callTool("evaluate-js", { code: "const secret = 42" });
  const running = ada.callTool("evaluate-js", { code: "let n = 0; console.log('begun'); for (;;) n += 1" });
  await eventually(() => expect(seen.events.some((event) => event.type === "output")).toBe(true));
  const id = "js~main~ada";
  expect(seen.events.filter(({ session }) => session === id)).toMatchObject([
    { type: "began", client: "cursor", op: "eval", turn: 1 },
    { type: "output", text: "begun\n", turn: 1 },
  ]);
  const open = await detail(id);
  expect(open.session).toMatchObject({
    ...{ server: "js", name: "main", owner: "ada", state: "busy", users: ["cursor"] },
    busy: { client: "cursor", code: expect.stringContaining("for (;;)") as string },
  });
  expect(open.turns).toMatchObject([{ turn: 1, client: "cursor", output: "begun\n" }]);
  expect(await api("POST", "interrupt", { session: id })).toMatchObject({ isError: false });
  const { structuredContent } = await running;
  expect(structuredContent).toMatchObject({ status: "interrupted", state: "kept" });
  await eventually(() =>
    expect(seen.events.findLast(({ session }) => session === id)).toMatchObject({
      type: "ended",
      status: "interrupted",
    }),
  );
  const answer = await evaluate(id, "typeof n + typeof secret");
  expect(answer).toEqual({ session: id, isError: false, text: "=> 'numberundefined'" });
  expect((await detail(id)).session.users).toEqual(["catenary-console", "cursor"]);
  expect(audited).toContain("console evaluate-js");
  expect(seen.lists.at(-1)?.map((session) => session.id)).toEqual(expect.arrayContaining([id, "js~main~bob"]));
  seen.leave();
  await ada.close();
  await bob.close();
});

it("follows nothing once nobody looks", async () => {
  const before = page("transcript");
  before.leave();
  const seen = before.events.length;
  await evaluate("js~main~ada", "console.log('unseen')");
  expect(before.events).toHaveLength(seen);
  expect((await lastTurn("js~main~ada")).ended).toMatchObject({ status: "ok" });
});

it("starts a session of the operator's own choice, for the callers of the gateway", async () => {
  const answer = (await api("POST", "evaluate", { server: "js", name: "first", code: "6 * 7" })) as LiveAnswer;
  expect(answer).toEqual({ session: "js~first", isError: false, text: "=> 42" });
  const stranger = await agent("other");
  const { content } = await stranger.callTool("evaluate-js", { code: "_", session: "first" });
  expect(content).toMatchObject([{ text: "=> 42" }]);
  await stranger.close();
});

it("walks a value of JavaScript by its handle, completes, and shows definitions", async () => {
  const id = "js~first";
  await evaluate(id, "const map = new Map([['a', { list: Array.from({ length: 120 }, (_, at) => at) }]]); map");
  const handle = await lastHandle(id);
  const inspect = async (of: number | undefined, start = 0): Promise<LiveInspection> =>
    (await api("GET", `live/${id}/inspect`, { handle: String(of), start: String(start) })) as LiveInspection;
  const map = await inspect(handle);
  expect(map).toMatchObject({ text: "Map, 1 part", total: 1, parts: [{ name: "['a']" }] });
  const entry = await inspect(map.parts?.[0]?.handle);
  const list = await inspect(entry.parts?.[0]?.handle, 100);
  expect(list.total).toBe(121);
  expect(list.parts?.[0]).toEqual({ name: "100", text: "100" });
  expect(await inspect(9_999)).toMatchObject({ isError: true, text: expect.stringContaining("no handle") as string });
  const found = (await api("GET", `live/${id}/complete`, { code: "ma + 1", at: "2" })) as LiveCompletion;
  expect(found.start).toBe(0);
  expect(found.values).toContain("map");
  expect((await detail(id)).definitions).toMatchObject([{ name: "map", type: "variable" }]);
});

it("saves a checkpoint, restores it, and resets the session", async () => {
  const id = "js~first";
  await evaluate(id, "let kept = 'yes'");
  expect(await api("POST", "save", { session: id, name: "before" })).toMatchObject({ isError: false });
  expect((await detail(id)).checkpoints).toMatchObject([{ name: "before" }]);
  expect(await api("POST", "reset", { session: id })).toMatchObject({ isError: false });
  expect((await detail(id)).session.state).toBe("stopped");
  expect((await evaluate(id, "typeof kept")).text).toBe("=> 'undefined'");
  expect(await api("POST", "restore", { session: id, checkpoint: "before" })).toMatchObject({ isError: false });
  expect((await evaluate(id, "kept")).text).toBe("=> 'yes'");
  expect(await api("POST", "restore", { session: id, checkpoint: "none" })).toMatchObject({ isError: true });
});

it("says what is wrong with a request", async () => {
  await expect(api("GET", "live/js~nothing")).rejects.toThrow('There is no live session "js~nothing"');
  await expect(api("POST", "evaluate", { server: "python", code: "1" })).rejects.toThrow('"python"');
  await expect(api("POST", "evaluate", { session: "js~first", code: " " })).rejects.toThrow("not empty");
  await expect(api("POST", "save", { session: "js~first", name: 1 })).rejects.toThrow("must be a string");
  await expect(api("GET", "live/js~first/inspect", { handle: "x" })).rejects.toThrow("whole number");
});

it("works in Smalltalk, behind middleware of its own", async () => {
  const answer = (await api("POST", "evaluate", {
    server: "st",
    code: "| d | d := Dictionary new. d at: 1 put: #(1 2). d foo",
  })) as LiveAnswer;
  expect(answer).toMatchObject({ session: "st~main", isError: true });
  const { ended } = await lastTurn("st~main");
  expect(ended?.evaluation?.["condition"]).toMatchObject({ type: "MessageNotUnderstood" });
  await evaluate("st~main", "Array with: (Array with: (Array with: (Array with: (Array with: 3))))");
  const handle = await lastHandle("st~main");
  const value = (await api("GET", "live/st~main/inspect", { handle: String(handle) })) as LiveInspection;
  expect(value).toMatchObject({ total: 1, parts: [{ name: "[1]" }] });
});

it("has in Traffic what the operator does, and nothing that pages read by themselves", async () => {
  const id = "js~first";
  await evaluate(id, "1");
  const before = logged.length;
  await evaluate(id, "6 * 7");
  await api("POST", "interrupt", { session: id });
  await api("POST", "save", { session: id, name: "seen" });
  await api("POST", "restore", { session: id, checkpoint: "seen" });
  await api("POST", "reset", { session: id });
  await detail(id);
  const ended = logged.slice(before).filter(({ status }) => status !== "running");
  expect(ended.map(({ name }) => name)).toEqual([
    "evaluate-js",
    ...["interrupt", "save", "restore", "reset"].map((action) => `js_${action}-session`),
  ]);
  expect(new Set(ended.map(({ principal, method }) => `${principal} ${method}`))).toEqual(
    new Set(["console tools/call"]),
  );
  await evaluate(id, "1");
  const answer = await api("POST", "evaluate", { session: id, code: "nothing.at" });
  expect(answer).toMatchObject({ isError: true });
  expect(logged.at(-1)).toMatchObject({ principal: "console", status: "error" });
});

describe.skipIf(!hasSbcl())("in Common Lisp (needs SBCL)", () => {
  const id = "lisp~main~ada";

  it("an error of an agent waits, with frames and variables, until the operator takes a restart with a value", async () => {
    const ada = await agent("cursor", "ada");
    const code = "(defun half (x) (restart-case (/ x 0) (use-value (value) :interactive (lambda () (list 1)) value)))";
    await ada.callTool("evaluate-lisp", { code });
    await ada.callTool("evaluate-lisp", { code: "(list :got (half 21))" });
    const { session, turns } = await detail(id);
    expect(session.holdsError).toBe(true);
    const condition = turns.at(-1)?.ended?.evaluation?.["condition"] as {
      readonly open: boolean;
      readonly restarts: readonly { readonly name: string; readonly takesValue?: boolean }[];
      readonly frames: readonly { readonly locals?: readonly { readonly name: string; readonly value: string }[] }[];
    };
    expect(condition.open).toBe(true);
    expect(condition.frames.flatMap(({ locals = [] }) => locals)).toContainEqual(
      expect.objectContaining({ name: "X", value: "21" }),
    );
    const frame = condition.frames.findIndex(({ locals = [] }) => locals.some(({ name }) => name === "X"));
    expect(await api("POST", "evaluate", { session: id, code: "(* 2 x)", frame })).toMatchObject({ text: "=> 42" });
    const restart = condition.restarts.findIndex(({ name }) => name === "USE-VALUE");
    const answer = await api("POST", "evaluate", { session: id, restart: String(restart), value: "(+ 2 3)" });
    expect(answer).toMatchObject({ isError: false, text: "=> (:GOT 5)" });
    expect((await detail(id)).session.holdsError).toBe(false);
    await ada.close();
  });

  it("walks a hash table, and restores an image, which tells its definitions itself", async () => {
    await evaluate(id, "(let ((table (make-hash-table))) (setf (gethash :north table) '(1 (2 (3 (4 (5)))))) table)");
    const handle = await lastHandle(id);
    const table = (await api("GET", `live/${id}/inspect`, { handle: String(handle) })) as LiveInspection;
    expect(table).toMatchObject({ total: 1, parts: [{ name: ":NORTH", text: expect.any(String) as string }] });
    expect(await api("POST", "save", { session: id, name: "image" })).toMatchObject({ isError: false });
    await api("POST", "reset", { session: id });
    await api("POST", "restore", { session: id, checkpoint: "image" });
    expect((await evaluate(id, "(fboundp 'half)")).text).toContain("FUNCTION");
    const { definitions } = await detail(id);
    expect(JSON.stringify(definitions).toLowerCase()).toContain("half");
  });
});

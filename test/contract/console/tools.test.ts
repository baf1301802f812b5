// The page Tools, from the routes to a real server and back: the catalogue, calls with progress, questions and every kind
// of content, and hiding in the config.

import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { ConfigGateway } from "../../../src/config/gateway.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { ConsoleCatalogue } from "../../../src/console/catalogue.ts";
import { hidingRoutes } from "../../../src/console/hiding.ts";
import type { ConsoleHost } from "../../../src/console/host.ts";
import { Operator } from "../../../src/console/operator.ts";
import { toolsRoutes } from "../../../src/console/tools-routes.ts";
import type { Catalogue, Question } from "../../../src/console/types.ts";
import { connect } from "../../../src/client/connect.ts";
import { routeClient, type RouteClient } from "../../support/console/route-client.ts";
import { eventually } from "../../support/waiting.ts";

const EVERYTHING = createRequire(import.meta.url).resolve("@modelcontextprotocol/server-everything/dist/index.js");

let folder: string;
let file: string;
let running: ConfigGateway;
let client: RouteClient;
let changes = 0;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "catenary-console-tools-"));
  file = join(folder, "catenary.json");
  const everything = { command: process.execPath, args: [EVERYTHING], exclude: ["get-env"] };
  const text = JSON.stringify({ mcpServers: { everything, js: { live: "js" } } }, undefined, 2);
  await writeFile(file, text.replace('"mcpServers"', '// The servers.\n  "mcpServers"'));
  running = await ConfigGateway.create(await loadConfig(file), { changing: true, rememberNames: false });
  running.start();
  const host = hostOf(running);
  const catalogue = new ConsoleCatalogue(host, () => (changes += 1));
  const operator = new Operator({ host, serverOf: (request) => catalogue.serverOf(request) });
  client = routeClient([...toolsRoutes(catalogue, operator), ...hidingRoutes(host)]);
});

afterAll(async () => {
  await running.gateway.close();
  await rm(folder, { recursive: true, force: true });
});

function hostOf(gateway: ConfigGateway): ConsoleHost {
  return {
    running: gateway,
    log: { recent: () => [], follow: () => () => undefined, write: () => undefined },
    info: () => ({ name: "t", version: "0", pid: 1, source: file, url: "", startedAt: "" }),
    restart: (name) => gateway.restart(name, 0),
    reload: async () => {
      await gateway.change(await loadConfig(file));
      return true;
    },
  };
}

async function catalogue(): Promise<Catalogue> {
  return (await client.get("catalogue")) as Catalogue;
}

it("lists everything of all servers with tokens, and what clients do not get with the reason", async () => {
  await eventually(async () => expect((await catalogue()).problems).toEqual({}));
  const { items, tokens } = await catalogue();
  const find = (name: string) => items.find((item) => item.name === name);
  expect(find("echo")).toMatchObject({ kind: "tools", server: "everything" });
  expect(find("echo")?.tokens).toBeGreaterThan(20);
  expect(find("get-env")).toMatchObject({ hidden: "disabled", server: "everything" });
  expect(find("evaluate-js")).toMatchObject({ kind: "tools", server: "js" });
  expect(new Set(items.map(({ kind }) => kind))).toEqual(new Set(["tools", "prompts", "resources", "templates"]));
  const shown = items.filter(({ kind, hidden }) => kind === "tools" && hidden === undefined);
  expect(tokens).toBe(shown.reduce((sum, item) => sum + item.tokens, 0));
});

describe("a call", () => {
  it("streams its start, its progress and its result", async () => {
    const stream = await client.stream("call", {
      method: "tools/call",
      params: { name: "trigger-long-running-operation", arguments: { duration: 0.3, steps: 3 } },
    });
    const ended = await stream.event("ended");
    expect(stream.events[0]).toMatchObject({ event: "started", data: { type: "started", call: "c1" } });
    const progress = stream.events.filter(({ event }) => event === "progress").map(({ data }) => data);
    expect(progress.at(-1)).toMatchObject({ progress: 3, total: 3 });
    expect(ended).toMatchObject({ type: "ended", result: { content: [{ type: "text" }] } });
    expect(stream.isEnded).toBe(true);
  });

  it.each([
    ["get-tiny-image", {}, "image"],
    ["get-resource-links", { count: 2 }, "resource_link"],
    ["get-resource-reference", { resourceType: "Text", resourceId: 1 }, "resource"],
    ["get-annotated-message", { messageType: "success", includeImage: true }, "image"],
  ])("returns every kind of content: %s", async (name, args, type) => {
    const stream = await client.stream("call", { method: "tools/call", params: { name, arguments: args } });
    const { result } = (await stream.event("ended")) as { result: { content: { type: string }[] } };
    expect(result.content.map((block) => block.type)).toContain(type);
  });

  it("returns structured content, and a resource and a prompt", async () => {
    const structured = await client.stream("call", {
      method: "tools/call",
      params: { name: "get-structured-content", arguments: { location: "New York" } },
    });
    expect(await structured.event("ended")).toMatchObject({ result: { structuredContent: { conditions: "Cloudy" } } });
    const { items } = await catalogue();
    const uri = items.find(({ kind }) => kind === "resources")?.name;
    const read = await client.stream("call", { method: "resources/read", params: { uri } });
    expect(await read.event("ended")).toMatchObject({ result: { contents: [{}] } });
    const prompt = await client.stream("call", { method: "prompts/get", params: { name: "simple-prompt" } });
    expect(await prompt.event("ended")).toMatchObject({ result: { messages: [{}] } });
  });

  it("asks the operator, and goes on with the answer", async () => {
    const stream = await client.stream("call", {
      method: "tools/call",
      params: { name: "trigger-elicitation-request", arguments: {} },
    });
    const { question } = (await stream.event("question")) as { question: Question };
    expect(question).toMatchObject({ server: "everything", method: "elicitation/create" });
    expect(await client.get("questions")).toEqual([question]);
    const wrong = client.post("answer", { question: question.id, action: "accept", content: { name: 7 } });
    await expect(wrong).rejects.toThrow(/does not fit the form: `name` must be of type string/);
    const content = { name: "Ada" };
    await client.post("answer", { question: question.id, action: "accept", content });
    const { result } = (await stream.event("ended")) as { result: unknown };
    expect(JSON.stringify(result)).toContain("Ada");
    expect(stream.events.map(({ event }) => event)).toContain("answered");
    expect(await client.get("questions")).toEqual([]);
    await expect(client.post("answer", { question: question.id, action: "decline" })).rejects.toThrow(/No question/);
  });

  it("is cancelled by `cancel`, and when its page leaves", async () => {
    const params = { name: "trigger-long-running-operation", arguments: { duration: 600, steps: 2 } };
    const cancelled = await client.stream("call", { method: "tools/call", params });
    const { call } = await cancelled.event("started");
    await client.post("cancel", { call });
    expect(await cancelled.event("ended")).toMatchObject({ error: { kind: "cancelled" } });
    const left = await client.stream("call", { method: "tools/call", params });
    await left.event("started");
    left.leave();
    expect(await left.event("ended")).toMatchObject({ error: { kind: "cancelled" } });
    await expect(client.post("cancel", { call })).rejects.toThrow(/No call "c\d+" runs/);
  });

  it("of a tool that is not there, or a wrong body, is refused kindly", async () => {
    const missing = await client.stream("call", { method: "tools/call", params: { name: "nothing" } });
    expect(await missing.event("ended")).toMatchObject({ error: { message: expect.stringContaining("nothing") } });
    await expect(client.stream("call", { method: "tasks/list" })).rejects.toThrow(/cannot send "tasks\/list"/);
    await expect(client.stream("call", { method: "tools/call", params: {} })).rejects.toThrow(/`name` must be/);
    await expect(client.stream("call", { row: 7 })).rejects.toThrow(/There is no call 7/);
  });
});

describe("hiding", () => {
  it("a tool takes effect at once for all clients, and is kept in the config with a backup", async () => {
    const before = await readFile(file, "utf8");
    const changed: string[] = [];
    const other = await connect(running.gateway, { cache: false });
    await other.listen({ toolsListChanged: true }, (event) => changed.push(event.method ?? "changed"));
    const pids = running.gateway.status()["everything"]?.pids;
    const document = await client.post("hide", { server: "everything", tool: "echo" });
    expect(document).toMatchObject({ server: "everything", tool: "echo", hidden: true, config: file });
    await eventually(() => expect(changed.length).toBeGreaterThan(0));
    const { tools } = await other.listTools();
    expect(tools.map(({ name }) => name)).not.toContain("echo");
    await expect(other.callTool("echo", { message: "x" })).rejects.toThrow();
    expect((await catalogue()).items.find(({ name }) => name === "echo")).toMatchObject({ hidden: "disabled" });
    // The server itself goes on.
    expect(running.gateway.status()["everything"]?.pids).toEqual(pids);
    expect(await readFile(file, "utf8")).toBe(before.replace('"get-env"', '"get-env",\n        "echo"'));
    expect((await readdir(folder)).filter((name) => name.endsWith(".bak"))).toHaveLength(1);
    await client.post("show", { server: "everything", tool: "echo" });
    expect(await readFile(file, "utf8")).toBe(before);
    expect((await other.callTool("echo", { message: "again" })).content).toEqual([
      { type: "text", text: "Echo: again" },
    ]);
    await other.close();
  });

  it("is in what is read after it, also while an older read goes on", async () => {
    const echo = async (): Promise<string | undefined> =>
      (await catalogue()).items.find(({ name, server }) => name === "echo" && server === "everything")?.hidden;
    await running.change(await loadConfig(file));
    const older = catalogue();
    await client.post("hide", { server: "everything", tool: "echo" });
    expect(await echo()).toBe("disabled");
    await older;
    expect(await echo()).toBe("disabled");
    await client.post("show", { server: "everything", tool: "echo" });
    expect(await echo()).toBeUndefined();
  });

  it("a server ends it, and showing it starts it again", async () => {
    await client.post("hide", { server: "js" });
    const { items, disabled } = await catalogue();
    expect(disabled).toEqual(["js"]);
    expect(items.some(({ server }) => server === "js")).toBe(false);
    await expect(client.post("hide", { server: "everything" })).rejects.toThrow(/the only server/);
    await client.post("show", { server: "js" });
    expect((await catalogue()).items.some(({ server }) => server === "js")).toBe(true);
  });

  it("refuses what it cannot do, and says why", async () => {
    await expect(client.post("hide", { server: "everythin" })).rejects.toMatchObject({
      status: 404,
      hint: "did you mean everything?",
    });
    await expect(client.post("hide", { server: 5 })).rejects.toThrow(/must be the name/);
    await writeFile(file, (await readFile(file, "utf8")).replace("The servers", "My servers"));
    await expect(client.post("hide", { server: "js" })).rejects.toThrow(/has changed since/);
  });
});

it("starts no server whose lists are known", async () => {
  await eventually(async () => {
    const text = await readFile(file, "utf8");
    const again = await ConfigGateway.create(await loadConfig(file), { changing: true, rememberNames: false });
    again.start();
    const other = new ConsoleCatalogue({ ...hostOf(again), reload: undefined }, () => undefined);
    await vi.waitFor(() => expect(other.counts().get("everything")?.tools).toBeGreaterThan(5));
    expect(again.gateway.status()["everything"]?.state).toBe("idle");
    const { items, config } = await other.read();
    expect(items.length).toBeGreaterThan(10);
    expect(config).toBeUndefined();
    expect(other.counts().get("everything")?.tools).toBeGreaterThan(5);
    expect(again.gateway.status()["everything"]?.state).toBe("idle");
    other.close();
    await again.gateway.close();
    expect(await readFile(file, "utf8")).toBe(text);
  });
});

it("shows the others while servers fail or start, starts none that fails, and says when the rest has come", async () => {
  const own = join(folder, "slow.json");
  const [starts, opened] = [join(folder, "starts"), join(folder, "opened")];
  const failing = `require("fs").appendFileSync(${JSON.stringify(starts)}, "x"); console.error("no key"); process.exit(1)`;
  const path = JSON.stringify(opened);
  const wait = `const look = () => (require("fs").existsSync(${path}) ? import(${JSON.stringify(EVERYTHING)}) : setTimeout(look, 50)); look()`;
  const program = (code: string) => ({ command: process.execPath, args: ["-e", code] });
  const mcpServers = { failing: program(failing), late: program(wait), js: { live: "js" } };
  await writeFile(own, JSON.stringify({ mcpServers }));
  const again = await ConfigGateway.create(await loadConfig(own), { changing: true, rememberNames: false });
  let told = 0;
  const other = new ConsoleCatalogue(hostOf(again), () => (told += 1));
  const { items, problems } = await other.read();
  expect(items.map(({ name }) => name)).toContain("evaluate-js");
  expect(Object.keys(problems)).toEqual(expect.arrayContaining(["failing", "late"]));
  await eventually(() => expect(again.gateway.status()["failing"]?.failing).toBe(true));
  const before = (await readFile(starts, "utf8")).length;
  for (let at = 0; at < 3; at += 1) {
    // As if a list had changed, so that all are read again.
    await again.change(await loadConfig(own));
    const { problems } = await other.read();
    expect(problems["failing"]).toBe(again.gateway.status()["failing"]?.reason);
    expect(problems["failing"]).not.toMatch(/ in \d+ s/);
  }
  expect((await readFile(starts, "utf8")).length).toBe(before);
  const toldBefore = told;
  await writeFile(opened, "");
  await vi.waitFor(() => expect(told).toBeGreaterThan(toldBefore), { timeout: 20_000 });
  await eventually(async () => expect((await other.read()).items.map(({ name }) => name)).toContain("echo"));
  other.close();
  await again.gateway.close();
});

it("hides without a file until the gateway ends", async () => {
  const again = await ConfigGateway.create(await loadConfig(file), { changing: true, rememberNames: false });
  again.start();
  const host = { ...hostOf(again), reload: undefined };
  const other = new ConsoleCatalogue(host, () => undefined);
  const api = routeClient(hidingRoutes(host));
  const text = await readFile(file, "utf8");
  const shown = async (): Promise<readonly string[]> =>
    (await other.read()).items.flatMap(({ name, hidden }) => (hidden === undefined ? [name] : []));
  expect(await api.post("hide", { server: "everything", tool: "echo" })).toEqual({
    server: "everything",
    tool: "echo",
    hidden: true,
  });
  expect(await shown()).not.toContain("echo");
  await api.post("hide", { server: "everything", tool: "get-sum" });
  await api.post("show", { server: "everything", tool: "echo" });
  expect(await shown()).toContain("echo");
  expect(await shown()).not.toContain("get-sum");
  await api.post("hide", { server: "js" });
  expect((await other.read()).disabled).toEqual(["js"]);
  await expect(api.post("hide", { server: "everything" })).rejects.toThrow(/the only server/);
  await api.post("show", { server: "js" });
  expect(await shown()).toContain("evaluate-js");
  await expect(api.post("show", { server: "everything", tool: "get-env" })).rejects.toThrow(/hidden by its entry/);
  expect(await readFile(file, "utf8")).toBe(text);
  other.close();
  await again.gateway.close();
});

it("tells that the catalogue has changed", () => {
  expect(changes).toBeGreaterThan(0);
});

// The lines of an audit, the file that they are in, and what happens if they cannot be written.

import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { callRequest, fakeClient, fakeContext, textResult } from "../../../test/support/handlers/fake-client.ts";
import type { Handler, Request } from "../../core/handler.ts";
import { McpError } from "../../protocol/errors.ts";
import { createServer } from "../../server/server.ts";
import { chain } from "../chain.ts";
import { audit, type AuditOptions } from "./audit.ts";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "catenary-audit-"));
});
afterEach(async () => {
  vi.restoreAllMocks();
  await rm(folder, { recursive: true, force: true });
});

type Line = Record<string, unknown>;
const parse = (text: string): Line[] =>
  text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line);
const linesOf = async (file: string): Promise<Line[]> => parse(await readFile(file, "utf8"));

const done: Handler = async () => textResult("the contents");
const CALLER = { principal: "ada", info: { name: "editor", version: "2" } };

async function written(
  options: AuditOptions,
  upstream: Handler,
  request: Request = callRequest("echo", { token: "s3cret" }),
): Promise<Line[]> {
  const lines: string[] = [];
  const gateway = chain(audit({ ...options, write: (line) => void lines.push(line) })).to(upstream);
  const client = fakeClient(gateway, { caller: CALLER });
  await client.call(request.method, request.params).catch(() => undefined);
  await gateway.close();
  return lines.map((line) => JSON.parse(line) as Line);
}

it("writes who called what, when, and with what outcome", async () => {
  const [line, ...more] = await written({}, done);
  expect(more).toEqual([]);
  expect(line).toEqual({
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as string,
    id: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
    principal: "ada",
    client: "editor 2",
    method: "tools/call",
    name: "echo",
    outcome: "ok",
    bytes: Buffer.byteLength(JSON.stringify(textResult("the contents"))),
    ms: expect.any(Number) as number,
  });
});

it.each<[string, Handler, object]>([
  ["a failed tool", async () => ({ ...textResult("no"), isError: true }), { outcome: "tool error" }],
  ["a question", async () => ({ resultType: "input_required" }), { outcome: "input_required" }],
  ["a task", async () => ({ resultType: "task", taskId: "t1" }), { outcome: "task", task: "t1" }],
  [
    "an error",
    () => Promise.reject(McpError.of("rate_limited", "s3cret")),
    { outcome: "error", error: "rate_limited" },
  ],
  ["a code", () => Promise.reject(new McpError(-7, "s3cret")), { outcome: "error", error: -7 }],
])("writes %s", async (_what, upstream, expected) => {
  const [line] = await written({}, upstream);
  expect(line).toMatchObject(expected);
  expect(JSON.stringify(line)).not.toContain("s3cret");
});

it("writes a cancelled call, and the upstream of a gateway with several", async () => {
  const lines: string[] = [];
  const write = (line: string): void => void lines.push(line);
  const stopped: Handler = async () => {
    client.abort();
    throw new Error("stopped");
  };
  const client = fakeClient(chain(audit({ write })).to(stopped));
  await expect(client.call("tools/call", { name: "wait" })).rejects.toThrow("stopped");
  const server = (tool: string) => createServer({ name: tool, version: "1" }).tool(tool, {}, () => tool);
  const gateway = chain(audit({ write })).to({ notes: server("search"), mail: server("send") });
  await gateway(callRequest("search"), fakeContext().context);
  await gateway.close();
  expect(lines.map((line) => JSON.parse(line) as Line)).toMatchObject([
    { outcome: "cancelled" },
    { name: "search", upstream: "notes", outcome: "ok" },
  ]);
});

it("writes arguments or their hash only with the option", async () => {
  const args = async (options: AuditOptions, given: Record<string, unknown>): Promise<unknown> =>
    (await written(options, done, callRequest("echo", given)))[0]?.["arguments"];
  expect(await args({}, { a: 1 })).toBeUndefined();
  expect(await args({ arguments: true }, { a: 1, b: ["x"] })).toEqual({ a: 1, b: ["x"] });
  const hash = await args({ arguments: "hash" }, { a: 1, b: 2 });
  expect(hash).toMatch(/^sha256 [\w-]{43}$/);
  expect(await args({ arguments: "hash" }, { b: 2, a: 1 })).toBe(hash);
  expect(await args({ arguments: "hash" }, { a: 1, b: 3 })).not.toBe(hash);
  expect(await args({ arguments: true }, { a: "x".repeat(100_000) })).toMatch(/^sha256 /);
  const token = `ghp_${"a1".repeat(18)}`;
  expect(
    await args({ arguments: true }, { pass: 1, password: 7, deep: [{ apiKey: "k" }], note: `is ${token}` }),
  ).toEqual({ pass: 1, password: "[redacted]", deep: [{ apiKey: "[redacted]" }], note: "is [redacted]" });
  const read = { method: "resources/read", params: { uri: "https://u:p@h/x?key=s3cret" } };
  expect((await written({}, done, read))[0]).toMatchObject({ name: "https://h/x" });
  expect((await written({ arguments: true }, done, read))[0]).toMatchObject({ arguments: read.params });
});

it("writes only some methods, and also the start of a request", async () => {
  expect(await written({ methods: ["prompts/get"] }, done)).toEqual([]);
  const lines = await written({ start: true, methods: ["tools/call"] }, done);
  expect(lines).toMatchObject([{ event: "start" }, { event: "end", outcome: "ok" }]);
  expect(lines[0]?.["id"]).toBe(lines[1]?.["id"]);
  expect(lines[0]).not.toHaveProperty("outcome");
});

it("adds whole lines to a file that only its owner can read", async () => {
  const file = join(folder, "audit.jsonl");
  const create = () => chain(audit({ file: "audit.jsonl" }, { folder })).to(done);
  const first = create();
  expect(existsSync(file)).toBe(false);
  const { context } = fakeContext();
  await Promise.all(Array.from({ length: 50 }, (_, index) => first(callRequest(`tool${index}`), context)));
  expect(new Set((await linesOf(file)).map(({ name }) => name)).size).toBe(50);
  await first.close();
  const second = create();
  await second(callRequest("last"), context);
  await second.close();
  expect((await linesOf(file)).at(-1)).toMatchObject({ name: "last" });
  if (process.platform !== "win32") expect((await stat(file)).mode & 0o777).toBe(0o600);
});

it("goes on in a new file after the file was moved", async () => {
  const file = join(folder, "audit.jsonl");
  const gateway = chain(audit({ file })).to(done);
  const now = vi.spyOn(performance, "now").mockReturnValue(10_000);
  const { context } = fakeContext();
  await gateway(callRequest("one"), context);
  await rename(file, `${file}.1`);
  now.mockReturnValue(12_000);
  await gateway(callRequest("two"), context);
  await gateway.close();
  expect((await linesOf(`${file}.1`)).map(({ name }) => name)).toEqual(["one"]);
  expect((await linesOf(file)).map(({ name }) => name)).toEqual(["two"]);
});

it("refuses requests while the file cannot be opened, and says why once", async () => {
  const warn = vi.spyOn(process, "emitWarning").mockReturnValue(undefined);
  const file = join(folder, "missing", "audit.jsonl");
  const upstream = vi.fn(done);
  const gateway = chain(audit({ file, start: true })).to(upstream);
  for (let count = 0; count < 2; count += 1) {
    const error = await fakeClient(gateway).callError("tools/call", { name: "echo" });
    expect(error.message).toBe(
      "The audit cannot be written, so requests are refused; the log of the gateway has the reason",
    );
  }
  expect(upstream).not.toHaveBeenCalled();
  expect(warn.mock.calls).toEqual([[expect.stringContaining(`create the folder ${join(folder, "missing")}`)]]);
  await mkdir(join(folder, "missing"));
  await gateway(callRequest("echo"), fakeContext().context);
  await gateway.close();
  expect(await linesOf(file)).toMatchObject([{ event: "start" }, { event: "end" }]);
});

it("keeps lines that could not be written, refuses requests meanwhile, and writes them later", async () => {
  vi.spyOn(process, "emitWarning").mockReturnValue(undefined);
  const lines: string[] = [];
  let isFull = true;
  const write = (line: string): void => {
    if (isFull) throw new Error("disk full");
    lines.push(line);
  };
  const gateway = chain(audit({ write })).to(done);
  const call = (name: string) => fakeClient(gateway).call("tools/call", { name });
  // It has run, so the caller gets the result.
  expect(await call("one")).toEqual(textResult("the contents"));
  await expect(call("two")).rejects.toThrow("requests are refused");
  isFull = false;
  await call("three");
  await gateway.close();
  expect(lines.map((line) => (JSON.parse(line) as Line)["name"])).toEqual(["one", "three"]);
});

it("goes on without an audit if the option says so", async () => {
  const warn = vi.spyOn(process, "emitWarning").mockReturnValue(undefined);
  const gateway = chain(audit({ file: join(folder, "missing", "x"), onFailure: "warn" })).to(done);
  for (let count = 0; count < 2; count += 1) await gateway(callRequest("echo"), fakeContext().context);
  await gateway.close();
  expect(warn).toHaveBeenCalledOnce();
});

it.skipIf(!existsSync("/dev/full"))("refuses requests while the disk is full", async () => {
  vi.spyOn(process, "emitWarning").mockReturnValue(undefined);
  const gateway = chain(audit({ file: "/dev/full" })).to(done);
  await gateway(callRequest("echo"), fakeContext().context);
  await expect(gateway(callRequest("echo"), fakeContext().context)).rejects.toThrow("requests are refused");
  await gateway.close();
});

it("opens no file if no request came, so that a check of a config leaves none", async () => {
  const warn = vi.spyOn(process, "emitWarning").mockReturnValue(undefined);
  await audit({ file: "audit.jsonl" }, { folder }).close?.();
  await audit({ file: "missing/audit.jsonl" }, { folder }).close?.();
  expect(await readdir(folder)).toEqual([]);
  expect(warn).not.toHaveBeenCalled();
});

it("writes the run of code that made a call", async () => {
  const lines: string[] = [];
  const gateway = chain(audit({ write: (line) => void lines.push(line) })).to(done);
  await gateway(callRequest("echo"), { ...fakeContext().context, run: "0a1b2c3d" });
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({ name: "echo", run: "0a1b2c3d" });
});

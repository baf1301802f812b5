// The lines of the log: what they contain, and what they must not.

import { expect, it, vi } from "vitest";
import { callRequest, fakeContext, textResult } from "../../../test/support/handlers/fake-client.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Handler, Request } from "../../core/handler.ts";
import { McpError } from "../../protocol/errors.ts";
import { createServer, type Server } from "../../server/server.ts";
import { chain } from "../chain.ts";
import { log, type LogOptions } from "./log.ts";

async function lines(
  options: LogOptions,
  upstream: Handler,
  request: Request = callRequest("echo", { token: "s3cret" }),
  caller = fakeContext({ name: "ada" }),
) {
  const written: string[] = [];
  const gateway = chain(log({ ...options, write: (line) => written.push(line) })).to(upstream);
  await gateway(request, caller.context).catch(() => undefined);
  return written;
}

const done: Handler = async () => textResult("the contents");
const failing =
  (error: unknown): Handler =>
  () =>
    Promise.reject(error);
const TIME = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`;

it("writes one line for each request: method, tool, outcome, duration and caller", async () => {
  const [line, ...more] = await lines({}, done);
  expect(more).toEqual([]);
  expect(line).toMatch(new RegExp(String.raw`^${TIME} info tools/call echo: complete, \d+(\.\d)? ms, for ada$`));
  const [bare] = await lines({}, done, { method: "tools/list", params: {} }, fakeContext());
  expect(bare).toMatch(new RegExp(String.raw`^${TIME} info tools/list: complete, \d+(\.\d)? ms$`));
});

it("writes the upstream of a gateway with several", async () => {
  const written: string[] = [];
  const server = (tool: string): Server => createServer({ name: tool, version: "1" }).tool(tool, {}, () => tool);
  const inner = chain().to({ x: server("deep"), y: server("z") });
  const write = (line: string): void => void written.push(line);
  const gateway = chain(log({ write })).to({ notes: server("search"), team: inner });
  const json = chain(log({ format: "json", write })).to({ notes: server("search"), team: inner });
  const { context } = fakeContext();
  for (const name of ["search", "deep"]) await gateway(callRequest(name), context);
  await json(callRequest("search"), context);
  await expect(gateway(callRequest("nope"), context)).rejects.toThrow();
  expect(written[0]).toMatch(/ info tools\/call search \(notes\): complete, /);
  expect(written[1]).toMatch(/ info tools\/call deep \(team\.x\): complete, /);
  expect(JSON.parse(written[2] ?? "")).toMatchObject({ name: "search", upstream: "notes" });
  expect(written[3]).toMatch(/ warning tools\/call nope: failed /);
  await Promise.all([gateway.close(), json.close()]);
});

it("writes the run of code that made a call", async () => {
  const written: string[] = [];
  const write = (line: string): void => void written.push(line);
  const gateway = chain(log({ write }), log({ format: "json", write })).to(done);
  await gateway(callRequest("echo"), { ...fakeContext({ name: "ada" }).context, run: "0a1b2c3d" });
  expect(JSON.parse(written[0] ?? "")).toMatchObject({ name: "echo", run: "0a1b2c3d" });
  expect(written[1]).toMatch(/ ms, for ada, run 0a1b2c3d$/);
});

it("writes the same as JSON", async () => {
  const [line] = await lines({ format: "json" }, failing(McpError.of("rate_limited", "the text")));
  expect(JSON.parse(line ?? "")).toEqual({
    time: expect.stringMatching(TIME) as string,
    level: "warning",
    method: "tools/call",
    name: "echo",
    outcome: "failed",
    error: "rate_limited",
    ms: expect.any(Number) as number,
    caller: "ada",
  });
});

it("writes the outcome", async () => {
  const outcome = async (upstream: Handler, caller = fakeContext()): Promise<string> => {
    const [line = ""] = await lines({}, upstream, callRequest("echo"), caller);
    return line.slice(25).replace(/, [\d.]+ ms$/, "");
  };
  expect(await outcome(async () => ({ ...textResult("no"), isError: true }))).toBe(
    "warning tools/call echo: tool error",
  );
  expect(await outcome(async () => ({ resultType: "input_required" }))).toBe("info tools/call echo: input_required");
  expect(await outcome(async () => ({ resultType: "task" }))).toBe("info tools/call echo: task");
  expect(await outcome(async () => ({ resultType: 7 as never }))).toBe("info tools/call echo: 7");
  expect(await outcome(failing(new McpError(-5, "x")))).toBe("warning tools/call echo: failed (-5)");
  expect(await outcome(failing(new ConnectionError("closed", "The upstream notes is gone")))).toBe(
    "error tools/call echo: failed (closed: The upstream notes is gone)",
  );
  expect(await outcome(failing(new TypeError("x")))).toBe("error tools/call echo: failed (TypeError)");
  expect(await outcome(failing(1))).toBe("error tools/call echo: failed (the thrown value is not an Error)");
  const caller = fakeContext();
  const leaving: Handler = async () => {
    caller.abort();
    throw new Error("left");
  };
  expect(await outcome(leaving, caller)).toBe("info tools/call echo: cancelled");
});

it("names the middleware that failed", async () => {
  const written: string[] = [];
  const broken = () => Promise.reject(new Error("s3cret"));
  const gateway = chain(log({ write: (line) => written.push(line) }), broken).to(done);
  await gateway(callRequest("echo"), fakeContext().context).catch(() => undefined);
  expect(written[0]).toContain("failed (internal_error in the middleware broken)");
});

it("writes no arguments, contents, error messages or queries unless asked to", async () => {
  const all = [
    ...(await lines({}, done)),
    ...(await lines({ format: "json" }, failing(McpError.of("invalid_params", "s3cret", { s3cret: 1 })))),
    ...(await lines({}, failing(new Error("s3cret")))),
    ...(await lines({}, done, {
      method: "resources/read",
      params: { uri: "https://user:s3cret@host/a?s3cret#s3cret" },
    })),
  ].join("\n");
  expect(all).not.toMatch(/s3cret|the contents/);
  expect(all).toContain("resources/read https://host/a: complete");
  const [full] = await lines({ arguments: true }, failing(McpError.of("invalid_params", "s3cret")));
  expect(full).toContain("failed (invalid_params: s3cret)");
  expect(full).toContain('arguments {"token":"[redacted]"}');
  const key = `ghp_${"a1".repeat(18)}`;
  const [redacted] = await lines(
    { arguments: true },
    failing(McpError.of("invalid_params", `bad key ${key}`)),
    callRequest("echo", { text: `key ${key}`, max_tokens: 5 }),
  );
  expect(redacted).toContain("failed (invalid_params: bad key [redacted])");
  expect(redacted).toContain('arguments {"text":"key [redacted]","max_tokens":5}');
  const [cut] = await lines({ arguments: 5 }, done);
  expect(cut).toMatch(/arguments \{"tok…$/);
  const circle: Record<string, unknown> = {};
  circle["self"] = circle;
  expect((await lines({ arguments: true }, done, callRequest("echo", circle)))[0]).toContain("(not serializable)");
});

it("writes one line without control characters, whatever the names are", async () => {
  const nasty = "a\nb\u001b[31mc\u009b\u202e\u2028\ud800";
  for (const format of ["text", "json"] as const) {
    const [line = ""] = await lines({ format }, done, callRequest(nasty), fakeContext({ name: nasty }));
    expect(line).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Cs}]/u);
    const [long = ""] = await lines({ format }, done, callRequest("x".repeat(10_000)));
    expect(long.length).toBeLessThan(300);
  }
});

it("writes only lines of the given level or above", async () => {
  expect(await lines({ level: "warning" }, done)).toEqual([]);
  expect(await lines({ level: "error" }, failing(McpError.of("tool_not_found", "x")))).toEqual([]);
  expect(await lines({ level: "error" }, failing(new ConnectionError("closed", "x")))).toHaveLength(1);
});

it("writes to stderr by default, and a failing write does not fail the request", async () => {
  const write = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  await chain(log()).to(done)(callRequest("echo"), fakeContext().context);
  expect(write.mock.calls).toEqual([[expect.stringMatching(/tools\/call echo: complete, .* ms\n$/)]]);
  write.mockRestore();
  const full = () => {
    throw new Error("no space left");
  };
  expect(await chain(log({ write: full })).to(done)(callRequest("echo"), fakeContext().context)).toEqual(
    textResult("the contents"),
  );
});

it("writes the message of a connection error once", async () => {
  const lines: string[] = [];
  const failing: Handler = () => Promise.reject(new ConnectionError("timeout", "tools/call did not finish"));
  const { context } = fakeContext();
  const logging = log({ arguments: true, write: (line) => lines.push(line) });
  await expect(logging(callRequest("x"), context, failing)).rejects.toThrow();
  expect(lines[0]?.split("did not finish")).toHaveLength(2);
});

it("writes no output of a program without `arguments`, and never what looks like a secret", async () => {
  const key = `ghp_${"a1".repeat(18)}`;
  const exit = new ConnectionError("closed", `node exited with code 1: bad key ${key}`, {
    diagnostics: `; its stderr ends with: using ${key}, customer 4711`,
  });
  const failures = [exit, exit.with({ problem: `The upstream notes failed: ${exit.problem}` })];
  for (const error of failures) {
    const [line] = await lines({}, failing(error));
    expect(line).toMatch(/failed \(closed: .*node exited with code 1: bad key \[redacted\]\), /);
    const [full] = await lines({ arguments: true }, failing(error));
    expect(full).toContain("bad key [redacted]; its stderr ends with: using [redacted], customer 4711), ");
  }
});

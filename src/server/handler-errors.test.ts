// What happens to errors of handlers: who is told, what callers read, and what stays hidden from them.

import { afterEach, expect, it, vi } from "vitest";
import { fakeClient } from "../../test/support/handlers/fake-client.ts";
import { ConnectionError, UserError } from "../core/errors.ts";
import { McpError } from "../protocol/errors.ts";
import type { ErrorListener } from "./handler-errors.ts";
import type { ServerOptions } from "./options.ts";
import { createServer, type Server } from "./server.ts";

const SECRET = "connect failed: postgres://admin:hunter2@db";

function failing(options: Partial<ServerOptions> = {}): Server {
  const fail = (): never => {
    throw new Error(SECRET);
  };
  return (
    createServer({ name: "test", version: "1", ...options })
      .tool("fail", {}, fail)
      .tool("returned", {}, () => new Error(SECRET))
      .tool("meant", {}, () => {
        throw new UserError("There is no such city");
      })
      .tool("refused", {}, () => {
        throw McpError.of("access_denied", "Not before noon");
      })
      // @ts-expect-error -- no such type of block
      .tool("bad", {}, () => ({ content: [{ type: "txt" }] }))
      .resource("a:b", {}, fail)
      .template("t:{x}", { complete: { x: fail } }, () => "x")
      .prompt("p", {}, fail)
      .method("acme/m", fail)
  );
}

const textOf = async (server: Server, name: string): Promise<unknown> => {
  const { content } = await fakeClient(server).call("tools/call", { name });
  return (content as [{ text: string }])[0].text;
};

const errorsOf = (server: Server): Promise<string[]> =>
  Promise.all(
    (
      [
        ["resources/read", { uri: "a:b" }],
        ["prompts/get", { name: "p" }],
        ["completion/complete", { ref: { type: "ref/resource", uri: "t:{x}" }, argument: { name: "x", value: "" } }],
        ["acme/m", {}],
      ] as const
    ).map(async ([method, params]) => (await fakeClient(server).callError(method, params)).message),
  );

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

it("the message of a thrown error is sent, unless errors are masked", async () => {
  const open = failing({ onError: () => undefined });
  expect(await textOf(open, "fail")).toBe(SECRET);
  expect(await textOf(open, "returned")).toBe(SECRET);
  expect(await errorsOf(open)).toEqual([SECRET, SECRET, SECRET, SECRET]);
  const masked = failing({ onError: () => undefined, maskErrors: true });
  expect(await textOf(masked, "fail")).toBe("The tool fail failed because of an internal error");
  expect(await textOf(masked, "returned")).toBe("The tool returned failed because of an internal error");
  expect(await errorsOf(masked)).toEqual([
    "The resource a:b failed because of an internal error",
    "The prompt p failed because of an internal error",
    "completion/complete failed because of an internal error",
    "acme/m failed because of an internal error",
  ]);
});

it("the message of a thrown error is sent if it is meant for the caller, or tells of a wrong result", async () => {
  const masked = failing({ onError: () => undefined, maskErrors: true });
  expect(await textOf(masked, "meant")).toBe("There is no such city");
  expect(await textOf(masked, "bad")).toContain("Tool bad returned content[0].type");
  const refused = await fakeClient(masked).callError("tools/call", { name: "refused" });
  expect(refused.message).toBe("Not before noon");
});

it("the message of a thrown error is sent without the output of a program", async () => {
  const onError = vi.fn();
  const server = createServer({ name: "test", version: "1", onError }).tool("fail", {}, () => {
    throw new ConnectionError("closed", "node exited", { diagnostics: `; its stderr: ${SECRET}` });
  });
  expect(await textOf(server, "fail")).toBe("node exited");
  expect(onError).toHaveBeenCalledWith(
    expect.objectContaining({ message: `node exited; its stderr: ${SECRET}` }),
    expect.anything(),
  );
});

it("the message of a thrown error is masked in production by default", async () => {
  vi.stubEnv("NODE_ENV", "production");
  const onError = (): void => undefined;
  expect(await textOf(failing({ onError }), "fail")).toBe("The tool fail failed because of an internal error");
  expect(await textOf(failing({ onError, maskErrors: false }), "fail")).toBe(SECRET);
});

it("onError gets unexpected errors with what failed, and no others", async () => {
  const reported: unknown[][] = [];
  const onError: ErrorListener = (error, { method, name, caller }) => {
    reported.push([(error as Error).message.slice(0, 30), method, name, caller.principal]);
  };
  const server = failing({ onError });
  const client = fakeClient(server, { caller: { principal: "ada" } });
  for (const name of ["fail", "meant", "bad"]) await client.call("tools/call", { name });
  await client.callError("tools/call", { name: "refused" });
  await client.callError("resources/read", { uri: "a:b" });
  await client.callError("acme/m");
  expect(reported).toEqual([
    [SECRET.slice(0, 30), "tools/call", "fail", "ada"],
    ["Tool bad returned content[0].type".slice(0, 30), "tools/call", "bad", "ada"],
    [SECRET.slice(0, 30), "resources/read", "a:b", "ada"],
    [SECRET.slice(0, 30), "acme/m", "acme/m", "ada"],
  ]);
});

it("onError may throw without effect on the caller", async () => {
  const server = failing({
    onError: () => {
      throw new Error("the listener is broken");
    },
  });
  expect(await textOf(server, "fail")).toBe(SECRET);
});

it("onError is not told of the error of a call that was cancelled", async () => {
  const onError = vi.fn();
  const server = createServer({ name: "test", version: "1", onError }).tool("wait", {}, async (_, { signal }) => {
    await new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(new Error("stopped"))));
  });
  const client = fakeClient(server);
  const call = client.call("tools/call", { name: "wait" });
  client.abort(new Error("enough"));
  await expect(call).rejects.toThrow("stopped");
  expect(onError).not.toHaveBeenCalled();
});

it("onError must be a function", () => {
  expect(() => failing({ onError: "log" as never })).toThrow("createServer(): `onError` must be a function");
});

it("onError is stderr by default: with the stack, but in production only the message", async () => {
  const print = vi.spyOn(console, "error").mockImplementation(() => undefined);
  await textOf(failing(), "fail");
  expect(print.mock.calls).toEqual([[expect.stringMatching(/^catenary: tool fail failed: Error: connect.*\n +at /)]]);
  print.mockClear();
  vi.stubEnv("NODE_ENV", "production");
  await textOf(failing(), "fail");
  await textOf(failing(), "bad");
  expect(print.mock.calls).toEqual([
    [`catenary: tool fail failed: ${SECRET}`],
    [expect.stringMatching(/^catenary: Tool bad returned content\[0\]\.type, which [^\n]*$/)],
  ]);
});

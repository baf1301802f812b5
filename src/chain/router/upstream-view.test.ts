// Upstreams that fail, are unavailable or slow: the errors of calls to them, and that calls to others do not wait.

import { afterEach, expect, it, vi } from "vitest";
import { ConnectionError } from "../../core/errors.ts";
import type { Result } from "../../core/handler.ts";
import { invalidParams, McpError } from "../../protocol/errors.ts";
import { fakeClient } from "../../../test/support/handlers/fake-client.ts";
import { scriptedServer, answerAs, toolList } from "../../../test/support/handlers/scripted-server.ts";
import { createRouter } from "./router.ts";

afterEach(() => {
  vi.useRealTimers();
});

const textOf = (result: Result): unknown => (result["content"] as { text: string }[])[0]?.text;

function withResolvers(): {
  promise: Promise<Result>;
  resolve(result: Result): void;
  reject(error: Error): void;
} {
  let [resolve, reject] = [(_result: Result): void => undefined, (_error: Error): void => undefined];
  const promise = new Promise<Result>((done, failed) => ([resolve, reject] = [done, failed]));
  return { promise, resolve, reject };
}

it("calls with unavailable upstreams fail with the name of the upstream, and keep the fields of the error", async () => {
  const a = scriptedServer({
    "tools/list": toolList("x", "y", "z"),
    "tools/call": ({ name }) => {
      if (name === "x") throw new ConnectionError("closed", "the process has exited", { mayHaveRun: false });
      if (name === "y") throw invalidParams("y is not for you", { hint: 1 });
      throw new TypeError("z is broken");
    },
  });
  const caller = fakeClient(createRouter({ a, b: scriptedServer({}) }));
  const lost: unknown = await caller.call("tools/call", { name: "x" }).catch((error: unknown) => error);
  expect(lost).toBeInstanceOf(ConnectionError);
  expect(lost).toMatchObject({
    kind: "closed",
    mayHaveRun: false,
    message: "The upstream a failed: the process has exited",
  });
  // An error that an upstream answers stays unchanged.
  expect((await caller.callError("tools/call", { name: "y" })).toBody()).toEqual(
    invalidParams("y is not for you", { hint: 1 }).toBody(),
  );
  expect((await caller.callError("tools/call", { name: "z" })).message).toBe("The upstream a failed: z is broken");
});

it("calls with unavailable upstreams report which upstream could not be asked for an unknown name", async () => {
  const away = async (): Promise<never> => {
    throw new McpError(-32603, "The server is asleep for good", { kind: "unreachable" });
  };
  const caller = fakeClient(
    createRouter({ away, a: scriptedServer({ "tools/list": toolList("x"), "tools/call": answerAs("a") }) }),
  );
  expect((await caller.callError("tools/call", { name: "y" })).message).toBe(
    "Tool not found: y; not all upstreams could be asked: The upstream away failed: The server is asleep for good",
  );
  expect(textOf(await caller.call("tools/call", { name: "x" }))).toBe("a: x");
});

it("calls with unavailable upstreams do not wait for an upstream that does not answer", async () => {
  vi.useFakeTimers();
  const hung = scriptedServer({ "server/discover": () => new Promise(() => undefined) });
  const a = scriptedServer({ "tools/list": toolList("x"), "tools/call": answerAs("a") });
  const caller = fakeClient(createRouter({ hung, a }));
  // The first call waits a second for other upstreams that might have the same name.
  const answer = caller.call("tools/call", { name: "x" });
  await vi.advanceTimersByTimeAsync(1_000);
  expect(textOf(await answer)).toBe("a: x");
  // Known names are used.
  expect(textOf(await caller.call("tools/call", { name: "x" }))).toBe("a: x");
  // If all names have a label, the label is enough.
  const always = fakeClient(createRouter({ hung, a }, { names: "always" }));
  expect(textOf(await always.call("tools/call", { name: "a_x" }))).toBe("a: x");
  expect(vi.getTimerCount()).toBeGreaterThan(0);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(vi.getTimerCount()).toBe(0);
});

it("calls with unavailable upstreams have a short timeout for an upstream that was slow, until it answers", async () => {
  vi.useFakeTimers();
  let answer: (result: Result) => void = () => undefined;
  const slow = scriptedServer({
    "server/discover": () => new Promise((resolve) => (answer = resolve)),
    "tools/list": toolList("s"),
    "tools/call": answerAs("slow"),
  });
  const a = scriptedServer({ "tools/list": toolList("x") });
  const caller = fakeClient(createRouter({ slow, a }));
  const list = async (ms: number): Promise<unknown> => {
    const listing = caller.call("tools/list");
    await vi.advanceTimersByTimeAsync(ms);
    return ((await listing)["tools"] as { name: string }[]).map(({ name }) => name);
  };
  expect(await list(15_000)).toEqual(["x"]);
  expect(await list(50)).toEqual(["x"]);
  answer({ capabilities: { tools: {} } });
  expect(await list(0)).toEqual(["s", "x"]);
  expect(slow.requests.filter(({ method }) => method === "server/discover")).toHaveLength(1);
});

it("calls with unavailable upstreams do not wait for an upstream that has failed; it is tried again in the background", async () => {
  vi.useFakeTimers();
  let outcome = withResolvers();
  const broken = vi.fn(() => outcome.promise);
  const a = scriptedServer({ "tools/list": toolList("x") });
  const caller = fakeClient(createRouter({ broken, a }));
  const list = async (ms: number): Promise<Result> => {
    const listing = caller.call("tools/list");
    await vi.advanceTimersByTimeAsync(ms);
    return listing;
  };
  outcome.promise.catch(() => undefined);
  outcome.reject(new ConnectionError("spawn", "no such program"));
  const why = { upstream: "broken", message: "The upstream broken failed: no such program" };
  expect((await list(0))._meta?.["catenary/unavailable"]).toEqual([why]);
  outcome = withResolvers();
  const second = await list(50);
  expect([second["tools"], second._meta?.["catenary/unavailable"]]).toMatchObject([[{ name: "x" }], [why]]);
  await list(50);
  expect(broken).toHaveBeenCalledTimes(2);
  outcome.resolve({ capabilities: {} });
  await vi.advanceTimersByTimeAsync(0);
  expect((await list(0))._meta?.["catenary/unavailable"]).toBeUndefined();
});

it("calls with unavailable upstreams ask an upstream that has never answered again after a while", async () => {
  vi.useFakeTimers();
  let isSilent = true;
  const silent = scriptedServer({
    "server/discover": () => (isSilent ? new Promise(() => undefined) : { capabilities: { tools: {} } }),
    "tools/list": toolList("d"),
  });
  const caller = fakeClient(createRouter({ silent, a: scriptedServer({}) }));
  const late = caller.call("tools/list");
  await vi.advanceTimersByTimeAsync(15_000);
  expect((await late)["tools"]).toEqual([]);
  isSilent = false;
  await vi.advanceTimersByTimeAsync(45_000);
  expect((await caller.call("tools/list"))["tools"]).toMatchObject([{ name: "d" }]);
});

it("calls with unavailable upstreams end at once when the caller leaves", async () => {
  const hung = scriptedServer({ "server/discover": () => new Promise(() => undefined) });
  const caller = fakeClient(createRouter({ hung }));
  const answer = caller.call("tools/call", { name: "x" });
  const listing = caller.call("tools/list");
  caller.abort(new Error("The caller has left"));
  await expect(answer).rejects.toThrow("The caller has left");
  await expect(listing).rejects.toThrow("The caller has left");
});

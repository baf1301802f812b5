// What the counters of the chain make of the steps of calls: where a call, an error and a change count, whose time is
// whose, and what is compared when a node is asked for.

import { expect, it } from "vitest";
import type { ObservedCall } from "../chain/observe.ts";
import type { Step } from "../chain/steps.ts";
import type { Request, Result } from "../core/handler.ts";
import { ChainCounters } from "./chain-picture.ts";
import type { ConsoleHost } from "./host.ts";
import type { ChainNode, StepView } from "./types.ts";

const REQUEST: Request = { method: "tools/call", params: { name: "add" } };
const RESULT: Result = { resultType: "complete", content: [] };

function step(kind: Step["kind"], name: string, more: Partial<Step> = {}): Step {
  return { kind, name, request: REQUEST, result: RESULT, startedAt: 0, endedAt: 1, steps: [], ...more };
}

interface Entry {
  readonly name: string;
  readonly middleware: object;
}

function start(chain: readonly Entry[], upstreams: readonly string[], views?: readonly StepView[]) {
  const status = { state: "running", target: "node", sessions: 1, pids: [], restarts: 0 };
  const running = {
    gateway: {
      middleware: chain,
      upstreams: new Map(),
      status: () => Object.fromEntries(upstreams.map((name) => [name, status])),
    },
    config: { disabled: [] },
    signIns: { page: () => undefined },
  };
  const counters = new ChainCounters({ host: { running } as unknown as ConsoleHost, stepsOf: () => views });
  let id = 0;
  const end = (
    steps: readonly Step[],
    { client = "Editor 1", ...more }: Partial<ObservedCall> & { client?: string } = {},
  ) => {
    id += 1;
    const call = { request: REQUEST, result: RESULT, error: undefined, status: "answered", ms: 5, steps, ...more };
    const row = { id, at: id, method: "tools/call", name: "add", client } as const;
    const status = call.status === "cancelled" ? "cancelled" : "ok";
    counters.ended({ ...row, status }, call as unknown as ObservedCall);
  };
  const node = (wanted: string): ChainNode | undefined =>
    counters.read(wanted).nodes.find((candidate) => candidate.id === wanted);
  return { counters, end, node };
}

const ACTING = { layer: { middleware: () => undefined } };
const TRANSFORM = { layer: { transform: {} } };

it("an error counts where it began, and a change where the request or the result became another", () => {
  const { end, node } = start(
    [
      { name: "log", middleware: ACTING },
      { name: "redact", middleware: ACTING },
    ],
    ["a", "b"],
  );
  const error = new Error("no");
  const upstream = step("upstream", "a", { request: { ...REQUEST, params: { name: "other" } } });
  end([step("middleware", "log", { steps: [step("middleware", "redact", { steps: [upstream] })] })]);
  const failed = step("upstream", "a", { error, result: undefined });
  const passed = step("middleware", "redact", { error, result: undefined, steps: [failed] });
  end([step("middleware", "log", { error, result: undefined, steps: [passed] })], { status: "failed", error });
  expect(node("chain log")).toMatchObject({ calls: 2, errors: 0, changed: 0, last: [] });
  expect(node("chain redact")).toMatchObject({ calls: 2, errors: 0, changed: 1, last: [{ row: 1 }] });
  expect(node("upstream a")).toMatchObject({ calls: 2, errors: 1, last: [{ row: 2 }, { row: 1 }] });
  expect(node("client Editor 1")).toMatchObject({ calls: 2, errors: 1 });
  expect(node("upstream b")).toMatchObject({ calls: 0, errors: 0 });
  end([failed], { status: "cancelled", error });
  expect(node("upstream a")).toMatchObject({ calls: 3, errors: 1 });
});

it("a middleware that answers by itself, and one that refuses", () => {
  const { end, node } = start([{ name: "cache", middleware: ACTING }], ["a"]);
  end([step("middleware", "cache")]);
  end([step("middleware", "cache", { result: undefined, error: new Error("refused") })], { status: "failed" });
  const { calls, errors, note } = node("chain cache") ?? {};
  expect({ calls, errors, note }).toEqual({ calls: 2, errors: 1, note: "1 answered without a server" });
});

it("the time of a step is its own: what runs at once inside of it is not counted twice", () => {
  const { end, node } = start([{ name: "log", middleware: ACTING }], ["a", "b"]);
  const [a, b] = [
    step("upstream", "a", { startedAt: 2, endedAt: 8 }),
    step("upstream", "b", { startedAt: 3, endedAt: 9 }),
  ];
  const router = step("router", "router", { startedAt: 1, endedAt: 9.5, steps: [a, b] });
  end([step("middleware", "log", { startedAt: 0, endedAt: 10, steps: [router] })]);
  expect(node("chain log")?.p50).toBe(1.5);
  expect(node("router")?.p50).toBe(1.5);
  expect(node("upstream b")?.p50).toBe(6);
});

it("transforms that act on a list together count one by one", () => {
  const { end, node } = start(
    [
      { name: "rename", middleware: TRANSFORM },
      { name: "filter", middleware: TRANSFORM },
    ],
    ["a"],
  );
  end([step("transform", "rename + filter", { result: { ...RESULT }, steps: [step("upstream", "upstream")] })]);
  end([step("transform", "rename", { steps: [step("upstream", "upstream")] })]);
  expect(node("chain rename")).toMatchObject({ kind: "transform", calls: 2, changed: 1 });
  expect(node("chain filter")).toMatchObject({ kind: "transform", calls: 1, changed: 1 });
  // The only upstream has no name in its step.
  expect(node("upstream a")).toMatchObject({ calls: 2 });
});

it("what a step changed is there for the node that is asked for alone", () => {
  const change = { path: "params.name", before: "add", after: "sum" };
  const view: StepView = { kind: "transform", name: "rename", startMs: 0, request: [change], result: [], steps: [] };
  const { counters, end, node } = start([{ name: "rename", middleware: TRANSFORM }], ["a"], [view]);
  end([step("transform", "rename", { request: { ...REQUEST }, steps: [step("upstream", "upstream")] })]);
  expect(node("chain rename")?.last).toEqual([{ row: 1, at: 1, call: "add", request: [change], result: [] }]);
  const others = counters.read("upstream a").nodes.find(({ id }) => id === "chain rename");
  expect(others?.last[0]?.request).toEqual([]);
});

it("the last calls and the clients that called last are kept", () => {
  const { counters, end, node } = start([], ["a"]);
  for (let count = 0; count < 40; count += 1) end([step("upstream", "upstream")], { client: `c${count}` });
  end([step("upstream", "upstream")], { client: "c20" });
  end([], { request: { method: "subscriptions/listen", params: {} }, client: "listener" });
  const clients = counters.read().nodes.filter(({ kind }) => kind === "client");
  expect(clients).toHaveLength(30);
  expect(clients[0]).toMatchObject({ name: "c20", calls: 2 });
  expect(node("upstream a")?.last.map(({ row }) => row)).toEqual([41, 40, 39, 38, 37, 36]);
});

// Code mode in front of servers that are still starting, or have failed: they are named, a call waits for the server that
// it names and for no other, and a call to one that cannot start fails at once.

import { afterEach, expect, it } from "vitest";
import { deferred } from "../core/async.ts";
import { connect } from "../client/connect.ts";
import { ConnectionError } from "../core/errors.ts";
import type { Handler, Result } from "../core/handler.ts";
import { UNAVAILABLE, UPSTREAM } from "../protocol/lists.ts";
import { codeMode } from "./index.ts";

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close();
});

const STARTING = "The upstream slow-notes is still starting; ask again";
const FAILED = "The upstream mail failed: it exited with code 1";

interface SlowGateway {
  /** Calls a tool of code mode, and returns its text. */
  call(name: string, args: object): Promise<string>;
  /** Lets the server start. */
  start(): void;
  /** Resolves when the server is waited for. */
  readonly waitedFor: Promise<unknown>;
  /** What was asked of the gateway and of the servers. */
  readonly requests: string[];
}

/** A gateway whose server `clock` runs, `slow-notes` is starting, and `mail` cannot start. */
async function slowGateway(): Promise<SlowGateway> {
  const [started, waitedFor] = [deferred<undefined>(), deferred<undefined>()];
  const requests: string[] = [];
  let isStarted = false;
  const tool = (name: string, upstream: string): object => ({
    name,
    inputSchema: { type: "object" },
    _meta: { [UPSTREAM]: upstream },
  });
  const gateway: Handler = async ({ method, params }): Promise<Result> => {
    requests.push(method);
    if (method === "tools/call") {
      const text = `${String(params["name"])} ${JSON.stringify(params["arguments"])}`;
      return { resultType: "complete", content: [{ type: "text", text }] };
    }
    if (method !== "tools/list") return { resultType: "complete", capabilities: { tools: {} } };
    const missing = [
      ...(isStarted ? [] : [{ upstream: "slow-notes", message: STARTING }]),
      { upstream: "mail", message: FAILED },
    ];
    const tools = [tool("tell_time", "clock"), ...(isStarted ? [tool("find", "slow-notes")] : [])];
    return { resultType: "complete", tools, _meta: { [UNAVAILABLE]: missing } };
  };
  const starting: Handler = async () => {
    requests.push("slow-notes");
    waitedFor.resolve(undefined);
    await started.promise;
    return { resultType: "complete", capabilities: { tools: {} } };
  };
  const failing: Handler = async () => {
    requests.push("mail");
    throw new ConnectionError("closed", FAILED);
  };
  const upstreams = new Map([
    ["slow-notes", starting],
    ["mail", failing],
  ]);
  const code = codeMode(Object.defineProperty(gateway, "upstreams", { value: upstreams }), { sandbox: false });
  const client = await connect(code);
  open.push(code, client);
  return {
    requests,
    waitedFor: waitedFor.promise,
    start: () => {
      isStarted = true;
      started.resolve(undefined);
    },
    call: async (name, args) => {
      const { content } = await client.callTool(name, args as never);
      return content.map((block) => (block.type === "text" ? block.text : block.type)).join("\n");
    },
  };
}

it("search-tools and describe-tools name the servers that are missing", async () => {
  const { call } = await slowGateway();
  const rest = `Not listed: ${STARTING}; ${FAILED}`;
  expect(await call("search-tools", { query: "time" })).toBe(`clock.tell_time()\n${rest}`);
  expect(await call("search-tools", { query: "xylophone" })).toBe(
    `No tool matches; 1 tool is known so far. Try other words, or an empty query to list some.\n${rest}`,
  );
  expect(await call("describe-tools", { names: ["clock.tell_time"] })).not.toContain("Not listed");
  expect(await call("describe-tools", { names: ["slow_notes.find"] })).toBe(
    `There is no tool "slow_notes.find"; find tools with search-tools\n${rest}`,
  );
});

it("calls wait for the server that they name, together, and pass their arguments on", async () => {
  const { call, start, waitedFor, requests } = await slowGateway();
  const find = (word: string): string => `tools.slow_notes.find({ word: "${word}" })`;
  const running = call("run-code", {
    code: `console.log(await tools.clock.tell_time()); await Promise.all([${find("ada")}, ${find("bob")}])`,
  });
  await waitedFor;
  expect(requests.filter((one) => one === "tools/call")).toHaveLength(1);
  start();
  const text = await running;
  expect(text).toContain(`tell_time {}\n=> [ 'find {"word":"ada"}', 'find {"word":"bob"}' ]`);
  expect(text).toMatch(/\ncalls: clock\.tell_time .*, slow_notes\.find 2 times /);
  expect(requests.filter((one) => one === "slow-notes")).toHaveLength(1);
  expect(requests.filter((one) => one === "tools/list")).toHaveLength(2);
  expect(requests).not.toContain("mail");
});

it("a call to a server that cannot start fails at once, and a wrong name waits for none", async () => {
  const { call, requests } = await slowGateway();
  expect(await call("run-code", { code: `await tools.mail.send({})` })).toContain(
    `mail.send cannot be called: ${FAILED}`,
  );
  expect(await call("run-code", { code: `await tools.clock.tell_tim()` })).toContain(
    `There is no tool clock.tell_tim; did you mean tools.clock.tell_time? If not, find it with tools.search("words"). Not listed: ${STARTING}; ${FAILED}`,
  );
  expect(requests).not.toContain("slow-notes");
});

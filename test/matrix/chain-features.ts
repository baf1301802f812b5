// Checks for each feature that crosses a chain, and the tests that run them for a pair of revisions and of transports.
// What a check sends and expects carries the name of its caller, so that many callers can run it at once. Where one of
// the two revisions lacks a feature, the check expects the error.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../support/waiting.ts";
import type { CallToolResult, ChangeEvent, Client, ConnectOptions } from "../../src/client/index.ts";
import { McpError } from "../../src/protocol/errors.ts";
import { NEWEST, REVISIONS } from "../../src/protocol/revisions/index.ts";
import { hasTasks, TASKS_EXTENSION } from "../../src/protocol/tasks.ts";
import { PAIRS } from "../support/thoroughness.ts";
import { ChainSetup, type ChainLayout, type TransportKind } from "./chain-setup.ts";

export const NAMES: readonly string[] = REVISIONS.map(({ name }) => name);
const [, SECOND = "", THIRD = "", FOURTH = ""] = NAMES;

/** What a caller received. */
export class Received {
  readonly logs: unknown[] = [];
  /** The message, URL or text of every request from the server. */
  readonly requests: string[] = [];
}

export interface TestCaller {
  readonly name: string;
  readonly client: Client;
  /** The revision of the client. */
  readonly caller: string;
  /** The revision of the upstream. */
  readonly server: string;
  readonly received: Received;
  /** Whether it is the only caller and runs one check at a time. */
  readonly isAlone: boolean;
}

/** Options of a client that answers every kind of request with its name, and records what it receives. */
export function answering(name: string, { logs, requests }: Received): ConnectOptions {
  return {
    logLevel: "info",
    onLog: ({ data }) => logs.push(data),
    elicit: {
      form: ({ message }) => {
        requests.push(message);
        return { action: "accept", content: { answer: `${name} answers ${message}` } };
      },
      url: ({ url }) => {
        requests.push(url);
        return { action: "accept" };
      },
    },
    sample: ({ messages: [question] }) => {
      const { text } = Object(question?.content) as { text: string };
      requests.push(text);
      return { role: "assistant", model: name, content: { type: "text", text: `${name} answers ${text}` } };
    },
    roots: [{ uri: `file:///${name}` }],
  };
}

const textOf = ({ content }: CallToolResult): string => String((content[0] as { text?: string } | undefined)?.text);
const call = async ({ client }: TestCaller, tool: string, args: object = {}): Promise<string> =>
  textOf(await client.callTool(tool, { ...args }));
const bothHave = ({ caller, server }: TestCaller, since: string): boolean => caller >= since && server >= since;
const formFor = (name: string): string => `Who is ${name}?`;
const urlFor = (name: string): string => `https://example.com/${name}`;

async function expectRefusal({ client, name, received }: TestCaller, tool: string, message: RegExp): Promise<void> {
  const error: unknown = await client.callTool(tool, { name }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(McpError);
  expect(error).toMatchObject({ kind: "missing_capability", message: expect.stringMatching(message) as string });
  expect(received.requests).not.toContain(formFor(name));
  expect(received.requests).not.toContain(urlFor(name));
}

export type Feature =
  | "call"
  | "progress"
  | "cancel"
  | "logging"
  | "list-changed"
  | "subscribe"
  | "elicitation"
  | "sampling"
  | "roots"
  | "tasks";

export const FEATURES: Readonly<Record<Feature, (tester: TestCaller) => Promise<void>>> = {
  call: async (tester) => {
    const { client, name } = tester;
    expect(await client.callTool("echo", { text: name })).toMatchObject({ isError: false, content: [{ text: name }] });
    expect(await client.callTool("fail")).toMatchObject({ isError: true, content: [{ text: "on purpose" }] });
    await expect(client.callTool("nothing")).rejects.toMatchObject({
      code: -32602,
      message: "Tool not found: nothing",
    });
  },

  progress: async (tester) => {
    const { client, name } = tester;
    const seen: unknown[] = [];
    const result = await client.callTool("steps", { name }, { onProgress: (step) => seen.push(step) });
    const message = (step: number): object => (bothHave(tester, SECOND) ? { message: `${name} ${step}` } : {});
    expect(seen).toEqual([1, 2, 3].map((step) => ({ progress: step, total: 3, ...message(step) })));
    expect(textOf(result)).toBe(name);
  },

  cancel: async (tester) => {
    const { client, name } = tester;
    const controller = new AbortController();
    const onProgress = (): void => controller.abort(new Error("enough"));
    const waiting = client.callTool("stay", { name }, { signal: controller.signal, onProgress });
    await expect(waiting).rejects.toMatchObject({ name: "ConnectionError", kind: "cancelled" });
    await eventually(async () => expect((await call(tester, "cancelled")).split(" ")).toContain(name));
  },

  logging: async (tester) => {
    const { client, name } = tester;
    const { logs } = tester.received;
    logs.length = 0;
    await call(tester, "say", { name });
    await eventually(() => expect(logs).toEqual([`${name} shouts`]));
    await client.setLogLevel("debug");
    await call(tester, "say", { name });
    await eventually(() => expect(logs).toEqual([`${name} shouts`, `${name} whispers`, `${name} shouts`]));
    await client.setLogLevel("info");
  },

  "list-changed": async (tester) => {
    const { client, name } = tester;
    const events: ChangeEvent[] = [];
    const subscription = await client.listen({ toolsListChanged: true }, (event) => events.push(event));
    expect(subscription.granted).toEqual({ toolsListChanged: true });
    const planted = `planted-${name}`;
    expect((await client.listTools()).tools.map((tool) => tool.name)).not.toContain(planted);
    await call(tester, "plant", { name });
    await eventually(() => expect(events.map(({ method }) => method)).toContain("notifications/tools/list_changed"));
    expect((await client.listTools()).tools.map((tool) => tool.name)).toContain(planted);
    expect(await call(tester, planted)).toBe(name);
    await subscription.close();
  },

  subscribe: async (tester) => {
    const { client, name } = tester;
    const [first, second] = [`${name}-1`, `${name}-2`];
    const updated: string[] = [];
    const onEvent = (event: ChangeEvent): void => {
      expect(event.method).toBe("notifications/resources/updated");
      updated.push(String(event.params?.["uri"]));
    };
    const watch = (item: string) => client.listen({ resourceSubscriptions: [`test://item/${item}`] }, onEvent);
    const [one, two] = [await watch(first), await watch(second)];
    expect(one.granted).toEqual({ resourceSubscriptions: [`test://item/${first}`] });
    await call(tester, "change", { name: first });
    await eventually(() => expect(updated).toEqual([`test://item/${first}`]));
    await one.close();
    await eventually(async () =>
      expect((await call(tester, "watched")).split(" ")).not.toContain(`test://item/${first}`),
    );
    await call(tester, "change", { name: first });
    await call(tester, "change", { name: second });
    await eventually(() => expect(updated).toEqual([`test://item/${first}`, `test://item/${second}`]));
    await two.close();
  },

  elicitation: async (tester) => {
    const { name } = tester;
    if (!bothHave(tester, THIRD)) {
      await expectRefusal(tester, "elicit-for", /elicitation/);
      await expectRefusal(tester, "open-url-for", /elicitation|request to open a URL/);
      return;
    }
    if (!bothHave(tester, FOURTH)) await expectRefusal(tester, "open-url-for", /elicitation|request to open a URL/);
    else expect(await call(tester, "open-url-for", { name })).toBe(`${name}: accept`);
    expect(await call(tester, "elicit-for", { name })).toBe(`${name}: accept ${name} answers ${formFor(name)}`);
    const urls = bothHave(tester, FOURTH) ? [urlFor(name)] : [];
    const mine = [formFor(name), urlFor(name)];
    const requests = tester.received.requests.filter((request) => mine.includes(request));
    // Some transports do not say which call a request belongs to. One sent for the wrong call is sent again.
    expect(tester.isAlone ? requests : [...new Set(requests)]).toEqual([...urls, formFor(name)]);
  },

  sampling: async (tester) => {
    const { name } = tester;
    const answer = JSON.stringify({ type: "text", text: `${name} answers Describe ${name}` });
    expect(await call(tester, "sample-for", { name })).toBe(`${name}: ${answer} by ${name}`);
  },

  roots: async (tester) => {
    const { name } = tester;
    expect(await call(tester, "roots-for", { name })).toBe(`${name}: file:///${name}`);
  },

  tasks: async (tester) => {
    if (bothHave(tester, FOURTH)) return checkTasks(tester);
    const { client, name } = tester;
    expect(hasTasks(client.capabilities)).toBe(false);
    await expect(client.task("any")).rejects.toMatchObject({
      kind: "refused",
      message: `The server has not declared the extension ${TASKS_EXTENSION}`,
    });
    // Without tasks it is an ordinary call.
    const handle = await client.callToolAsTask("brief", { name });
    expect([handle.id, handle.isOver, textOf(await handle.result())]).toEqual(["", true, name]);
  },
};

/** Both revisions have tasks, each in its own form. */
async function checkTasks(tester: TestCaller): Promise<void> {
  const { client, name } = tester;
  expect(hasTasks(client.capabilities)).toBe(true);
  const handle = await client.callToolAsTask("hold", { name });
  expect([handle.id === "", handle.isOver]).toEqual([false, false]);
  const seen: string[] = [];
  const watching = (async () => {
    for await (const { status } of handle) seen.push(status);
  })();
  watching.catch(() => undefined);
  expect((await client.task(handle.id)).status).toBe("working");
  await eventually(() => expect(seen).toEqual(["working"]));
  await eventually(async () => expect(await call(tester, "release", { name })).toBe("released"));
  expect(textOf(await handle.result())).toBe(`${name} held`);
  await watching;
  expect(seen).toEqual(["working", "completed"]);

  const asker = `${name}-task`;
  const asking = await client.callToolAsTask("task-ask", { name: asker });
  expect(textOf(await asking.result())).toBe(`${asker}: accept ${name} answers ${formFor(asker)}`);
  expect(tester.received.requests.filter((request) => request === formFor(asker))).toHaveLength(1);

  const held = `${name}-held`;
  const cancelled = await client.callToolAsTask("hold", { name: held });
  await eventually(async () => expect((await call(tester, "holding")).split(" ")).toContain(held));
  const waiting = cancelled.result();
  waiting.catch(() => undefined);
  await cancelled.cancel();
  await expect(waiting).rejects.toMatchObject({ kind: "cancelled" });
  await eventually(async () => expect((await call(tester, "cancelled")).split(" ")).toContain(held));
  expect((await client.task(cancelled.id)).status).toBe("cancelled");
  await expect(client.task("none")).rejects.toMatchObject({ code: -32602 });
}

/** Tests every feature for every pair of revisions, with the same transport on both sides of the chain. */
export function describeRevisionPairs(transport: TransportKind): void {
  describe.each(PAIRS)("a caller of $caller and a server of $server", ({ caller, server }) =>
    testFeatures(caller, { front: transport, back: transport, server }),
  );
}

/** Tests the given features between one pair of revisions, or that the transports cannot carry one of them. */
export function testFeatures(
  caller: string,
  layout: ChainLayout,
  features: readonly Feature[] = Object.keys(FEATURES) as Feature[],
): void {
  const { server } = layout;
  const setup = new ChainSetup();
  const received = new Received();
  const open = (): Promise<Client> => setup.client(caller, layout, answering("ada", received));
  afterAll(() => setup.close());

  const refusal = expectedRefusal(caller, layout);
  if (refusal !== undefined) {
    it.each(features)("%s fails, since a transport cannot carry the revision", async () => {
      await expect(open()).rejects.toMatchObject({
        name: "ConnectionError",
        kind: "protocol",
        message: expect.stringMatching(refusal) as string,
      });
    });
    return;
  }

  let tester: TestCaller;
  beforeAll(async () => {
    tester = { name: "ada", client: await open(), caller, server, received, isAlone: true };
    expect(tester.client.revision).toBe(caller);
    expect(tester.client.server).toMatchObject({ name: "matrix", version: "1.0.0" });
  });
  it.each(features)("%s", async (feature) => {
    await FEATURES[feature](tester);
  });
}

/** Legacy SSE cannot carry the newest revision, which has no sessions. */
function expectedRefusal(caller: string, { front, back, server }: ChainLayout): RegExp | undefined {
  const isImpossible = (transport: TransportKind, revision: string): boolean =>
    transport === "legacy sse" && revision === NEWEST.name;
  if (isImpossible(front, caller))
    return new RegExp(`^The server does not speak ${caller}: POST is not allowed at /sse`);
  if (isImpossible(back, server))
    return /The upstream behind failed: No MCP server was found at .*There is nothing at \/sse/s;
  return undefined;
}

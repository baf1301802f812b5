// What can cross a chain, feature by feature, each from the caller's call to what the end saw of it. A feature is told
// whose it is: all that it sends and expects carries that name, so that the same one may run for many callers at once.
// Where a revision on either side lacks it, it is the refusal that is expected.

import { expect, vi } from "vitest";
import type { CallToolResult, ChangeEvent, Client, ConnectOptions } from "../../src/client/index.ts";
import { McpError } from "../../src/protocol/errors.ts";
import { REVISIONS } from "../../src/protocol/revisions/index.ts";
import { hasTasks, TASKS_EXTENSION } from "../../src/protocol/tasks.ts";

export const NAMES: readonly string[] = REVISIONS.map(({ name }) => name);
const [, SECOND = "", THIRD = "", FOURTH = ""] = NAMES;

/** A caller with what it has heard and answered. */
export interface Party {
  readonly name: string;
  readonly client: Client;
  readonly caller: string;
  readonly end: string;
  readonly logs: unknown[];
  /** Every question that it was asked. */
  readonly asked: string[];
  /** Whether it does one thing at a time, and nobody else is there. */
  readonly isAlone: boolean;
}

type Heard = Pick<Party, "logs" | "asked">;

/** A caller that can be asked everything, and answers with its name. */
export function answering(name: string, { logs, asked }: Heard): ConnectOptions {
  return {
    logLevel: "info",
    onLog: ({ data }) => logs.push(data),
    elicit: {
      form: ({ message }) => {
        asked.push(message);
        return { action: "accept", content: { answer: `${name} heard ${message}` } };
      },
      url: ({ url }) => {
        asked.push(url);
        return { action: "accept" };
      },
    },
    sample: ({ messages: [question] }) => {
      const { text } = Object(question?.content) as { text: string };
      asked.push(text);
      return { role: "assistant", model: name, content: { type: "text", text: `${name} heard ${text}` } };
    },
    roots: [{ uri: `file:///${name}` }],
  };
}

const textOf = ({ content }: CallToolResult): string => String((content[0] as { text?: string } | undefined)?.text);
const call = async ({ client }: Party, tool: string, args: object = {}): Promise<string> =>
  textOf(await client.callTool(tool, { ...args }));
const both = ({ caller, end }: Party, since: string): boolean => caller >= since && end >= since;
const formFor = (name: string): string => `Who is ${name}?`;
const addressFor = (name: string): string => `https://example.com/${name}`;
const eventually = (holds: () => unknown): Promise<unknown> => vi.waitFor(holds, { timeout: 10_000, interval: 5 });

async function refusesToAsk({ client, name, asked }: Party, tool: string, message: RegExp): Promise<void> {
  const error: unknown = await client.callTool(tool, { name }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(McpError);
  expect(error).toMatchObject({ kind: "missing_capability", message: expect.stringMatching(message) as string });
  expect(asked).not.toContain(formFor(name));
  expect(asked).not.toContain(addressFor(name));
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

export const FEATURES: Readonly<Record<Feature, (party: Party) => Promise<void>>> = {
  call: async (party) => {
    const { client, name } = party;
    expect(await client.callTool("echo", { text: name })).toMatchObject({ isError: false, content: [{ text: name }] });
    expect(await client.callTool("fail")).toMatchObject({ isError: true, content: [{ text: "on purpose" }] });
    await expect(client.callTool("nothing")).rejects.toMatchObject({
      code: -32602,
      message: "Tool not found: nothing",
    });
  },

  progress: async (party) => {
    const { client, name } = party;
    const seen: unknown[] = [];
    const result = await client.callTool("steps", { name }, { onProgress: (step) => seen.push(step) });
    const message = (step: number): object => (both(party, SECOND) ? { message: `${name} ${step}` } : {});
    expect(seen).toEqual([1, 2, 3].map((step) => ({ progress: step, total: 3, ...message(step) })));
    expect(textOf(result)).toBe(name);
  },

  cancel: async (party) => {
    const { client, name } = party;
    const stop = new AbortController();
    const onProgress = (): void => stop.abort(new Error("enough"));
    const waiting = client.callTool("stay", { name }, { signal: stop.signal, onProgress });
    await expect(waiting).rejects.toMatchObject({ name: "ConnectionError", kind: "cancelled" });
    await eventually(async () => expect((await call(party, "left")).split(" ")).toContain(name));
  },

  logging: async (party) => {
    const { client, name, logs } = party;
    logs.length = 0;
    await call(party, "say", { name });
    await eventually(() => expect(logs).toEqual([`${name} shouts`]));
    await client.setLogLevel("debug");
    await call(party, "say", { name });
    await eventually(() => expect(logs).toEqual([`${name} shouts`, `${name} whispers`, `${name} shouts`]));
    await client.setLogLevel("info");
  },

  "list-changed": async (party) => {
    const { client, name } = party;
    const events: ChangeEvent[] = [];
    const listening = await client.listen({ toolsListChanged: true }, (event) => events.push(event));
    expect(listening.honoured).toEqual({ toolsListChanged: true });
    const planted = `planted-${name}`;
    expect((await client.listTools()).tools.map((tool) => tool.name)).not.toContain(planted);
    await call(party, "plant", { name });
    await eventually(() => expect(events.map(({ method }) => method)).toContain("notifications/tools/list_changed"));
    expect((await client.listTools()).tools.map((tool) => tool.name)).toContain(planted);
    expect(await call(party, planted)).toBe(name);
    await listening.close();
  },

  subscribe: async (party) => {
    const { client, name } = party;
    const [first, second] = [`${name}-1`, `${name}-2`];
    const heard: string[] = [];
    const hear = (event: ChangeEvent): void => {
      expect(event.method).toBe("notifications/resources/updated");
      heard.push(String(event.params?.["uri"]));
    };
    const watch = (item: string) => client.listen({ resourceSubscriptions: [`flow://item/${item}`] }, hear);
    const [one, two] = [await watch(first), await watch(second)];
    expect(one.honoured).toEqual({ resourceSubscriptions: [`flow://item/${first}`] });
    await call(party, "change", { name: first });
    await eventually(() => expect(heard).toEqual([`flow://item/${first}`]));
    await one.close();
    await eventually(async () =>
      expect((await call(party, "watched")).split(" ")).not.toContain(`flow://item/${first}`),
    );
    await call(party, "change", { name: first });
    await call(party, "change", { name: second });
    await eventually(() => expect(heard).toEqual([`flow://item/${first}`, `flow://item/${second}`]));
    await two.close();
  },

  elicitation: async (party) => {
    const { name, asked } = party;
    if (!both(party, THIRD)) {
      await refusesToAsk(party, "elicit-for", /elicitation/);
      await refusesToAsk(party, "visit-for", /elicitation/);
      return;
    }
    if (!both(party, FOURTH)) await refusesToAsk(party, "visit-for", /elicitation|address to visit/);
    else expect(await call(party, "visit-for", { name })).toBe(`${name}: accept`);
    expect(await call(party, "elicit-for", { name })).toBe(`${name}: accept ${name} heard ${formFor(name)}`);
    const addresses = both(party, FOURTH) ? [addressFor(name)] : [];
    const mine = [formFor(name), addressFor(name)];
    const questions = asked.filter((question) => mine.includes(question));
    // A wire that does not say which call asks leaves a guess; a question put for the wrong one is put again.
    expect(party.isAlone ? questions : [...new Set(questions)]).toEqual([...addresses, formFor(name)]);
  },

  sampling: async (party) => {
    const { name } = party;
    const answer = JSON.stringify({ type: "text", text: `${name} heard What of ${name}?` });
    expect(await call(party, "sample-for", { name })).toBe(`${name}: ${answer} by ${name}`);
  },

  roots: async (party) => {
    const { name } = party;
    expect(await call(party, "roots-for", { name })).toBe(`${name}: file:///${name}`);
  },

  tasks: async (party) => {
    if (both(party, FOURTH)) return doesTasks(party);
    const { client, name } = party;
    expect(hasTasks(client.capabilities)).toBe(false);
    await expect(client.task("any")).rejects.toMatchObject({
      kind: "refused",
      message: `The server has not declared the extension ${TASKS_EXTENSION}`,
    });
    // What could be a task is an ordinary call.
    const handle = await client.callToolAsTask("brief", { name });
    expect([handle.id, handle.isOver, textOf(await handle.result())]).toEqual(["", true, name]);
  },
};

/** In whatever form the two revisions have. */
async function doesTasks(party: Party): Promise<void> {
  const { client, name } = party;
  expect(hasTasks(client.capabilities)).toBe(true);
  const handle = await client.callToolAsTask("hold", { name });
  expect([handle.id === "", handle.isOver]).toEqual([false, false]);
  const seen: string[] = [];
  const looking = (async () => {
    for await (const { status } of handle) seen.push(status);
  })();
  looking.catch(() => undefined);
  expect((await client.task(handle.id)).status).toBe("working");
  await eventually(() => expect(seen).toEqual(["working"]));
  await eventually(async () => expect(await call(party, "release", { name })).toBe("released"));
  expect(textOf(await handle.result())).toBe(`${name} held`);
  await looking;
  expect(seen).toEqual(["working", "completed"]);

  const asked = `${name}-task`;
  const asking = await client.callToolAsTask("task-ask", { name: asked });
  expect(textOf(await asking.result())).toBe(`${asked}: accept ${name} heard ${formFor(asked)}`);
  expect(party.asked.filter((question) => question === formFor(asked))).toHaveLength(1);

  const held = `${name}-held`;
  const left = await client.callToolAsTask("hold", { name: held });
  await eventually(async () => expect((await call(party, "holding")).split(" ")).toContain(held));
  const waiting = left.result();
  waiting.catch(() => undefined);
  await left.cancel();
  await expect(waiting).rejects.toMatchObject({ kind: "cancelled" });
  await eventually(async () => expect((await call(party, "left")).split(" ")).toContain(held));
  expect((await client.task(left.id)).status).toBe("cancelled");
  await expect(client.task("none")).rejects.toMatchObject({ code: -32602 });
}

// An upstream over legacy HTTP+SSE, which does not attribute its requests to calls: its callers get the same sessions as
// those of a program.

import { expect, it, onTestFinished } from "vitest";
import { eventually } from "../../support/waiting.ts";
import { upstream, type Upstream } from "../../../src/chain/upstream/upstream.ts";
import type { Context } from "../../../src/core/handler.ts";
import { serve } from "../../../src/serve.ts";
import { createServer } from "../../../src/server/index.ts";
import { call, caller, STATELESS, SESSION, textIn } from "./callers.ts";

const NAME = { type: "object", properties: { name: { type: "string" } }, required: ["name"] } as const;
const FORM = { type: "object", properties: { answer: { type: "string" } } } as const;

/** An upstream, the keys of the callers of its tools, and a function that ends the work of "hold". */
async function start(): Promise<{ one: Upstream; keys: Map<string, unknown>; release: (text: string) => void }> {
  const keys = new Map<string, unknown>();
  let release = (_text: string): void => undefined;
  const server = createServer({ name: "old", version: "1" })
    .tool("ask", { input: NAME }, async ({ name }, { ask }) => {
      const { content } = await ask.elicit({ message: `Who is ${name}?`, requestedSchema: FORM });
      return `${name}: ${String(content?.["answer"])}`;
    })
    .tool("hold", { input: NAME, task: { support: "optional", pollIntervalMs: 100 } }, () => {
      return new Promise<string>((resolve) => (release = resolve));
    });
  const front = await serve(
    (request, context: Context) => {
      const args = request.params["arguments"] as { name?: string } | undefined;
      if (args?.name !== undefined) keys.set(args.name, context.caller.key);
      return server(request, context);
    },
    { http: { port: 0, revisions: [SESSION] } },
  );
  onTestFinished(() => front.close());
  const one = upstream(new URL("/sse", front.url), { name: "old" });
  onTestFinished(() => one.close());
  // Lets it ask a client once, so that it is known to ask.
  const { client, close } = await caller(one, SESSION, named("first"));
  await call(client, "ask", { name: "first" });
  await close();
  await eventually(() => expect(one.status().sessions).toBe(0));
  return { one, keys, release: (text) => release(text) };
}

const named = (name: string) => ({
  elicit: async ({ message }: { message: string }) => ({
    action: "accept" as const,
    content: { answer: `${name} of ${message}` },
  }),
});

it("an upstream over legacy HTTP+SSE has a session for each caller that has one and can be asked, which ends with it", async () => {
  const { one, keys } = await start();
  const callers = await Promise.all(["ada", "bob"].map((name) => caller(one, SESSION, named(name))));
  const answers = await Promise.all(callers.map(({ client }, at) => call(client, "ask", { name: ["ada", "bob"][at] })));
  expect(answers).toEqual(["ada: ada of Who is ada?", "bob: bob of Who is bob?"]);
  expect(keys.get("ada")).not.toBe(keys.get("bob"));
  const again = await Promise.all(callers.map(({ client }, at) => call(client, "ask", { name: `${at}` })));
  expect(again).toEqual(["0: ada of Who is 0?", "1: bob of Who is 1?"]);
  expect([keys.get("0"), keys.get("1")]).toEqual([keys.get("ada"), keys.get("bob")]);
  expect(one.status().sessions).toBe(2);
  for (const { close } of callers) await close();
  await eventually(() => expect(one.status().sessions).toBe(0));
});

it("an upstream over legacy HTTP+SSE has one session for callers that cannot be asked", async () => {
  const { one, keys } = await start();
  const callers = await Promise.all([caller(one, SESSION), caller(one, SESSION)]);
  for (const [at, { client }] of callers.entries()) await client.callTool("ask", { name: `${at}` }).catch(() => 0);
  expect(keys.get("0")).toBe(keys.get("1"));
});

it("an upstream over legacy HTTP+SSE gets another session while a call is parked, whose tasks are found later", async () => {
  const { one, keys, release } = await start();
  let answer = (): void => undefined;
  const elicit = async () => {
    await new Promise<void>((resolve) => (answer = resolve));
    return { action: "accept" as const, content: { answer: "at last" } };
  };
  const { client } = await caller(one, STATELESS, { elicit });
  const asked = client.callTool("ask", { name: "slow" });
  await eventually(() => expect(keys.has("slow")).toBe(true));
  const handle = await client.callToolAsTask("hold", { name: "task" });
  expect(keys.get("task")).not.toBe(keys.get("slow"));
  expect((await client.task(handle.id)).status).toBe("working");
  answer();
  expect(textIn(await asked)).toBe("slow: at last");
  release("held");
  expect(textIn(await handle.result())).toBe("held");
  const left = await client.callToolAsTask("hold", { name: "other" });
  await left.cancel();
  expect((await client.task(left.id)).status).toBe("cancelled");
});

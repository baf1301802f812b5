// Every caller revision with every end revision, over every wire: what is lossless arrives whole, what one
// side's revision cannot say arrives in the older form, and what cannot be said at all is refused by name.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { CallToolResult } from "../../src/client/index.ts";
import { McpError } from "../../src/protocol/errors.ts";
import { REVISIONS } from "../../src/protocol/revisions/index.ts";
import { PAIRS } from "../support/depth.ts";
import { itWithSpec } from "../support/schema.ts";
import { MessageJudge } from "../support/message-judge.ts";
import { ARRANGEMENTS, type Flow, type WireRecord } from "./arrange.ts";

const NAMES = REVISIONS.map(({ name }) => name);
const [FIRST = "", SECOND = "", THIRD = "", FOURTH = ""] = NAMES;

const textOf = ({ content }: CallToolResult): unknown => (content[0] as { text?: string } | undefined)?.text;

/** Every message on a wire with which its revision's official schema finds fault, fields without a name included. */
function faultsOf({ name, revision, messages }: WireRecord): string[] {
  const judge = new MessageJudge(revision, { closed: true });
  return messages.flatMap(({ from, message }) => {
    const problems = judge.judge(from, message);
    return problems.length === 0
      ? []
      : [`${name}, from the ${from}: ${JSON.stringify(message)}: ${problems.join("; ")}`];
  });
}

describe.each(ARRANGEMENTS)("over %s", (wire, arrange) => {
  describe.each(PAIRS)("a caller of $caller and a server of $server", ({ caller, server: end }) => {
    /** Whether both sides' revisions are at least this one. */
    const both = (since: string): boolean => caller >= since && end >= since;
    const logs: unknown[] = [];
    let flow: Flow;

    beforeAll(async () => {
      flow = await arrange(caller, end, {
        logLevel: "info",
        onLog: (params) => logs.push(params),
        elicit: {
          form: ({ message }) => ({ action: "accept", content: { name: `Ada (${message})` } }),
          url: ({ url }) => ({ action: url.startsWith("https://") ? "accept" : "decline" }),
        },
        sample: () => ({ role: "assistant", model: "calculator", content: { type: "text", text: "4" } }),
        roots: [{ uri: "file:///work", name: "work" }],
      });
    });
    afterAll(async () => {
      await flow.close();
    });

    it("shakes hands", () => {
      const { client } = flow;
      expect(client.revision).toBe(caller);
      expect(client.server).toMatchObject({ name: "end", version: "1.0.0" });
      expect(client.server?.title).toBe(both(THIRD) ? "The Upstream" : undefined);
      expect(client.instructions).toBe("Ask away");
      expect(client.capabilities.tools).toEqual({ listChanged: true });
      // The first revision completes without saying so; seen from the newest it may.
      expect(client.capabilities.completions).toEqual({});
    });

    it("lists tools with what both revisions know of them", async () => {
      const { tools } = await flow.client.listTools();
      const echo = tools.find(({ name }) => name === "echo");
      expect(echo?.description).toBe("Echo a text");
      expect(echo?.inputSchema).toMatchObject({ type: "object", required: ["text"] });
      expect(echo?.title).toBe(both(THIRD) ? "Echo" : undefined);
      expect(echo?.annotations?.readOnlyHint).toBe(both(SECOND) ? true : undefined);
      expect(tools.find(({ name }) => name === "count")?.outputSchema !== undefined).toBe(both(THIRD));
    });

    it("lists resources, templates and prompts", async () => {
      const { client } = flow;
      expect((await client.listResources()).resources.map(({ uri }) => uri)).toEqual(["flow://note", "flow://bytes"]);
      expect((await client.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toEqual([
        "flow://item/{id}",
      ]);
      expect((await client.listPrompts()).prompts[0]).toMatchObject({
        name: "greet",
        arguments: [{ name: "name", required: true }, { name: "style" }],
      });
    });

    it("calls", async () => {
      const result = await flow.client.callTool("echo", { text: "hi" });
      expect(textOf(result)).toBe("hi");
      expect(result.isError).toBe(false);
      expect(await flow.client.callTool("fail")).toMatchObject({ isError: true, content: [{ text: "on purpose" }] });
      // What the end made of it stays: only an end of the newer revisions says it to the model.
      const misfit = flow.client.callTool("echo", {});
      if (end >= FOURTH) expect(await misfit).toMatchObject({ isError: true });
      else await expect(misfit).rejects.toMatchObject({ code: -32602, message: "Invalid params" });
    });

    it("carries structured content where both know it, and its text always", async () => {
      const result = await flow.client.callTool("count", { text: "four" });
      expect(result.structuredContent).toEqual(both(THIRD) ? { count: 4 } : undefined);
      expect(JSON.parse(String(textOf(result)))).toEqual({ count: 4 });
    });

    it("carries every kind of content, in an older form where it must", async () => {
      const { content } = await flow.client.callTool("mixed");
      expect(content.map(({ type }) => type)).toEqual([
        "text",
        "image",
        both(SECOND) ? "audio" : "resource",
        "resource",
        both(THIRD) ? "resource_link" : "text",
      ]);
      expect(JSON.stringify(content[2])).toContain("audio/wav");
      expect(JSON.stringify(content[4])).toContain("flow://linked");
    });

    it("reads", async () => {
      const { client } = flow;
      expect((await client.readResource("flow://note")).contents).toEqual([
        { uri: "flow://note", mimeType: "text/plain", text: "a note" },
      ]);
      expect((await client.readResource("flow://bytes")).contents[0]).toMatchObject({ blob: "AQID" });
      expect((await client.readResource("flow://item/a%20b")).contents[0]).toMatchObject({
        text: JSON.stringify({ id: "a b" }),
      });
    });

    it("gets prompts", async () => {
      const { messages } = await flow.client.getPrompt("greet", { name: "Ada" });
      expect(messages).toEqual([{ role: "user", content: { type: "text", text: "Hello Ada" } }]);
    });

    it("completes, with the other arguments where both know them", async () => {
      const { client } = flow;
      const item = await client.complete({ type: "ref/resource", uri: "flow://item/{id}" }, { name: "id", value: "t" });
      expect(item.completion.values).toEqual(["two"]);
      const style = await client.complete(
        { type: "ref/prompt", name: "greet" },
        { name: "style", value: "s" },
        { arguments: { name: "Ada" } },
      );
      expect(style.completion.values).toEqual([both(THIRD) ? "s-Ada" : "s-nobody"]);
    });

    it("names what is not there", async () => {
      const { client } = flow;
      await expect(client.callTool("nothing")).rejects.toMatchObject({
        code: -32602,
        message: "Tool not found: nothing",
      });
      await expect(client.readResource("flow://nothing")).rejects.toMatchObject({
        code: -32602,
        data: { kind: "resource_not_found", uri: "flow://nothing" },
      });
      await expect(client.getPrompt("nothing")).rejects.toMatchObject({ code: -32602 });
      await expect(client.listTools({ cursor: "forged" })).rejects.toMatchObject({ code: -32602 });
    });

    it("reports progress", async () => {
      const seen: unknown[] = [];
      const result = await flow.client.callTool("progress", {}, { onProgress: (progress) => seen.push(progress) });
      expect(textOf(result)).toBe("done");
      const message = (step: number): object => (both(SECOND) ? { message: `step ${step}` } : {});
      expect(seen).toEqual([1, 2, 3].map((step) => ({ progress: step, total: 3, ...message(step) })));
    });

    it("cancels, and the end sees it", async () => {
      const stop = new AbortController();
      const key = `${caller} ${end}`;
      const call = flow.client.callTool(
        "wait",
        { text: key },
        { signal: stop.signal, onProgress: () => stop.abort(new Error("enough")) },
      );
      await expect(call).rejects.toMatchObject({ name: "ConnectionError", kind: "cancelled" });
      await expect.poll(async () => textOf(await flow.client.callTool("aborted"))).toBe(key);
    });

    it("logs from the level that the caller wants", async () => {
      logs.length = 0;
      await flow.client.callTool("log");
      await expect.poll(() => logs.length).toBe(1);
      expect(logs[0]).toMatchObject({ level: "error", data: { big: true } });
    });

    it("tells of changed lists and resources", async () => {
      const { client } = flow;
      const subscription = await client.listen({ toolsListChanged: true, resourceSubscriptions: ["flow://note"] });
      expect(subscription.honoured).toEqual({ toolsListChanged: true, resourceSubscriptions: ["flow://note"] });
      const events = subscription[Symbol.asyncIterator]();
      await client.callTool("touch");
      expect((await events.next()).value).toMatchObject({
        method: "notifications/resources/updated",
        params: { uri: "flow://note" },
      });
      await client.callTool("grow");
      expect((await events.next()).value).toMatchObject({ method: "notifications/tools/list_changed" });
      const { tools } = await client.listTools();
      expect(tools.some(({ name }) => name.startsWith("added-"))).toBe(true);
      await subscription.close();
    });

    it("samples in mid-call", async () => {
      expect(JSON.parse(String(textOf(await flow.client.callTool("sample"))))).toEqual({ type: "text", text: "4" });
    });

    it("asks for roots in mid-call", async () => {
      expect(textOf(await flow.client.callTool("roots"))).toBe("file:///work");
    });

    it("asks more than once in one call", async () => {
      expect(textOf(await flow.client.callTool("interview"))).toBe("1 calculator");
    });

    it(both(THIRD) ? "elicits in mid-call" : "refuses to elicit, by name", async () => {
      const call = flow.client.callTool("elicit");
      if (both(THIRD)) expect(textOf(await call)).toBe("accept Ada (Your name?)");
      else
        await expect(call).rejects.toSatisfy(
          (error) => error instanceof McpError && error.kind === "missing_capability",
        );
    });

    it(both(FOURTH) ? "elicits by address" : "refuses to elicit by address, by name", async () => {
      const call = flow.client.callTool("visit");
      if (both(FOURTH)) expect(textOf(await call)).toBe("accept");
      else
        await expect(call).rejects.toSatisfy(
          (error) => error instanceof McpError && error.kind === "missing_capability",
        );
    });

    if (wire !== "memory") return;
    itWithSpec("says nothing on either wire, from the first word to the last, that its revision forbids", async () => {
      await flow.close();
      const { wires = [] } = flow;
      expect(wires.map(({ revision }) => revision)).toEqual([caller, end]);
      for (const { messages } of wires) expect(new Set(messages.map(({ from }) => from)).size).toBe(2);
      expect(wires.flatMap(faultsOf)).toEqual([]);
    });
  });
});

it("covers all pairs", () => {
  expect(NAMES).toHaveLength(5);
  expect(FIRST < SECOND && SECOND < THIRD && THIRD < FOURTH).toBe(true);
});

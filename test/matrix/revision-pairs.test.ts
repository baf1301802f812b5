// A caller of each revision with a server of each revision, bridged. What both revisions have arrives unchanged, what
// one of them lacks arrives in an older form, and what has no older form fails with a named error.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { CallToolResult } from "../../src/client/index.ts";
import { McpError } from "../../src/protocol/errors.ts";
import { REVISIONS } from "../../src/protocol/revisions/index.ts";
import { PAIRS } from "../support/thoroughness.ts";
import { itWithSpec } from "../support/spec/official-schema.ts";
import { MessageValidator } from "../support/spec/message-validator.ts";
import { TRANSPORTS, type BridgedClient, type RecordedConnection } from "./bridge-setup.ts";

const NAMES = REVISIONS.map(({ name }) => name);
const [FIRST = "", SECOND = "", THIRD = "", FOURTH = ""] = NAMES;

const textOf = ({ content }: CallToolResult): unknown => (content[0] as { text?: string } | undefined)?.text;

/** Every recorded message that the official schema of its revision rejects, unknown fields included. */
function schemaFaults({ name, revision, messages }: RecordedConnection): string[] {
  const judge = new MessageValidator(revision, { closed: true });
  return messages.flatMap(({ from, message }) => {
    const problems = judge.validate(from, message);
    return problems.length === 0
      ? []
      : [`${name}, from the ${from}: ${JSON.stringify(message)}: ${problems.join("; ")}`];
  });
}

describe.each(TRANSPORTS)("over %s", (transport, connectBridged) => {
  describe.each(PAIRS)("a caller of $caller and a server of $server", ({ caller, server }) => {
    /** Whether both revisions are at least this one. */
    const both = (since: string): boolean => caller >= since && server >= since;
    const logs: unknown[] = [];
    let bridged: BridgedClient;

    beforeAll(async () => {
      bridged = await connectBridged(caller, server, {
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
      await bridged.close();
    });

    it("a pair of revisions negotiates the revision of the caller", () => {
      const { client } = bridged;
      expect(client.revision).toBe(caller);
      expect(client.server).toMatchObject({ name: "matrix", version: "1.0.0" });
      expect(client.server?.title).toBe(both(THIRD) ? "Matrix Server" : undefined);
      expect(client.instructions).toBe("Ask away");
      expect(client.capabilities.tools).toEqual({ listChanged: true });
      // The first revision completes without declaring it.
      expect(client.capabilities.completions).toEqual(both(SECOND) ? {} : undefined);
    });

    it("a pair of revisions lists tools with the fields that both revisions have", async () => {
      const { tools } = await bridged.client.listTools();
      const echo = tools.find(({ name }) => name === "echo");
      expect(echo?.description).toBe("Echo a text");
      expect(echo?.inputSchema).toMatchObject({ type: "object", required: ["text"] });
      expect(echo?.title).toBe(both(THIRD) ? "Echo" : undefined);
      expect(echo?.annotations?.readOnlyHint).toBe(both(SECOND) ? true : undefined);
      expect(tools.find(({ name }) => name === "count")?.outputSchema !== undefined).toBe(both(THIRD));
    });

    it("a pair of revisions lists resources, templates and prompts", async () => {
      const { client } = bridged;
      expect((await client.listResources()).resources.map(({ uri }) => uri)).toEqual(["test://note", "test://bytes"]);
      expect((await client.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toEqual([
        "test://item/{id}",
      ]);
      expect((await client.listPrompts()).prompts[0]).toMatchObject({
        name: "greet",
        arguments: [{ name: "name", required: true }, { name: "style" }],
      });
    });

    it("a pair of revisions calls tools", async () => {
      const result = await bridged.client.callTool("echo", { text: "hi" });
      expect(textOf(result)).toBe("hi");
      expect(result.isError).toBe(false);
      expect(await bridged.client.callTool("fail")).toMatchObject({ isError: true, content: [{ text: "on purpose" }] });
      // Only servers of the newer revisions report invalid arguments to the model; the bridge keeps the form.
      const invalid = bridged.client.callTool("echo", {});
      if (server >= FOURTH) expect(await invalid).toMatchObject({ isError: true });
      else await expect(invalid).rejects.toThrow(/^Invalid params for the tool echo: text /);
    });

    it("a pair of revisions carries structured content where both have it, and its text always", async () => {
      const result = await bridged.client.callTool("count", { text: "four" });
      expect(result.structuredContent).toEqual(both(THIRD) ? { count: 4 } : undefined);
      expect(JSON.parse(String(textOf(result)))).toEqual({ count: 4 });
    });

    it("a pair of revisions carries every type of content, in an older form where needed", async () => {
      const { content } = await bridged.client.callTool("mixed");
      expect(content.map(({ type }) => type)).toEqual([
        "text",
        "image",
        both(SECOND) ? "audio" : "resource",
        "resource",
        both(THIRD) ? "resource_link" : "text",
      ]);
      expect(JSON.stringify(content[2])).toContain("audio/wav");
      expect(JSON.stringify(content[4])).toContain("test://linked");
    });

    it("a pair of revisions reads resources", async () => {
      const { client } = bridged;
      expect((await client.readResource("test://note")).contents).toEqual([
        { uri: "test://note", mimeType: "text/plain", text: "a note" },
      ]);
      expect((await client.readResource("test://bytes")).contents[0]).toMatchObject({ blob: "AQID" });
      expect((await client.readResource("test://item/a%20b")).contents[0]).toMatchObject({
        text: JSON.stringify({ id: "a b" }),
      });
    });

    it("a pair of revisions gets prompts", async () => {
      const { messages } = await bridged.client.getPrompt("greet", { name: "Ada" });
      expect(messages).toEqual([{ role: "user", content: { type: "text", text: "Hello Ada" } }]);
    });

    it("a pair of revisions completes arguments, with the other arguments where both have them", async () => {
      const { client } = bridged;
      // `complete` requires the capability, unless the caller's revision cannot declare it.
      const complete: typeof client.complete = (ref, argument, context) =>
        both(SECOND) || caller === FIRST
          ? client.complete(ref, argument, context)
          : client.request("completion/complete", { ref, argument, ...(context && { context }) });
      const item = await complete({ type: "ref/resource", uri: "test://item/{id}" }, { name: "id", value: "t" });
      expect(item.completion.values).toEqual(["two"]);
      const style = await complete(
        { type: "ref/prompt", name: "greet" },
        { name: "style", value: "s" },
        { arguments: { name: "Ada" } },
      );
      expect(style.completion.values).toEqual([both(THIRD) ? "s-Ada" : "s-unknown"]);
    });

    it("a pair of revisions names the tool, resource, prompt or cursor that was not found", async () => {
      const { client } = bridged;
      await expect(client.callTool("nothing")).rejects.toMatchObject({
        code: -32602,
        message: "Tool not found: nothing",
      });
      await expect(client.readResource("test://nothing")).rejects.toMatchObject({
        code: -32602,
        data: { kind: "resource_not_found", uri: "test://nothing" },
      });
      await expect(client.getPrompt("nothing")).rejects.toMatchObject({ code: -32602 });
      await expect(client.listTools({ cursor: "forged" })).rejects.toMatchObject({ code: -32602 });
    });

    it("a pair of revisions reports progress", async () => {
      const seen: unknown[] = [];
      const result = await bridged.client.callTool("progress", {}, { onProgress: (progress) => seen.push(progress) });
      expect(textOf(result)).toBe("done");
      const message = (step: number): object => (both(SECOND) ? { message: `step ${step}` } : {});
      expect(seen).toEqual([1, 2, 3].map((step) => ({ progress: step, total: 3, ...message(step) })));
    });

    it("a pair of revisions cancels a call, and the server sees it", async () => {
      const controller = new AbortController();
      const key = `${caller} ${server}`;
      const call = bridged.client.callTool(
        "wait",
        { text: key },
        { signal: controller.signal, onProgress: () => controller.abort(new Error("enough")) },
      );
      await expect(call).rejects.toMatchObject({ name: "ConnectionError", kind: "cancelled" });
      await expect.poll(async () => textOf(await bridged.client.callTool("aborted"))).toBe(key);
    });

    it("a pair of revisions logs from the level that the caller set", async () => {
      logs.length = 0;
      await bridged.client.callTool("log");
      await expect.poll(() => logs.length).toBe(1);
      expect(logs[0]).toMatchObject({ level: "error", data: { big: true } });
    });

    it("a pair of revisions notifies of changed lists and resources", async () => {
      const { client } = bridged;
      const subscription = await client.listen({ toolsListChanged: true, resourceSubscriptions: ["test://note"] });
      expect(subscription.granted).toEqual({ toolsListChanged: true, resourceSubscriptions: ["test://note"] });
      const events = subscription[Symbol.asyncIterator]();
      await client.callTool("touch");
      expect((await events.next()).value).toMatchObject({
        method: "notifications/resources/updated",
        params: { uri: "test://note" },
      });
      await client.callTool("grow");
      expect((await events.next()).value).toMatchObject({ method: "notifications/tools/list_changed" });
      const { tools } = await client.listTools();
      expect(tools.some(({ name }) => name.startsWith("added-"))).toBe(true);
      await subscription.close();
    });

    it("a pair of revisions samples during a call", async () => {
      expect(JSON.parse(String(textOf(await bridged.client.callTool("sample"))))).toEqual({ type: "text", text: "4" });
    });

    it("a pair of revisions lists roots during a call", async () => {
      expect(textOf(await bridged.client.callTool("roots"))).toBe("file:///work");
    });

    it("a pair of revisions sends more than one request to the client in one call", async () => {
      expect(textOf(await bridged.client.callTool("interview"))).toBe("1 calculator");
    });

    it(
      both(THIRD)
        ? "a pair of revisions elicits during a call"
        : "a pair of revisions fails to elicit, with a named error",
      async () => {
        const call = bridged.client.callTool("elicit");
        if (both(THIRD)) expect(textOf(await call)).toBe("accept Ada (Your name?)");
        else
          await expect(call).rejects.toSatisfy(
            (error) => error instanceof McpError && error.kind === "missing_capability",
          );
      },
    );

    it(
      both(FOURTH)
        ? "a pair of revisions elicits by URL"
        : "a pair of revisions fails to elicit by URL, with a named error",
      async () => {
        const call = bridged.client.callTool("open-url");
        if (both(FOURTH)) expect(textOf(await call)).toBe("accept");
        else
          await expect(call).rejects.toSatisfy(
            (error) => error instanceof McpError && error.kind === "missing_capability",
          );
      },
    );

    if (transport !== "memory") return;
    itWithSpec(
      "a pair of revisions sends nothing on either connection, from first to last message, that its revision forbids",
      async () => {
        await bridged.close();
        const { connections = [] } = bridged;
        expect(connections.map(({ revision }) => revision)).toEqual([caller, server]);
        for (const { messages } of connections) expect(new Set(messages.map(({ from }) => from)).size).toBe(2);
        expect(connections.flatMap(schemaFaults)).toEqual([]);
      },
    );
  });
});

it("knows the revisions in order", () => {
  expect(NAMES).toHaveLength(5);
  expect(FIRST < SECOND && SECOND < THIRD && THIRD < FOURTH).toBe(true);
});

// Tests of our client with `@modelcontextprotocol/server-everything`, which has every feature of the session style: its
// lists, the tools that need no network, its requests and notifications. They run for each transport of that server.

import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Client, ConnectOptions } from "../../src/client/index.ts";
import { SESSIONS } from "./common-tests.ts";
import { ANSWERS, EventLog, type Json } from "./test-client.ts";

const TEXT = "demo://resource/dynamic/text/7";

export interface EverythingTarget {
  readonly title: string;
  open(options: ConnectOptions): Promise<Client>;
  /** The number of its processes that run. */
  running(): number;
  /** The number that may still run after the client was closed. */
  readonly runningAfterClose: number;
  close(): Promise<void> | void;
}

export function testServerEverything(target: EverythingTarget): void {
  describe(`server-everything ${target.title}`, () => {
    const events = new EventLog();
    let client: Client;

    beforeAll(async () => {
      client = await target.open({
        elicit: {
          form: (params) => {
            events.add({ kind: "form", params });
            return { action: "accept", content: { name: "Ada", check: true, integer: 7 } };
          },
          url: (params) => {
            events.add({ kind: "url", params });
            return { action: "decline" };
          },
        },
        sample: (params) => {
          events.add({ kind: "sample", params });
          return ANSWERS.sample;
        },
        roots: ANSWERS.roots,
        onLog: (message) => events.add({ kind: "log", ...message }),
        // Only what belongs to no subscription: changes of its lists go to the subscriptions.
        onNotification: ({ method, params }) => events.add({ kind: method, ...params }),
      });
    });

    afterAll(async () => {
      await client?.close();
      await target.close();
    });

    const textOf = (result: Json): string => result["content"][0].text;

    it("negotiates the newest revision that the server speaks", () => {
      expect(client.revision).toBe(SESSIONS.at(-1));
      expect(client.server).toMatchObject({ name: "mcp-servers/everything", title: "Everything Reference Server" });
      expect(client.instructions).toContain("Everything Server");
      expect(client.capabilities).toMatchObject({
        logging: {},
        completions: {},
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
      });
    });

    it("answers a request for roots outside any call, soon after the handshake", async () => {
      const log = await events.until(({ kind, data }) => kind === "log" && String(data).startsWith("Roots updated"));
      expect(log).toMatchObject({ level: "info", data: "Roots updated: 1 root(s) received from client" });
    });

    it("lists everything", async () => {
      const { tools } = await client.listTools();
      expect(tools.map(({ name }) => name)).toEqual([
        "echo",
        "get-annotated-message",
        "get-env",
        "get-resource-links",
        "get-resource-reference",
        "get-structured-content",
        "get-sum",
        "get-tiny-image",
        "gzip-file-as-resource",
        "toggle-simulated-logging",
        "toggle-subscriber-updates",
        "trigger-long-running-operation",
        // These depend on the capabilities that we declared.
        "get-roots-list",
        "trigger-elicitation-request",
        "trigger-url-elicitation",
        "trigger-sampling-request",
        "simulate-research-query",
      ]);
      for (const tool of tools) {
        expect(tool).toMatchObject({ title: expect.any(String), inputSchema: { type: "object" }, annotations: {} });
      }
      const { prompts } = await client.listPrompts();
      expect(prompts.map(({ name }) => name)).toEqual([
        "simple-prompt",
        "args-prompt",
        "completable-prompt",
        "resource-prompt",
      ]);
      const { resources } = await client.listResources();
      expect(resources.length).toBeGreaterThan(0);
      const { resourceTemplates } = await client.listResourceTemplates();
      expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toEqual([
        "demo://resource/dynamic/text/{resourceId}",
        "demo://resource/dynamic/blob/{resourceId}",
      ]);
    });

    it("reads every listed resource, and both templates", async () => {
      for await (const { uri } of client.resources()) {
        const { contents } = await client.readResource(uri);
        expect(contents).toMatchObject([{ uri, mimeType: "text/markdown", text: expect.any(String) }]);
      }
      expect(textIn(await client.readResource(TEXT))).toContain("Resource 7");
      const { contents } = await client.readResource("demo://resource/dynamic/blob/8");
      expect(contents).toMatchObject([{ blob: expect.any(String) }]);
      await expect(client.readResource("demo://resource/dynamic/text/none")).rejects.toMatchObject({ code: -32603 });
    });

    it("gets every prompt, and completes with the other arguments", async () => {
      expect((await client.getPrompt("simple-prompt")).messages).toHaveLength(1);
      expect((await client.getPrompt("args-prompt", { city: "Oslo" })).messages).toMatchObject([
        { role: "user", content: { text: "What's weather in Oslo?" } },
      ]);
      const { messages } = await client.getPrompt("resource-prompt", { resourceType: "Text", resourceId: "3" });
      expect(messages[1]).toMatchObject({ content: { type: "resource", resource: { mimeType: "text/plain" } } });
      const ref = { type: "ref/prompt", name: "completable-prompt" } as const;
      const chosen = { arguments: { department: "Sales" } };
      const { completion } = await client.complete(ref, { name: "name", value: "D" }, chosen);
      expect(completion.values).toEqual(["David"]);
    });

    it("calls the tools that only return a result", async () => {
      expect(textOf(await client.callTool("echo", { message: "ä 漢 🙂" }))).toBe("Echo: ä 漢 🙂");
      expect(textOf(await client.callTool("get-sum", { a: 2, b: 3 }))).toBe("The sum of 2 and 3 is 5.");
      const weather = await client.callTool("get-structured-content", { location: "Chicago" });
      expect(weather.structuredContent).toEqual({ temperature: 36, conditions: "Light rain / drizzle", humidity: 82 });
      const { content: image } = await client.callTool("get-tiny-image");
      expect(image).toMatchObject([{ type: "text" }, { type: "image", mimeType: "image/png" }, { type: "text" }]);
      const { content: links } = await client.callTool("get-resource-links", { count: 2 });
      expect(links).toMatchObject([{ type: "text" }, { type: "resource_link" }, { type: "resource_link" }]);
      const { content: embedded } = await client.callTool("get-resource-reference", {
        resourceType: "Text",
        resourceId: 1,
      });
      expect(embedded[1]).toMatchObject({ type: "resource", resource: { mimeType: "text/plain" } });
      const { content: annotated } = await client.callTool("get-annotated-message", { messageType: "error" });
      expect(annotated).toMatchObject([{ annotations: { priority: 1, audience: ["user", "assistant"] } }]);
    });

    it("reports failures as results", async () => {
      expect(await client.callTool("get-sum", { a: "two" })).toMatchObject({ isError: true });
      expect(await client.callTool("no-such-tool")).toMatchObject({ isError: true });
    });

    it("runs a tool that must be a task", async () => {
      const report = await client.callTool("simulate-research-query", { topic: "chains" });
      expect(report.isError ?? false).toBe(false);
      expect(textOf(report)).toContain("chains");
    });

    it("receives the progress of a long-running operation", async () => {
      const steps: Json[] = [];
      const result = await client.callTool(
        "trigger-long-running-operation",
        { duration: 0.2, steps: 4 },
        { onProgress: (step) => steps.push({ ...step }) },
      );
      expect(textOf(result)).toContain("Long running operation completed");
      expect(steps).toEqual([1, 2, 3, 4].map((progress) => ({ progress, total: 4 })));
    });

    it("cancels a long-running operation", async () => {
      const controller = new AbortController();
      const call = client.callTool(
        "trigger-long-running-operation",
        { duration: 1, steps: 20 },
        { signal: controller.signal, onProgress: () => controller.abort(new Error("enough")) },
      );
      await expect(call).rejects.toMatchObject({ kind: "cancelled" });
      // The operation ignores its signal and goes on; its messages are dropped.
      expect(textOf(await client.callTool("echo", { message: "still here" }))).toBe("Echo: still here");
    });

    it("answers its sampling, elicitation and roots tools", async () => {
      const sampled = textOf(await client.callTool("trigger-sampling-request", { prompt: "a word", maxTokens: 9 }));
      expect(sampled).toContain(`"model": "${ANSWERS.sample.model}"`);
      expect(await events.until(({ kind }) => kind === "sample")).toMatchObject({ params: { maxTokens: 9 } });
      const elicited = textOf(await client.callTool("trigger-elicitation-request"));
      expect(elicited).toContain("User provided the requested information");
      const { params } = await events.until(({ kind }) => kind === "form");
      expect(params.requestedSchema.properties).toMatchObject({
        titledSingleSelectEnum: { oneOf: expect.any(Array) },
        untitledMultipleSelectEnum: { type: "array" },
        legacyTitledEnum: { enumNames: expect.any(Array) },
      });
      expect(textOf(await client.callTool("get-roots-list"))).toContain(ANSWERS.roots[0]?.uri);
    });

    it("receives a URL elicitation as a request and as an error", async () => {
      const url = "https://example.com/open";
      expect(textOf(await client.callTool("trigger-url-elicitation", { url }))).toContain("User declined");
      expect(await events.until(({ kind }) => kind === "url")).toMatchObject({ params: { mode: "url", url } });
      const thrown = client.callTool("trigger-url-elicitation", { url, errorPath: true });
      // The server sends -32042. The newest revision gives that code another meaning, so the kind identifies it.
      await expect(thrown).rejects.toMatchObject({
        code: -32603,
        data: {
          kind: "url_elicitation_required",
          elicitations: [{ mode: "url", url: "https://modelcontextprotocol.io" }],
        },
      });
    });

    it("receives a change for a resource that a tool creates, and reads it", async () => {
      const changes = await client.listen({ resourcesListChanged: true, resourceSubscriptions: [TEXT] });
      const made = await client.callTool("gzip-file-as-resource", {
        name: "words.gz",
        data: "data:text/plain,some%20words",
        outputType: "resourceLink",
      });
      const [link] = made.content as readonly Json[];
      expect(link).toMatchObject({ type: "resource_link", mimeType: "application/gzip" });
      await client.callTool("toggle-subscriber-updates");
      const received: Json[] = [];
      for await (const event of changes) {
        received.push(event);
        if (received.length === 2) await changes.close();
      }
      expect(received).toMatchObject([
        { method: "notifications/resources/list_changed" },
        { method: "notifications/resources/updated", params: { uri: TEXT } },
      ]);
      await client.callTool("toggle-subscriber-updates");
      const { contents } = await client.readResource(link?.["uri"]);
      const [{ blob }] = contents as unknown as [Json];
      expect(gunzipSync(Buffer.from(blob, "base64")).toString()).toBe("some words");
    });

    it("sets the log level", async () => {
      const before = events.all.length;
      await client.setLogLevel("debug");
      await client.callTool("toggle-simulated-logging");
      // It begins with one message of a random level.
      const pattern = /^\w+[- ]level[- ]message/i;
      const first = await events.until((event) => event["kind"] === "log" && pattern.test(String(event["data"])));
      expect(events.all.indexOf(first)).toBeGreaterThanOrEqual(before);
      await client.callTool("toggle-simulated-logging");
      await client.ping();
    });

    it("closes, and leaves only what may stay", async () => {
      expect(target.running()).toBe(process.platform === "linux" ? 1 : target.runningAfterClose);
      await client.close();
      expect(target.running()).toBe(target.runningAfterClose);
    });
  });
}

function textIn({ contents }: { readonly contents: readonly object[] }): string {
  return String((contents[0] as Json)["text"]);
}

// Our client with `@modelcontextprotocol/server-everything`, a server that was made to show every feature
// of the session style: all of its lists, its tools that need no network, what it asks and what it says by
// itself. Written once and run for each way in which that server can be reached.

import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Client, ConnectOptions } from "../../src/client/index.ts";
import { SESSIONS } from "./conversation.ts";
import { ANSWERS, Ear, type Json } from "./peer.ts";

const TEXT = "demo://resource/dynamic/text/7";

export interface Way {
  readonly title: string;
  open(options: ConnectOptions): Promise<Client>;
  /** Whether anything of the server is left, looked at before and after the client is closed. */
  left(): Promise<number> | number;
  /** What is left of the server when the client is closed. */
  readonly stays: number;
  close(): Promise<void> | void;
}

export function converseWithEverything(way: Way): void {
  describe(`server-everything ${way.title}`, { timeout: 20_000 }, () => {
    const ear = new Ear();
    let client: Client;

    beforeAll(async () => {
      client = await way.open({
        elicit: {
          form: (params) => {
            ear.hear({ kind: "form", params });
            return { action: "accept", content: { name: "Ada", check: true, integer: 7 } };
          },
          url: (params) => {
            ear.hear({ kind: "url", params });
            return { action: "decline" };
          },
        },
        sample: (params) => {
          ear.hear({ kind: "sample", params });
          return ANSWERS.sample;
        },
        roots: ANSWERS.roots,
        onLog: (message) => ear.hear({ kind: "log", ...message }),
        // Only what it says outside any listen: changes of its lists come to listeners.
        onNotification: ({ method, params }) => ear.hear({ kind: method, ...params }),
      });
    }, 20_000);

    afterAll(async () => {
      await client?.close();
      await way.close();
    }, 20_000);

    const textOf = (result: Json): string => result["content"][0].text;

    it("shakes hands in the newest revision that it speaks", () => {
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

    it("is asked for roots outside any call, soon after the handshake", async () => {
      const told = await ear.until(({ kind, data }) => kind === "log" && String(data).startsWith("Roots updated"));
      expect(told).toMatchObject({ level: "info", data: "Roots updated: 1 root(s) received from client" });
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
        // These are there because of what we declared.
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

    it("reads every resource that it lists, and both templates", async () => {
      for await (const { uri } of client.resources()) {
        const { contents } = await client.readResource(uri);
        expect(contents).toMatchObject([{ uri, mimeType: "text/markdown", text: expect.any(String) }]);
      }
      expect(textIn(await client.readResource(TEXT))).toContain("Resource 7");
      const { contents } = await client.readResource("demo://resource/dynamic/blob/8");
      expect(contents).toMatchObject([{ blob: expect.any(String) }]);
      await expect(client.readResource("demo://resource/dynamic/text/none")).rejects.toMatchObject({ code: -32603 });
    });

    it("gets every prompt, and completes with what was chosen before", async () => {
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

    it("calls the tools that only answer", async () => {
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

    it("reports what fails as results", async () => {
      expect(await client.callTool("get-sum", { a: "two" })).toMatchObject({ isError: true });
      expect(await client.callTool("nobody")).toMatchObject({ isError: true });
    });

    it("runs to its end what can only be run as a task", async () => {
      const report = await client.callTool("simulate-research-query", { topic: "chains" });
      expect(report.isError ?? false).toBe(false);
      expect(textOf(report)).toContain("chains");
    });

    it("follows its long-running operation by its progress", async () => {
      const steps: Json[] = [];
      const result = await client.callTool(
        "trigger-long-running-operation",
        { duration: 0.2, steps: 4 },
        { onProgress: (step) => steps.push({ ...step }) },
      );
      expect(textOf(result)).toContain("Long running operation completed");
      expect(steps).toEqual([1, 2, 3, 4].map((progress) => ({ progress, total: 4 })));
    });

    it("leaves a long-running operation that it no longer wants", async () => {
      const stop = new AbortController();
      const call = client.callTool(
        "trigger-long-running-operation",
        { duration: 1, steps: 20 },
        { signal: stop.signal, onProgress: () => stop.abort(new Error("enough")) },
      );
      await expect(call).rejects.toMatchObject({ kind: "cancelled" });
      // The operation itself does not look at its signal and goes on; what it says is for nobody.
      expect(textOf(await client.callTool("echo", { message: "still here" }))).toBe("Echo: still here");
    });

    it("answers its sampling, elicitation and roots tools", async () => {
      const sampled = textOf(await client.callTool("trigger-sampling-request", { prompt: "a word", maxTokens: 9 }));
      expect(sampled).toContain(`"model": "${ANSWERS.sample.model}"`);
      expect(await ear.until(({ kind }) => kind === "sample")).toMatchObject({ params: { maxTokens: 9 } });
      const elicited = textOf(await client.callTool("trigger-elicitation-request"));
      expect(elicited).toContain("User provided the requested information");
      const { params } = await ear.until(({ kind }) => kind === "form");
      expect(params.requestedSchema.properties).toMatchObject({
        titledSingleSelectEnum: { oneOf: expect.any(Array) },
        untitledMultipleSelectEnum: { type: "array" },
        legacyTitledEnum: { enumNames: expect.any(Array) },
      });
      expect(textOf(await client.callTool("get-roots-list"))).toContain(ANSWERS.roots[0]?.uri);
    });

    it("is asked to visit an address, by a question and by an error", async () => {
      const url = "https://example.com/visit";
      expect(textOf(await client.callTool("trigger-url-elicitation", { url }))).toContain("User declined");
      expect(await ear.until(({ kind }) => kind === "url")).toMatchObject({ params: { mode: "url", url } });
      const thrown = client.callTool("trigger-url-elicitation", { url, errorPath: true });
      // -32042 on the wire; the newest revision gives that code another meaning, so the kind says what it was.
      await expect(thrown).rejects.toMatchObject({
        code: -32603,
        data: {
          kind: "url_elicitation_required",
          elicitations: [{ mode: "url", url: "https://modelcontextprotocol.io" }],
        },
      });
    });

    it("hears of a resource that a tool makes, and reads it", async () => {
      const changes = await client.listen({ resourcesListChanged: true, resourceSubscriptions: [TEXT] });
      const made = await client.callTool("gzip-file-as-resource", {
        name: "words.gz",
        data: "data:text/plain,some%20words",
        outputType: "resourceLink",
      });
      const [link] = made.content as readonly Json[];
      expect(link).toMatchObject({ type: "resource_link", mimeType: "application/gzip" });
      await client.callTool("toggle-subscriber-updates");
      const heard: Json[] = [];
      for await (const event of changes) {
        heard.push(event);
        if (heard.length === 2) await changes.close();
      }
      expect(heard).toMatchObject([
        { method: "notifications/resources/list_changed" },
        { method: "notifications/resources/updated", params: { uri: TEXT } },
      ]);
      await client.callTool("toggle-subscriber-updates");
      const { contents } = await client.readResource(link?.["uri"]);
      const [{ blob }] = contents as unknown as [Json];
      expect(gunzipSync(Buffer.from(blob, "base64")).toString()).toBe("some words");
    });

    it("takes its log level from us", async () => {
      const before = ear.heard.length;
      await client.setLogLevel("debug");
      await client.callTool("toggle-simulated-logging");
      // It begins with one message of a level chosen by chance.
      const words = /^\w+[- ]level[- ]message/i;
      const said = await ear.until((event) => event["kind"] === "log" && words.test(String(event["data"])));
      expect(ear.heard.indexOf(said)).toBeGreaterThanOrEqual(before);
      await client.callTool("toggle-simulated-logging");
      await client.ping();
    });

    it("is left in peace when we are done with it", async () => {
      expect(await way.left()).toBe(process.platform === "linux" ? 1 : way.stays);
      await client.close();
      expect(await way.left()).toBe(way.stays);
    });
  });
}

function textIn({ contents }: { readonly contents: readonly object[] }): string {
  return String((contents[0] as Json)["text"]);
}

// The tests that run for every pair of client and server: handshake, every method, notifications, requests to the
// client, and a close that leaves no process behind. Where a revision or a library lacks something, the test expects what
// happens instead, so that no combination is silently skipped.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { REVISIONS } from "../../src/protocol/revisions/index.ts";
import {
  AUDIO,
  BLOB,
  BLOB_URI,
  FORM,
  GALLERY,
  INFO,
  INSTRUCTIONS,
  NOTE,
  NOTE_TEXT,
  PAGE_SIZE,
  QUESTION,
  RESOURCES,
  TEMPLATE,
} from "./fixtures/server-data.ts";
import { ANSWERS, FixtureServer, isAlive, type Json, type TestClient } from "./test-client.ts";

const NAMES = REVISIONS.map(({ name }) => name);

export interface Pair {
  readonly title: string;
  /** The revision that the handshake must negotiate. */
  readonly revision: string;
  readonly client: "catenary" | "sdk-1" | "sdk-2";
  readonly server: "catenary" | "sdk-1" | "sdk-2";
  /** Whether the server listens over HTTP and so outlives its clients. */
  readonly listens?: boolean;
  /** Arguments of the fixture server. */
  readonly serverArgs?: readonly string[];
  open(fixture: FixtureServer): Promise<TestClient>;
}

/** The session revisions, oldest first, and the stateless one. */
export const SESSIONS: readonly string[] = REVISIONS.filter(({ style }) => style === "session").map(({ name }) => name);
export const STATELESS: string = NAMES.at(-1) ?? "";

const textOf = (result: Json): string => result["content"][0].text;

export function testPair(pair: Pair): void {
  const { revision, client: clientLibrary, server: serverLibrary } = pair;
  const isStateless = revision === STATELESS;
  const index = NAMES.indexOf(revision);
  /** The SDK servers send every field to every caller; ours sends the fields that the caller's revision has. */
  const sends = (since: number): boolean => serverLibrary !== "catenary" || index >= since;

  describe(pair.title, () => {
    let fixture: FixtureServer;
    let client: TestClient;

    beforeAll(async () => {
      fixture = new FixtureServer(serverLibrary, ...(pair.serverArgs ?? []));
      client = await pair.open(fixture);
    });

    afterAll(async () => {
      await client?.close();
      await fixture.stop();
      fixture.remove();
    });

    it("negotiates the expected revision", () => {
      expect(client.revision).toBe(revision);
      expect(client.server).toMatchObject(INFO);
      expect(client.instructions).toBe(INSTRUCTIONS);
      expect(client.capabilities).toMatchObject({
        tools: { listChanged: true },
        resources: { listChanged: true, subscribe: true },
        prompts: { listChanged: true },
        logging: {},
        ...(sends(1) && { completions: {} }),
      });
    });

    it("lists tools with their schemas", async () => {
      const tools = await client.tools();
      expect(tools.map(({ name }) => name)).toEqual(
        expect.arrayContaining(["add", "fail", "gallery", "count", "wait", "talk", "elicit", "sample", "roots", "pid"]),
      );
      const add = tools.find(({ name }) => name === "add");
      expect(add).toMatchObject({
        description: "Add two numbers",
        inputSchema: { type: "object", properties: { a: { type: "number" } }, required: ["a", "b"] },
        ...(sends(2) && { title: "Add", outputSchema: { type: "object", properties: { sum: { type: "number" } } } }),
        ...(sends(1) && { annotations: { readOnlyHint: true } }),
      });
      expect(Object.hasOwn(add ?? {}, "outputSchema")).toBe(sends(2));
    });

    it("lists resources, templates and prompts", async () => {
      expect((await client.resources()).map(({ uri }) => uri)).toEqual(RESOURCES);
      expect((await client.templates()).map(({ uriTemplate }) => uriTemplate)).toEqual([TEMPLATE]);
      expect(await client.prompts()).toMatchObject([
        {
          name: "greet",
          description: "Greet an author",
          arguments: [{ name: "author", required: true }, { name: "style" }],
        },
        { name: "introduce" },
      ]);
    });

    it("lists page by page with cursors", async () => {
      const seen: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await client.page(cursor);
        expect(page["resources"].length).toBeLessThanOrEqual(PAGE_SIZE);
        seen.push(...page["resources"].map(({ uri }: Json) => uri));
        cursor = page["nextCursor"];
      } while (cursor !== undefined);
      expect(seen).toEqual(RESOURCES);
    });

    it("calls a tool with structured output", async () => {
      const result = await client.call("add", { a: 2, b: 3.5 });
      expect(JSON.parse(textOf(result))).toEqual({ sum: 5.5 });
      expect(result["structuredContent"]).toEqual(sends(2) ? { sum: 5.5 } : undefined);
      expect(result["isError"] ?? false).toBe(false);
    });

    it("answers many calls at once, each with its own result", async () => {
      const numbers = Array.from({ length: 25 }, (_, n) => n);
      const answers = await Promise.all(numbers.map((n) => client.call("add", { a: n, b: 1 })));
      expect(answers.map((result) => JSON.parse(textOf(result)).sum)).toEqual(numbers.map((n) => n + 1));
    });

    it("reports a tool that fails as a result", async () => {
      const result = await client.call("fail");
      expect(result["isError"]).toBe(true);
      expect(textOf(result)).toContain("it broke");
    });

    it("reports arguments that the schema rejects as a result", async () => {
      const call = client.call("add", { a: "two", b: 3 });
      // In the three oldest revisions it is an error response; the SDK servers never send one.
      if (serverLibrary === "catenary" && index < 3) {
        await expect(call).rejects.toMatchObject({ code: -32602, data: { details: expect.stringMatching(/\ba\b/) } });
        return;
      }
      const result = await call;
      expect(result["isError"]).toBe(true);
      expect(textOf(result)).toMatch(/\ba\b/);
    });

    it("rejects an unknown tool", async () => {
      const call = client.call("no-such-tool");
      if (serverLibrary === "sdk-1") {
        // SDK 1.x turns every error inside tools/call into a result, this one too.
        const result = await call;
        expect(result["isError"]).toBe(true);
        expect(textOf(result)).toContain("MCP error -32602: Tool no-such-tool not found");
      } else
        await expect(call).rejects.toMatchObject({ code: -32602, message: expect.stringContaining("no-such-tool") });
    });

    it("carries every type of content", async () => {
      const { content } = await client.call("gallery");
      const [text, image, audio, link, embedded] = GALLERY;
      expect(content).toMatchObject([
        text,
        image,
        sends(1) ? audio : { type: "resource", resource: { mimeType: "audio/wav", blob: AUDIO } },
        sends(2) ? link : { type: "text", text: `one: ${NOTE}` },
        embedded,
      ]);
    });

    it("reads text, bytes and a resource of a template", async () => {
      expect((await client.read(NOTE))["contents"]).toMatchObject([
        { uri: NOTE, mimeType: "text/plain", text: NOTE_TEXT },
      ]);
      expect((await client.read(BLOB_URI))["contents"]).toMatchObject([{ uri: BLOB_URI, blob: BLOB }]);
      const [book] = (await client.read("book://Austen/Emma"))["contents"];
      expect(JSON.parse(book.text)).toEqual({ author: "Austen", title: "Emma" });
    });

    it("rejects an unknown resource", async () => {
      // -32002 until the newest revision made it -32602. Both SDK servers send the new code to all callers,
      // and the client of SDK 2.x reads the old code as the new one.
      const code = serverLibrary === "catenary" && clientLibrary !== "sdk-2" && !isStateless ? -32002 : -32602;
      await expect(client.read("nowhere://at-all")).rejects.toMatchObject({ code });
    });

    it("gets a prompt, and rejects one without its required argument", async () => {
      const { messages } = await client.prompt("greet", { author: "Bronte", style: "warmly" });
      expect(messages).toMatchObject([{ role: "user", content: { type: "text", text: "Greet Bronte warmly." } }]);
      await expect(client.prompt("greet", {})).rejects.toMatchObject({ code: -32602 });
    });

    it("completes arguments of prompts and templates", async () => {
      expect(await client.complete({ type: "ref/prompt", name: "greet" }, "author", "A")).toEqual(["Austen"]);
      const book = { type: "ref/resource", uri: TEMPLATE } as const;
      expect(await client.complete(book, "author", "")).toEqual(["Austen", "Bronte"]);
      // The other arguments are new in the third revision. Before it our client leaves them out; the SDK clients
      // send them, and every server accepts that.
      const chosen = await client.complete(book, "title", "", { author: "Bronte" });
      expect(chosen).toEqual(
        clientLibrary !== "catenary" || index >= 2 ? ["Villette"] : ["Emma", "Persuasion", "Villette"],
      );
    });

    it("reports progress while the call runs", async () => {
      // Both SDK clients drop progress that arrives in one chunk with the result: they handle the result first, and it
      // removes the progress handler. So the tool waits with its result until the last step was received.
      const steps: Json[] = [];
      const onProgress = (step: Json): void => {
        if (steps.push(step) === 3) void client.call("release");
      };
      const result = await client.call("count", { to: 3, hold: true }, { onProgress });
      expect(textOf(result)).toBe("counted to 3");
      expect(steps).toMatchObject(
        [1, 2, 3].map((n) => ({ progress: n, total: 3, ...(sends(1) && { message: `step ${n}` }) })),
      );
    });

    it("cancels a call, and the server sees it", async () => {
      const controller = new AbortController();
      const call = client.call(
        "wait",
        {},
        { signal: controller.signal, onProgress: () => controller.abort(new Error("enough")) },
      );
      await expect(call).rejects.toThrow(/enough|abort|cancel/i);
      expect(textOf(await client.call("aborted"))).toBe("the call was aborted");
    });

    it("logs at the level that the caller sets", async () => {
      await client.setLevel("warning");
      await client.call("talk");
      const warning = await client.events.until(({ kind }) => kind === "log");
      expect(warning).toMatchObject({ level: "warning", logger: "fixture", data: { words: "a shout" } });
      await client.setLevel("debug");
      await client.call("talk");
      const debug = await client.events.until(({ kind, level }) => kind === "log" && level === "debug");
      expect(debug).toMatchObject({ data: "a whisper" });
      expect(client.events.all.filter(({ kind }) => kind === "log").length).toBeLessThanOrEqual(3);
    });

    it("notifies of a changed list and an updated resource until it is unsubscribed", async () => {
      await client.watch(NOTE);
      await client.call("grow");
      await client.events.until(({ kind }) => kind === "tools");
      expect((await client.tools()).map(({ name }) => name)).toContain("grown");
      expect(textOf(await client.call("grown"))).toBe("I am new");
      await client.call("touch");
      expect(await client.events.until(({ kind }) => kind === "updated")).toMatchObject({ uri: NOTE });
      await client.unwatch(NOTE);
      await client.call("touch");
      await client.call("pid");
      expect(client.events.all.filter(({ kind }) => kind === "updated")).toHaveLength(1);
    });

    it("elicits during a call", async () => {
      const call = client.call("elicit");
      if (index < 2 && serverLibrary === "catenary") {
        // The SDK clients declare elicitation also in revisions that lack it.
        await expect(call).rejects.toMatchObject({
          code: -32603,
          message: expect.stringContaining("has no elicitation/create"),
        });
        return;
      }
      const result = await call;
      if (index < 2) {
        expect(result["isError"]).toBe(true);
        expect(textOf(result)).toContain("elicitation");
        return;
      }
      expect(JSON.parse(textOf(result))).toEqual(ANSWERS.elicit);
      const { params } = await client.events.until(({ kind }) => kind === "elicit");
      expect(params).toMatchObject(FORM);
    });

    it("samples during a call", async () => {
      const { model, content } = ANSWERS.sample;
      expect(JSON.parse(textOf(await client.call("sample")))).toEqual({ model, content });
      const { params } = await client.events.until(({ kind }) => kind === "sample");
      expect(params).toMatchObject(QUESTION);
    });

    it("lists roots during a call", async () => {
      expect(JSON.parse(textOf(await client.call("roots")))).toEqual(ANSWERS.roots);
    });

    it("sends several requests to the client in one call, some of them at once", async () => {
      const call = client.call("interview");
      if (index < 2 && serverLibrary === "catenary") await expect(call).rejects.toMatchObject({ code: -32603 });
      else if (index < 2) expect((await call)["isError"]).toBe(true);
      else expect(JSON.parse(textOf(await call))).toEqual({ name: "Ada", model: "parrot-1", roots: 1 });
    });

    it("elicits while it builds a prompt", async () => {
      const prompt = client.prompt("introduce", {});
      if (index < 2) await expect(prompt).rejects.toMatchObject({ code: expect.any(Number) });
      else expect((await prompt)["messages"]).toMatchObject([{ content: { type: "text", text: "I am Ada." } }]);
    });

    it("pings in both directions where the revision has a ping", async () => {
      // The newest revision has no ping: the client of SDK 2.x refuses to send one, ours sends server/discover.
      if (isStateless && clientLibrary === "sdk-2") await expect(client.ping()).rejects.toThrow(/ping/);
      else expect(await client.ping()).toEqual({});
      if (!isStateless && serverLibrary !== "catenary")
        expect(JSON.parse(textOf(await client.call("ping-back")))).toEqual({});
    });

    it("closes and leaves no process behind", async () => {
      const pid = Number(textOf(await client.call("pid")));
      expect(isAlive(pid)).toBe(true);
      await client.close();
      if (pair.listens === true) {
        expect(isAlive(pid)).toBe(true);
        await fixture.stop();
      }
      expect(isAlive(pid)).toBe(false);
      expect(fixture.runningProcesses()).toEqual([]);
      expect(fixture.exitRecords().at(-1)).toBe("exited with 0");
    });
  });
}

// The conversation that every pair of client and server has: the handshake, every verb, what comes
// unasked, what is asked back, and a parting that leaves no process behind. It is written once and run
// for each pair; where a revision or a library cannot say something, the expectation names what is said
// instead, so that no cell is silently skipped.

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
  QUESTION,
} from "./fixtures/stage.ts";
import { PAGE_SIZE, RESOURCES, TEMPLATE } from "./fixtures/stage.ts";
import { ANSWERS, Fixture, isAlive, type Json, type Peer } from "./peer.ts";

const NAMES = REVISIONS.map(({ name }) => name);

export interface Pair {
  readonly title: string;
  /** What the handshake must come to. */
  readonly revision: string;
  readonly client: "catenary" | "sdk-1" | "sdk-2";
  readonly server: "catenary" | "sdk-1" | "sdk-2";
  /** Whether the server is a process of its own, which callers leave behind. */
  readonly listens?: boolean;
  /** Passed to the fixture. */
  readonly serverArgs?: readonly string[];
  open(fixture: Fixture): Promise<Peer>;
}

/** Session-style revisions, oldest first, and the one of exchanges. */
export const SESSIONS: readonly string[] = REVISIONS.filter(({ style }) => style === "session").map(({ name }) => name);
export const EXCHANGE: string = NAMES.at(-1) ?? "";

const textOf = (result: Json): string => result["content"][0].text;

export function converse(pair: Pair): void {
  const { revision, client, server } = pair;
  const exchange = revision === EXCHANGE;
  // The official servers say everything to everybody; ours says what the caller's revision has words for.
  const age = NAMES.indexOf(revision);
  const says = (since: number): boolean => server !== "catenary" || age >= since;

  describe(pair.title, { timeout: 20_000 }, () => {
    let fixture: Fixture;
    let peer: Peer;

    beforeAll(async () => {
      fixture = new Fixture(server, ...(pair.serverArgs ?? []));
      peer = await pair.open(fixture);
    }, 20_000);

    afterAll(async () => {
      await peer?.close();
      await fixture.end();
      fixture.remove();
    }, 20_000);

    it("shakes hands in the expected revision", () => {
      expect(peer.revision).toBe(revision);
      expect(peer.server).toMatchObject(INFO);
      expect(peer.instructions).toBe(INSTRUCTIONS);
      expect(peer.capabilities).toMatchObject({
        tools: { listChanged: true },
        resources: { listChanged: true, subscribe: true },
        prompts: { listChanged: true },
        logging: {},
        ...(says(1) && { completions: {} }),
      });
    });

    it("lists tools with their schemas", async () => {
      const tools = await peer.tools();
      expect(tools.map(({ name }) => name)).toEqual(
        expect.arrayContaining(["add", "fail", "gallery", "count", "wait", "talk", "elicit", "sample", "roots", "pid"]),
      );
      const add = tools.find(({ name }) => name === "add");
      expect(add).toMatchObject({
        description: "Add two numbers",
        inputSchema: { type: "object", properties: { a: { type: "number" } }, required: ["a", "b"] },
        ...(says(2) && { title: "Add", outputSchema: { type: "object", properties: { sum: { type: "number" } } } }),
        ...(says(1) && { annotations: { readOnlyHint: true } }),
      });
      expect(Object.hasOwn(add ?? {}, "outputSchema")).toBe(says(2));
    });

    it("lists resources, templates and prompts", async () => {
      expect((await peer.resources()).map(({ uri }) => uri)).toEqual(RESOURCES);
      expect((await peer.templates()).map(({ uriTemplate }) => uriTemplate)).toEqual([TEMPLATE]);
      expect(await peer.prompts()).toMatchObject([
        {
          name: "greet",
          description: "Greet an author",
          arguments: [{ name: "author", required: true }, { name: "style" }],
        },
        { name: "introduce" },
      ]);
    });

    it("turns pages by cursor", async () => {
      const seen: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await peer.page(cursor);
        expect(page["resources"].length).toBeLessThanOrEqual(PAGE_SIZE);
        seen.push(...page["resources"].map(({ uri }: Json) => uri));
        cursor = page["nextCursor"];
      } while (cursor !== undefined);
      expect(seen).toEqual(RESOURCES);
    });

    it("calls a tool with structured output", async () => {
      const result = await peer.call("add", { a: 2, b: 3.5 });
      expect(JSON.parse(textOf(result))).toEqual({ sum: 5.5 });
      expect(result["structuredContent"]).toEqual(says(2) ? { sum: 5.5 } : undefined);
      expect(result["isError"] ?? false).toBe(false);
    });

    it("answers many calls at once, each with its own answer", async () => {
      const asked = Array.from({ length: 25 }, (_, n) => n);
      const answers = await Promise.all(asked.map((n) => peer.call("add", { a: n, b: 1 })));
      expect(answers.map((result) => JSON.parse(textOf(result)).sum)).toEqual(asked.map((n) => n + 1));
    });

    it("reports a tool that fails as a result", async () => {
      const result = await peer.call("fail");
      expect(result["isError"]).toBe(true);
      expect(textOf(result)).toContain("it broke");
    });

    it("reports arguments that the schema refuses as a result", async () => {
      const call = peer.call("add", { a: "two", b: 3 });
      // The three oldest revisions have it as an error of the request; the SDK servers never make it one.
      if (server === "catenary" && age < 3) {
        await expect(call).rejects.toMatchObject({ code: -32602, data: { details: expect.stringMatching(/\ba\b/) } });
        return;
      }
      const result = await call;
      expect(result["isError"]).toBe(true);
      expect(textOf(result)).toMatch(/\ba\b/);
    });

    it("refuses a tool that there is not", async () => {
      const call = peer.call("nobody");
      if (server === "sdk-1") {
        // SDK 1.x turns every error inside tools/call into a result, this one too.
        const result = await call;
        expect(result["isError"]).toBe(true);
        expect(textOf(result)).toContain("MCP error -32602: Tool nobody not found");
      } else await expect(call).rejects.toMatchObject({ code: -32602, message: expect.stringContaining("nobody") });
    });

    it("carries every kind of content", async () => {
      const { content } = await peer.call("gallery");
      const [words, image, audio, link, embedded] = GALLERY;
      expect(content).toMatchObject([
        words,
        image,
        says(1) ? audio : { type: "resource", resource: { mimeType: "audio/wav", blob: AUDIO } },
        says(2) ? link : { type: "text", text: `one: ${NOTE}` },
        embedded,
      ]);
    });

    it("reads text, bytes and what a template makes", async () => {
      expect((await peer.read(NOTE))["contents"]).toMatchObject([
        { uri: NOTE, mimeType: "text/plain", text: NOTE_TEXT },
      ]);
      expect((await peer.read(BLOB_URI))["contents"]).toMatchObject([{ uri: BLOB_URI, blob: BLOB }]);
      const [book] = (await peer.read("book://Austen/Emma"))["contents"];
      expect(JSON.parse(book.text)).toEqual({ author: "Austen", title: "Emma" });
    });

    it("refuses a resource that there is not", async () => {
      // -32002 until the newest revision made it -32602. Both SDK servers send the new code to all callers,
      // and the client of SDK 2.x reads the old code as the new one.
      const code = server === "catenary" && client !== "sdk-2" && !exchange ? -32002 : -32602;
      await expect(peer.read("nowhere://at-all")).rejects.toMatchObject({ code });
    });

    it("gets a prompt, and refuses one without what it needs", async () => {
      const { messages } = await peer.prompt("greet", { author: "Bronte", style: "warmly" });
      expect(messages).toMatchObject([{ role: "user", content: { type: "text", text: "Greet Bronte warmly." } }]);
      await expect(peer.prompt("greet", {})).rejects.toMatchObject({ code: -32602 });
    });

    it("completes arguments of prompts and templates", async () => {
      expect(await peer.complete({ type: "ref/prompt", name: "greet" }, "author", "A")).toEqual(["Austen"]);
      const book = { type: "ref/resource", uri: TEMPLATE } as const;
      expect(await peer.complete(book, "author", "")).toEqual(["Austen", "Bronte"]);
      // What was chosen already came with the third revision. Before it our client leaves it out; the SDK
      // clients send it all the same, and no server minds.
      const chosen = await peer.complete(book, "title", "", { author: "Bronte" });
      expect(chosen).toEqual(client !== "catenary" || age >= 2 ? ["Villette"] : ["Emma", "Persuasion", "Villette"]);
    });

    it("tells of progress while the call runs", async () => {
      // Both SDK clients drop progress that comes in one chunk with the result: the notification is handled
      // a microtask later, the result at once, and the result takes the progress handler away. So the tool
      // holds its result until the last step has been heard.
      const steps: Json[] = [];
      const onProgress = (step: Json): void => {
        if (steps.push(step) === 3) void peer.call("release");
      };
      const result = await peer.call("count", { to: 3, hold: true }, { onProgress });
      expect(textOf(result)).toBe("counted to 3");
      expect(steps).toMatchObject(
        [1, 2, 3].map((n) => ({ progress: n, total: 3, ...(says(1) && { message: `step ${n}` }) })),
      );
    });

    it("cancels a call, and the server sees it", async () => {
      const stop = new AbortController();
      const call = peer.call("wait", {}, { signal: stop.signal, onProgress: () => stop.abort(new Error("enough")) });
      await expect(call).rejects.toThrow(/enough|abort|cancel/i);
      expect(textOf(await peer.call("aborted"))).toBe("the call was aborted");
    });

    it("logs at the level that the caller sets", async () => {
      await peer.setLevel("warning");
      await peer.call("talk");
      const shout = await peer.ear.until(({ kind }) => kind === "log");
      expect(shout).toMatchObject({ level: "warning", logger: "stage", data: { words: "a shout" } });
      await peer.setLevel("debug");
      await peer.call("talk");
      const whisper = await peer.ear.until(({ kind, level }) => kind === "log" && level === "debug");
      expect(whisper).toMatchObject({ data: "a whisper" });
      expect(peer.ear.heard.filter(({ kind }) => kind === "log").length).toBeLessThanOrEqual(3);
    });

    it("tells of a changed list and of an updated resource, until it is told not to", async () => {
      await peer.watch(NOTE);
      await peer.call("grow");
      await peer.ear.until(({ kind }) => kind === "tools");
      expect((await peer.tools()).map(({ name }) => name)).toContain("grown");
      expect(textOf(await peer.call("grown"))).toBe("I am new");
      await peer.call("touch");
      expect(await peer.ear.until(({ kind }) => kind === "updated")).toMatchObject({ uri: NOTE });
      await peer.unwatch(NOTE);
      await peer.call("touch");
      await peer.call("pid");
      expect(peer.ear.heard.filter(({ kind }) => kind === "updated")).toHaveLength(1);
    });

    it("elicits in mid-call", async () => {
      const call = peer.call("elicit");
      if (age < 2 && server === "catenary") {
        // The SDK clients declare elicitation whatever the revision; a revision without it has none.
        await expect(call).rejects.toMatchObject({
          code: -32603,
          message: expect.stringContaining("has no elicitation/create"),
        });
        return;
      }
      const result = await call;
      if (age < 2) {
        expect(result["isError"]).toBe(true);
        expect(textOf(result)).toContain("elicitation");
        return;
      }
      expect(JSON.parse(textOf(result))).toEqual(ANSWERS.elicit);
      const { params } = await peer.ear.until(({ kind }) => kind === "elicit");
      expect(params).toMatchObject(FORM);
    });

    it("samples in mid-call", async () => {
      const { model, content } = ANSWERS.sample;
      expect(JSON.parse(textOf(await peer.call("sample")))).toEqual({ model, content });
      const { params } = await peer.ear.until(({ kind }) => kind === "sample");
      expect(params).toMatchObject(QUESTION);
    });

    it("asks for roots in mid-call", async () => {
      expect(JSON.parse(textOf(await peer.call("roots")))).toEqual(ANSWERS.roots);
    });

    it("asks several things in one call, some of them at once", async () => {
      const call = peer.call("interview");
      if (age < 2 && server === "catenary") await expect(call).rejects.toMatchObject({ code: -32603 });
      else if (age < 2) expect((await call)["isError"]).toBe(true);
      else expect(JSON.parse(textOf(await call))).toEqual({ name: "Ada", model: "parrot-1", roots: 1 });
    });

    it("asks while a prompt is made", async () => {
      const prompt = peer.prompt("introduce", {});
      if (age < 2) await expect(prompt).rejects.toMatchObject({ code: expect.any(Number) });
      else expect((await prompt)["messages"]).toMatchObject([{ content: { type: "text", text: "I am Ada." } }]);
    });

    it("pings, and is pinged where the revision has a ping", async () => {
      // The newest revision has no ping: the client of SDK 2.x does not send one, ours asks server/discover.
      if (exchange && client === "sdk-2") await expect(peer.ping()).rejects.toThrow(/ping/);
      else expect(await peer.ping()).toEqual({});
      if (!exchange && server !== "catenary") expect(JSON.parse(textOf(await peer.call("ping-back")))).toEqual({});
    });

    it("parts in peace and leaves no process behind", async () => {
      const pid = Number(textOf(await peer.call("pid")));
      expect(isAlive(pid)).toBe(true);
      await peer.close();
      if (pair.listens === true) {
        expect(isAlive(pid)).toBe(true);
        await fixture.end();
      }
      expect(isAlive(pid)).toBe(false);
      expect(fixture.survivors()).toEqual([]);
      expect(fixture.lastWords().at(-1)).toBe("left by itself with 0");
    });
  });
}

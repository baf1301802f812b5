// Addresses through merged ends: what is read where, what it is called on the way out, and that an address which one end
// has named is never read at another.

import { describe, expect, it, vi } from "vitest";
import { ConnectionError } from "../../core/errors.ts";
import type { Params, Result } from "../../core/handler.ts";
import { invalidParams, McpError } from "../../protocol/errors.ts";
import { createServer } from "../../server/index.ts";
import { desk } from "../../../test/support/desk.ts";
import { madeServer, tools } from "../../../test/support/made-end.ts";
import { merge } from "./merge.ts";

interface Shelf {
  readonly listed?: readonly string[];
  /** Read, though in no list. */
  readonly more?: readonly string[];
  readonly templates?: readonly string[];
  readonly result?: Result;
}

/** An end that says by whom something was read. */
function shelf(who: string, { listed = [], more = [], templates = [], result }: Shelf): ReturnType<typeof madeServer> {
  return madeServer({
    "resources/list": { resources: listed.map((uri) => ({ uri, name: uri })) },
    "resources/templates/list": { resourceTemplates: templates.map((uriTemplate) => ({ uriTemplate, name: "t" })) },
    "resources/read": ({ uri }: Params) => {
      if (![...listed, ...more].includes(uri as string)) {
        throw McpError.of("resource_not_found", `Resource not found: ${String(uri)}`, { uri });
      }
      return { contents: [{ uri, text: who }] };
    },
    "tools/list": tools(`links-of-${who}`),
    "tools/call": result ?? { content: [] },
    "prompts/list": { prompts: [{ name: `prompt-of-${who}` }] },
    "prompts/get": { messages: [{ role: "user", content: (result?.["content"] as unknown[])?.[0] }] },
  });
}

const link = (uri: string): object => ({ type: "resource_link", uri, name: "l" });
const embedded = (uri: string): object => ({ type: "resource", resource: { uri, text: "t" } });
const reads = (end: ReturnType<typeof madeServer>): unknown[] =>
  end.asked.filter(({ method }) => method === "resources/read").map(({ params }) => params["uri"]);

describe("reading", () => {
  it("goes to the end that lists the address, by the end's own name for it", async () => {
    const a = shelf("a", { listed: ["file:///same", "file:///a"] });
    const b = shelf("b", { listed: ["file:///same", "file:///b"] });
    const caller = desk(merge({ a, b }));
    expect(await caller.call("resources/read", { uri: "file:///b" })).toEqual({
      contents: [{ uri: "file:///b", text: "b" }],
    });
    expect(await caller.call("resources/read", { uri: "b.file:///same" })).toEqual({
      contents: [{ uri: "b.file:///same", text: "b" }],
    });
    expect([reads(a), reads(b)]).toEqual([[], ["file:///b", "file:///same"]]);
    const error = await caller.refused("resources/read", { uri: "file:///same" });
    expect(error.data).toMatchObject({ candidates: ["a.file:///same", "b.file:///same"] });
  });

  it("passes a result on as it is where nothing is renamed", async () => {
    const result = { contents: [{ uri: "x:1", text: "t" }] };
    const a = madeServer({ "resources/list": { resources: [{ uri: "x:1", name: "x" }] }, "resources/read": result });
    const caller = desk(merge({ a, b: shelf("b", {}) }));
    expect(await caller.call("resources/read", { uri: "x:1" })).toBe(result);
  });

  it("renames everything where that is the rule, also errors", async () => {
    const a = shelf("a", { listed: ["x:1"], result: { content: [link("x:2"), embedded("x:3"), { type: "text" }] } });
    const caller = desk(merge({ a }, { names: "always" }));
    expect(await caller.call("resources/read", { uri: "a.x:1" })).toEqual({ contents: [{ uri: "a.x:1", text: "a" }] });
    expect((await caller.refused("resources/read", { uri: "a.x:9" })).data).toEqual({
      kind: "resource_not_found",
      uri: "a.x:9",
    });
    expect(await caller.call("tools/call", { name: "a.links-of-a" })).toEqual({
      content: [link("a.x:2"), embedded("a.x:3"), { type: "text" }],
    });
    expect(await caller.call("prompts/get", { name: "a.prompt-of-a" })).toEqual({
      messages: [{ role: "user", content: link("a.x:2") }],
    });
  });

  it("finds what templates say, and asks no other end", async () => {
    const a = shelf("a", { templates: ["notes://{id}"], more: ["notes://1"] });
    const b = shelf("b", { templates: ["days://{day}"], more: ["days://1"] });
    const caller = desk(merge({ a, b }));
    expect(await caller.call("resources/read", { uri: "days://1" })).toEqual({
      contents: [{ uri: "days://1", text: "b" }],
    });
    await caller.call("resources/read", { uri: "days://1" });
    expect([reads(a), reads(b)]).toEqual([[], ["days://1", "days://1"]]);
    expect(b.asked.filter(({ method }) => method === "resources/templates/list")).toHaveLength(1);
  });

  it("asks the ends in their order for what is in no list, and remembers where it was", async () => {
    const a = shelf("a", {});
    const b = shelf("b", { more: ["odd:1"] });
    const caller = desk(merge({ a, none: madeServer({}), b, c: shelf("c", { more: ["odd:1"] }) }));
    for (const _time of [1, 2]) {
      expect(await caller.call("resources/read", { uri: "odd:1" })).toEqual({
        contents: [{ uri: "odd:1", text: "b" }],
      });
    }
    expect([reads(a), reads(b)]).toEqual([["odd:1"], ["odd:1", "odd:1"]]);
    expect((await caller.refused("resources/read", { uri: "odd:2" })).data).toEqual({
      kind: "resource_not_found",
      uri: "odd:2",
    });
  });

  it("understands the many words for 'not found', and no other error", async () => {
    const words = [
      invalidParams("Resource odd:1 not found"),
      new McpError(0, "Unknown resource: odd:1"),
      new McpError(-32603, "ENOENT: no such file or directory"),
      new McpError(-32601, "Method not found"),
    ];
    const ends = words.map((error) =>
      madeServer({
        "resources/list": { resources: [] },
        "resources/read": () => {
          throw error;
        },
      }),
    );
    const found = shelf("found", { more: ["odd:1"] });
    const caller = desk(merge({ ...Object.fromEntries(ends.entries()), found }));
    expect((await caller.call("resources/read", { uri: "odd:1" }))["contents"]).toEqual([
      { uri: "odd:1", text: "found" },
    ]);
    const locked = madeServer({
      "resources/list": { resources: [] },
      "resources/read": () => {
        throw McpError.of("access_denied", "You may not");
      },
    });
    expect((await desk(merge({ locked, found })).refused("resources/read", { uri: "odd:1" })).message).toBe(
      "You may not",
    );
  });

  it("goes past an end that is away, and says so where nobody else has it", async () => {
    const away = madeServer({
      "resources/list": { resources: [] },
      "resources/read": () => {
        throw new ConnectionError("closed", "gone");
      },
    });
    const caller = desk(merge({ away, b: shelf("b", { more: ["odd:1"] }) }));
    expect((await caller.call("resources/read", { uri: "odd:1" }))["contents"]).toEqual([{ uri: "odd:1", text: "b" }]);
    await expect(caller.call("resources/read", { uri: "odd:2" })).rejects.toThrow("The end away failed: gone");
  });

  it("gives the answers of a round to the end that asked", async () => {
    const b = madeServer({
      "resources/list": { resources: [] },
      "resources/read": ({ requestState }) =>
        requestState === "s" ? { contents: [] } : { resultType: "input_required", requestState: "s" },
    });
    const a = shelf("a", {});
    const caller = desk(merge({ a, b }));
    expect((await caller.call("resources/read", { uri: "odd:1" })).resultType).toBe("input_required");
    expect(await caller.call("resources/read", { uri: "odd:1", requestState: "s" })).toEqual({ contents: [] });
    expect(reads(a)).toEqual(["odd:1"]);
  });
});

describe("addresses in results", () => {
  it("lead back to the end that named them, listed or not", async () => {
    const a = shelf("a", { more: ["file:///x"] });
    const b = shelf("b", { more: ["file:///x"], result: { content: [link("file:///x")] } });
    const caller = desk(merge({ a, b }));
    const { content } = await caller.call("tools/call", { name: "links-of-b" });
    expect(content).toEqual([link("file:///x")]);
    expect(await caller.call("resources/read", { uri: "file:///x" })).toEqual({
      contents: [{ uri: "file:///x", text: "b" }],
    });
    expect(reads(a)).toEqual([]);
  });

  it("are renamed where another end has, or has named, the same", async () => {
    const result = { content: [link("file:///x"), embedded("file:///listed")] };
    const a = shelf("a", { more: ["file:///x"], result });
    const b = shelf("b", { more: ["file:///x"], listed: ["file:///listed"], result });
    const caller = desk(merge({ a, b }));
    await caller.call("resources/list");
    expect((await caller.call("tools/call", { name: "links-of-a" }))["content"]).toEqual([
      link("file:///x"),
      embedded("a.file:///listed"),
    ]);
    const ofB = await caller.call("tools/call", { name: "links-of-b" });
    expect(ofB["content"]).toEqual([link("b.file:///x"), embedded("file:///listed")]);
    expect(await caller.call("resources/read", { uri: "b.file:///x" })).toEqual({
      contents: [{ uri: "b.file:///x", text: "b" }],
    });
    expect(await caller.call("resources/read", { uri: "file:///x" })).toMatchObject({ contents: [{ text: "a" }] });
  });

  it("are all renamed that are in no list, of an end that shares some", async () => {
    const result = { content: [link("file:///same"), link("file:///a"), link("file:///unlisted")] };
    const a = shelf("a", { listed: ["file:///same", "file:///a"], result });
    const caller = desk(merge({ a, b: shelf("b", { listed: ["file:///same"] }) }));
    await caller.call("resources/list");
    expect((await caller.call("tools/call", { name: "links-of-a" }))["content"]).toEqual([
      link("a.file:///same"),
      link("file:///a"),
      link("a.file:///unlisted"),
    ]);
  });

  it("are left alone, and not copied, where there is one end", async () => {
    const result = { content: [link("file:///x")] };
    const caller = desk(merge({ a: shelf("a", { result }) }));
    expect(await caller.call("tools/call", { name: "links-of-a" })).toBe(result);
  });
});

describe("real servers", () => {
  it("are read by template through one another's names", async () => {
    const make = (who: string): ReturnType<typeof createServer> =>
      createServer({ name: who, version: "1" })
        .template("notes://{id}", { name: "Notes" }, ({ id }) => `${who} ${id}`)
        .resource(`${who}://about`, { name: "About" }, () => who);
    const caller = desk(merge({ a: make("a"), b: make("b") }));
    expect((await caller.call("resources/templates/list"))["resourceTemplates"]).toMatchObject([
      { uriTemplate: "a.notes://{id}" },
      { uriTemplate: "b.notes://{id}" },
    ]);
    expect((await caller.call("resources/read", { uri: "b.notes://7" }))["contents"]).toEqual([
      { uri: "b.notes://7", text: "b 7" },
    ]);
    expect((await caller.call("resources/read", { uri: "a://about" }))["contents"]).toEqual([
      { uri: "a://about", text: "a" },
    ]);
  });

  it("are not held up by one that says nothing", async () => {
    vi.useFakeTimers();
    const hung = madeServer({ "server/discover": () => new Promise(() => undefined) });
    const a = shelf("a", { templates: ["notes://{id}"], more: ["notes://1"] });
    const answer = desk(merge({ hung, a })).call("resources/read", { uri: "notes://1" });
    await vi.advanceTimersByTimeAsync(1_000);
    expect((await answer)["contents"]).toEqual([{ uri: "notes://1", text: "a" }]);
    vi.useRealTimers();
  });
});

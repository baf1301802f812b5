// Addresses through the router: where they are read, how they are renamed in results, and that an address of one upstream
// is never read at another.

import { expect, it, vi } from "vitest";
import { ConnectionError } from "../../core/errors.ts";
import type { Params, Result } from "../../core/handler.ts";
import { invalidParams, McpError } from "../../protocol/errors.ts";
import { createServer } from "../../server/index.ts";
import { fakeClient } from "../../../test/support/handlers/fake-client.ts";
import { scriptedServer, toolList } from "../../../test/support/handlers/scripted-server.ts";
import { createRouter } from "./router.ts";

interface ServerContents {
  readonly listed?: readonly string[];
  /** Readable, but not listed. */
  readonly more?: readonly string[];
  readonly templates?: readonly string[];
  readonly result?: Result;
}

/** An upstream whose contents say who it is. */
function serverWith(
  who: string,
  { listed = [], more = [], templates = [], result }: ServerContents,
): ReturnType<typeof scriptedServer> {
  return scriptedServer({
    "resources/list": { resources: listed.map((uri) => ({ uri, name: uri })) },
    "resources/templates/list": { resourceTemplates: templates.map((uriTemplate) => ({ uriTemplate, name: "t" })) },
    "resources/read": ({ uri }: Params) => {
      if (![...listed, ...more].includes(uri as string)) {
        throw McpError.of("resource_not_found", `Resource not found: ${String(uri)}`, { uri });
      }
      return { contents: [{ uri, text: who }] };
    },
    "tools/list": toolList(`links-of-${who}`),
    "tools/call": result ?? { content: [] },
    "prompts/list": { prompts: [{ name: `prompt-of-${who}` }] },
    "prompts/get": { messages: [{ role: "user", content: (result?.["content"] as unknown[])?.[0] }] },
  });
}

const link = (uri: string): object => ({ type: "resource_link", uri, name: "l" });
const embedded = (uri: string): object => ({ type: "resource", resource: { uri, text: "t" } });
const reads = (upstream: ReturnType<typeof scriptedServer>): unknown[] =>
  upstream.requests.filter(({ method }) => method === "resources/read").map(({ params }) => params["uri"]);

it("reading goes to the upstream that lists the address, by its own name", async () => {
  const a = serverWith("a", { listed: ["file:///same", "file:///a"] });
  const b = serverWith("b", { listed: ["file:///same", "file:///b"] });
  const caller = fakeClient(createRouter({ a, b }));
  expect(await caller.call("resources/read", { uri: "file:///b" })).toEqual({
    contents: [{ uri: "file:///b", text: "b" }],
  });
  expect(await caller.call("resources/read", { uri: "b.file:///same" })).toEqual({
    contents: [{ uri: "b.file:///same", text: "b" }],
  });
  expect([reads(a), reads(b)]).toEqual([[], ["file:///b", "file:///same"]]);
  const error = await caller.callError("resources/read", { uri: "file:///same" });
  expect(error.data).toMatchObject({ candidates: ["a.file:///same", "b.file:///same"] });
});

it("reading passes a result unchanged if nothing is renamed", async () => {
  const result = { contents: [{ uri: "x:1", text: "t" }] };
  const a = scriptedServer({
    "resources/list": { resources: [{ uri: "x:1", name: "x" }] },
    "resources/read": result,
  });
  const caller = fakeClient(createRouter({ a, b: serverWith("b", {}) }));
  expect(await caller.call("resources/read", { uri: "x:1" })).toBe(result);
});

it("reading renames everything with `names: always`, also in errors", async () => {
  const a = serverWith("a", {
    listed: ["x:1"],
    result: { content: [link("x:2"), embedded("x:3"), { type: "text" }] },
  });
  const caller = fakeClient(createRouter({ a }, { names: "always" }));
  expect(await caller.call("resources/read", { uri: "a.x:1" })).toEqual({ contents: [{ uri: "a.x:1", text: "a" }] });
  expect((await caller.callError("resources/read", { uri: "a.x:9" })).data).toEqual({
    kind: "resource_not_found",
    uri: "a.x:9",
  });
  expect(await caller.call("tools/call", { name: "a_links-of-a" })).toEqual({
    content: [link("a.x:2"), embedded("a.x:3"), { type: "text" }],
  });
  expect(await caller.call("prompts/get", { name: "a_prompt-of-a" })).toEqual({
    messages: [{ role: "user", content: link("a.x:2") }],
  });
});

it("reading uses templates, and asks no other upstream", async () => {
  const a = serverWith("a", { templates: ["notes://{id}"], more: ["notes://1"] });
  const b = serverWith("b", { templates: ["days://{day}"], more: ["days://1"] });
  const caller = fakeClient(createRouter({ a, b }));
  expect(await caller.call("resources/read", { uri: "days://1" })).toEqual({
    contents: [{ uri: "days://1", text: "b" }],
  });
  await caller.call("resources/read", { uri: "days://1" });
  expect([reads(a), reads(b)]).toEqual([[], ["days://1", "days://1"]]);
  expect(b.requests.filter(({ method }) => method === "resources/templates/list")).toHaveLength(1);
});

it("reading tries the upstreams in order for an unlisted address, and remembers where it was", async () => {
  const a = serverWith("a", {});
  const b = serverWith("b", { more: ["odd:1"] });
  const caller = fakeClient(createRouter({ a, none: scriptedServer({}), b, c: serverWith("c", { more: ["odd:1"] }) }));
  for (const _time of [1, 2]) {
    expect(await caller.call("resources/read", { uri: "odd:1" })).toEqual({
      contents: [{ uri: "odd:1", text: "b" }],
    });
  }
  expect([reads(a), reads(b)]).toEqual([["odd:1"], ["odd:1", "odd:1"]]);
  expect((await caller.callError("resources/read", { uri: "odd:2" })).data).toEqual({
    kind: "resource_not_found",
    uri: "odd:2",
  });
});

it("reading recognizes many forms of 'not found', and no other error", async () => {
  const words = [
    invalidParams("Resource odd:1 not found"),
    new McpError(0, "Unknown resource: odd:1"),
    new McpError(-32603, "ENOENT: no such file or directory"),
    new McpError(-32601, "Method not found"),
  ];
  const upstreams = words.map((error) =>
    scriptedServer({
      "resources/list": { resources: [] },
      "resources/read": () => {
        throw error;
      },
    }),
  );
  const found = serverWith("found", { more: ["odd:1"] });
  const caller = fakeClient(createRouter({ ...Object.fromEntries(upstreams.entries()), found }));
  expect((await caller.call("resources/read", { uri: "odd:1" }))["contents"]).toEqual([
    { uri: "odd:1", text: "found" },
  ]);
  const locked = scriptedServer({
    "resources/list": { resources: [] },
    "resources/read": () => {
      throw McpError.of("access_denied", "You may not");
    },
  });
  expect(
    (await fakeClient(createRouter({ locked, found })).callError("resources/read", { uri: "odd:1" })).message,
  ).toBe("You may not");
});

it("reading skips an upstream that is unavailable, and reports it if no other has the address", async () => {
  const away = scriptedServer({
    "resources/list": { resources: [] },
    "resources/read": () => {
      throw new ConnectionError("closed", "gone");
    },
  });
  const caller = fakeClient(createRouter({ away, b: serverWith("b", { more: ["odd:1"] }) }));
  expect((await caller.call("resources/read", { uri: "odd:1" }))["contents"]).toEqual([{ uri: "odd:1", text: "b" }]);
  await expect(caller.call("resources/read", { uri: "odd:2" })).rejects.toThrow("The upstream away failed: gone");
});

it("reading sends a retry with requestState to the upstream that answered input_required", async () => {
  const b = scriptedServer({
    "resources/list": { resources: [] },
    "resources/read": ({ requestState }) =>
      requestState === "s" ? { contents: [] } : { resultType: "input_required", requestState: "s" },
  });
  const a = serverWith("a", {});
  const caller = fakeClient(createRouter({ a, b }));
  expect((await caller.call("resources/read", { uri: "odd:1" })).resultType).toBe("input_required");
  expect(await caller.call("resources/read", { uri: "odd:1", requestState: "s" })).toEqual({ contents: [] });
  expect(reads(a)).toEqual(["odd:1"]);
});

it("addresses in results lead back to the upstream that named them, listed or not", async () => {
  const a = serverWith("a", { more: ["file:///x"] });
  const b = serverWith("b", { more: ["file:///x"], result: { content: [link("file:///x")] } });
  const caller = fakeClient(createRouter({ a, b }));
  const { content } = await caller.call("tools/call", { name: "links-of-b" });
  expect(content).toEqual([link("file:///x")]);
  expect(await caller.call("resources/read", { uri: "file:///x" })).toEqual({
    contents: [{ uri: "file:///x", text: "b" }],
  });
  expect(reads(a)).toEqual([]);
});

it("addresses in results are renamed if another upstream has, or has named, the same", async () => {
  const result = { content: [link("file:///x"), embedded("file:///listed")] };
  const a = serverWith("a", { more: ["file:///x"], result });
  const b = serverWith("b", { more: ["file:///x"], listed: ["file:///listed"], result });
  const caller = fakeClient(createRouter({ a, b }));
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

it("addresses in results are renamed if they are unlisted and the upstream shares others", async () => {
  const result = { content: [link("file:///same"), link("file:///a"), link("file:///unlisted")] };
  const a = serverWith("a", { listed: ["file:///same", "file:///a"], result });
  const caller = fakeClient(createRouter({ a, b: serverWith("b", { listed: ["file:///same"] }) }));
  await caller.call("resources/list");
  expect((await caller.call("tools/call", { name: "links-of-a" }))["content"]).toEqual([
    link("a.file:///same"),
    link("file:///a"),
    link("a.file:///unlisted"),
  ]);
});

it("addresses in results are unchanged, and not copied, with one upstream", async () => {
  const result = { content: [link("file:///x")] };
  const caller = fakeClient(createRouter({ a: serverWith("a", { result }) }));
  expect(await caller.call("tools/call", { name: "links-of-a" })).toBe(result);
});

it("real servers are read by template with labels", async () => {
  const make = (who: string): ReturnType<typeof createServer> =>
    createServer({ name: who, version: "1" })
      .template("notes://{id}", { name: "Notes" }, ({ id }) => `${who} ${id}`)
      .resource(`${who}://about`, { name: "About" }, () => who);
  const caller = fakeClient(createRouter({ a: make("a"), b: make("b") }));
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

it("real servers do not wait for one that does not answer", async () => {
  vi.useFakeTimers();
  const hung = scriptedServer({ "server/discover": () => new Promise(() => undefined) });
  const a = serverWith("a", { templates: ["notes://{id}"], more: ["notes://1"] });
  const answer = fakeClient(createRouter({ hung, a })).call("resources/read", { uri: "notes://1" });
  await vi.advanceTimersByTimeAsync(1_000);
  expect((await answer)["contents"]).toEqual([{ uri: "notes://1", text: "a" }]);
  vi.useRealTimers();
});

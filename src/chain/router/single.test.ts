// One upstream behind a gateway: what it says passes unchanged, but for names that model APIs refuse.

import { expect, it } from "vitest";
import { callRequest, fakeClient, fakeContext } from "../../../test/support/handlers/fake-client.ts";
import { answerAs, scriptedServer, toolList } from "../../../test/support/handlers/scripted-server.ts";
import { connect } from "../../client/connect.ts";
import type { Handler, Result } from "../../core/handler.ts";
import { createServer } from "../../server/server.ts";
import { chain } from "../chain.ts";
import { filter } from "../transforms/filter.ts";
import { validName } from "./names.ts";

const namesOf = (result: Result, field = "tools"): string[] =>
  (result[field] as { name: string }[]).map(({ name }) => name);
const textOf = (result: Result): unknown => (result["content"] as { text: string }[])[0]?.text;
const HOSTILE = ["my tool!", "a.b", "ü", "", "x".repeat(64), "x".repeat(200), "evil\n\u001B[31m", "💥"];

it("a single upstream passes a result on as it is if its names are valid", async () => {
  const result = { tools: [{ name: "search" }, { name: "get-weather" }], nextCursor: "2" };
  const upstream = scriptedServer({ "tools/list": result, "tools/call": answerAs("it") });
  const caller = fakeClient(chain().to({ notes: upstream }));
  expect(await caller.call("tools/list")).toBe(result);
  const params = { name: "get-weather", arguments: {} };
  await caller.call("tools/call", params);
  expect(upstream.requests.at(-1)?.params).toBe(params);
  expect(upstream.requests.map(({ method }) => method)).toEqual(["tools/list", "tools/call"]);
});

it("a single upstream shows other names in a valid form, by which they can be called", async () => {
  const upstream = scriptedServer({
    "tools/list": toolList("search", ...HOSTILE),
    "tools/call": answerAs("it"),
    "prompts/list": { prompts: HOSTILE.map((name) => ({ name })) },
    "prompts/get": ({ name }) => ({ messages: [], name }),
    "completion/complete": ({ ref }) => ({ completion: { values: [(ref as { name: string }).name] } }),
  });
  const caller = fakeClient(chain().to(upstream, { onWarning: () => undefined }));
  const shown = namesOf(await caller.call("tools/list"));
  for (const name of shown) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,48}$/);
  expect(new Set(shown).size).toBe(HOSTILE.length + 1);
  const said = [];
  for (const name of shown) said.push(textOf(await caller.call("tools/call", { name })));
  expect(said).toEqual(["search", ...HOSTILE].map((name) => `it: ${name}`));
  const prompts = namesOf(await caller.call("prompts/list"), "prompts");
  for (const [at, name] of prompts.entries()) {
    expect(name).toMatch(/^[a-zA-Z0-9_-]{1,48}$/);
    expect(await caller.call("prompts/get", { name })).toMatchObject({ name: HOSTILE[at] });
    const ref = { type: "ref/prompt", name };
    const completed = await caller.call("completion/complete", { ref, argument: { name: "a", value: "" } });
    expect(completed).toEqual({ completion: { values: [HOSTILE[at]] } });
  }
});

it("a single upstream finds a changed name without a list of the caller, as after a restart", async () => {
  const upstream = scriptedServer({ "tools/list": toolList("my tool!"), "tools/call": answerAs("it") });
  const caller = fakeClient(chain().to(upstream));
  expect(textOf(await caller.call("tools/call", { name: validName("my tool!") }))).toBe("it: my tool!");
  // For names that only look changed, the list is not read again each time.
  for (let time = 0; time < 3; time += 1) {
    expect(textOf(await caller.call("tools/call", { name: "get-weather" }))).toBe("it: get-weather");
  }
  expect(upstream.requests.filter(({ method }) => method === "tools/list")).toHaveLength(1);
});

it("a single upstream does not accept the upstream's own name of an item that is shown with another", async () => {
  const upstream = scriptedServer({
    "tools/list": toolList("my tool!", "search"),
    "tools/call": answerAs("it"),
    "prompts/list": { prompts: [{ name: "my tool!" }] },
    "prompts/get": ({ name }) => ({ messages: [], name }),
  });
  const options = { rememberNames: `single.test.ts own ${process.pid}`, onWarning: () => undefined };
  const caller = fakeClient(chain().to({ notes: upstream }, options));
  const shown = validName("my tool!");
  for (const [method, kind] of [
    ["tools/call", "tool_not_found"],
    ["prompts/get", "prompt_not_found"],
  ] as const) {
    await expect(caller.call(method, { name: "my tool!" })).rejects.toMatchObject({
      kind,
      message: expect.stringContaining(`it is called ${shown} here`),
      data: { candidates: [shown] },
    });
  }
  // Only the upstream knows what to say about a name that it does not list.
  expect(textOf(await caller.call("tools/call", { name: "no such tool" }))).toBe("it: no such tool");
  // Also if it got its name beside another upstream.
  const remembered = { ...options, rememberNames: `${options.rememberNames} both` };
  const mail = scriptedServer({ "tools/list": toolList("search") });
  await fakeClient(chain().to({ mail, notes: upstream }, remembered)).call("tools/list");
  const alone = fakeClient(chain().to({ notes: upstream }, remembered));
  await expect(alone.call("tools/call", { name: "search" })).rejects.toThrow("it is called notes_search here");
  expect(textOf(await alone.call("tools/call", { name: "notes_search" }))).toBe("it: search");
  expect(upstream.requests.map(({ method }) => method)).not.toContain("prompts/get");
});

it("a single upstream does not accept the own name of an item that was added just now, in any method", async () => {
  const names = ["search"];
  const upstream = scriptedServer({
    "tools/list": () => toolList(...names),
    "tools/call": answerAs("it"),
    "tools/explain": answerAs("it"),
  });
  const options = { onWarning: () => undefined };
  const hidden = filter({ tools: { exclude: [validName("c.d")] } });
  const caller = fakeClient(chain(hidden).to(upstream, options));
  expect(textOf(await caller.call("tools/call", { name: "z.z" }))).toBe("it: z.z");
  names.push("c.d");
  for (const method of ["tools/call", "tools/explain"]) {
    for (const name of ["c.d", validName("c.d")]) {
      await expect(caller.call(method, { name })).rejects.toMatchObject({ kind: "tool_not_found" });
    }
  }
});

it("a single upstream does not tell a caller of names that only others see", async () => {
  const upstream = scriptedServer({ "tools/call": answerAs("it"), "tools/list": {} });
  const perCaller: Handler = (request, context) =>
    request.method === "tools/list"
      ? Promise.resolve(toolList(...(context.caller.principal === "admin" ? ["my tool!"] : []), "x"))
      : upstream(request, context);
  const gateway = chain().to({ notes: perCaller }, { onWarning: () => undefined });
  const [admin, bob] = ["admin", "bob"].map((principal) => fakeClient(gateway, { caller: { principal } }));
  for (let time = 0; time < 2; time += 1) {
    expect(textOf((await bob?.call("tools/call", { name: "my tool!" })) ?? {})).toBe("it: my tool!");
    await admin?.call("tools/list");
  }
  expect(await admin?.callError("tools/call", { name: "my tool!" })).toMatchObject({ kind: "tool_not_found" });
});

it("a single upstream lets the upstream not say that it is another one, or that its items have other names", async () => {
  const spoofed = { "catenary/upstream": "mail", "catenary/names": ["safe"], other: 1 };
  const upstream = scriptedServer({ "tools/list": { tools: [{ name: "a", _meta: spoofed }, { name: "b" }] } });
  const { tools } = await fakeClient(chain().to({ notes: upstream })).call("tools/list");
  expect(tools).toEqual([{ name: "a", _meta: { "catenary/names": ["a", "safe"], other: 1 } }, { name: "b" }]);
});

it("a single upstream prefers the item whose own name is the valid form of another", async () => {
  const literal = validName("my tool!");
  const upstream = scriptedServer({ "tools/list": toolList("my tool!", literal), "tools/call": answerAs("it") });
  const caller = fakeClient(chain().to(upstream, { onWarning: () => undefined }));
  expect(namesOf(await caller.call("tools/list"))).toEqual([literal]);
  expect(textOf(await caller.call("tools/call", { name: literal }))).toBe(`it: ${literal}`);
});

it("a single upstream warns once of names that had to be changed", async () => {
  const warnings: string[] = [];
  const onWarning = (upstream: string, message: string): void => void warnings.push(`${upstream}: ${message}`);
  const upstream = scriptedServer({ "tools/list": toolList("ok", "my tool!", "x".repeat(60)) });
  const two = { notes: upstream, mail: scriptedServer({ "tools/list": toolList("a b", "c d") }) };
  for (const gateway of [chain().to({ notes: upstream }, { onWarning }), chain().to(two, { onWarning })]) {
    for (const principal of ["ada", "bob", "ada"]) {
      await fakeClient(gateway, { caller: { principal } }).call("tools/list");
    }
  }
  const refused = "that model APIs refuse (allowed: 1 to 64 letters, digits, _ and -); shown instead";
  expect(warnings).toEqual([
    `notes: 1 tool has a name ${refused}: "my tool!" as ${validName("my tool!")}`,
    `notes: 1 tool has a name ${refused}: "my tool!" as ${validName("my tool!")}`,
    `mail: 2 tools have names ${refused}: "a b" as ${validName("a b")}, "c d" as ${validName("c d")}`,
  ]);
});

it("a single upstream keeps its names when another upstream is added in the same process", async () => {
  const server = (): ReturnType<typeof scriptedServer> =>
    scriptedServer({ "tools/list": toolList("search", "my tool!"), "tools/call": answerAs("it") });
  const options = { rememberNames: `single.test.ts ${process.pid}`, onWarning: () => undefined };
  const one = chain().to({ notes: server() }, options);
  const before = namesOf(await fakeClient(one).call("tools/list"));
  await one.close();
  const two = chain().to({ mail: server(), notes: server() }, options);
  const after = namesOf(await fakeClient(two).call("tools/list"));
  expect(before).toEqual(["search", validName("my tool!")]);
  expect(after).toEqual(["mail_search", expect.stringMatching(/^mail_my_tool_-/), ...before]);
  await two.close();
  // And when the first one is removed again.
  const mail = fakeClient(chain().to({ mail: server() }, options));
  expect(namesOf(await mail.call("tools/list"))).toEqual(after.slice(0, 2));
  expect(textOf(await mail.call("tools/call", { name: "mail_search" }))).toBe("it: search");
});

const server = () => createServer({ name: "s", version: "1" }).tool("search", {}, () => "found");

it("the options of names set the prefix of single upstreams", async () => {
  const gateway = chain().to(
    { notes: server(), mail: server(), web: createServer({ name: "w", version: "1" }).tool("fetch", {}, () => "") },
    { upstreams: { mail: { prefix: "m" }, web: { names: "always" } } },
  );
  const client = await connect(gateway);
  const names = (await client.listTools()).tools.map(({ name }) => name);
  expect(names).toEqual(["notes_search", "m_search", "web_fetch"]);
  expect((await client.callTool("m_search")).content).toMatchObject([{ text: "found" }]);
  await client.close();
  await gateway.close();
});

it("the options of names apply to a single upstream too", async () => {
  const gateway = chain().to({ notes: server() }, { upstreams: { notes: { names: "always", prefix: "n" } } });
  expect(namesOf(await gateway({ method: "tools/list", params: {} }, fakeContext().context))).toEqual(["n_search"]);
  expect(textOf(await gateway(callRequest("n_search"), fakeContext().context))).toBe("found");
  await gateway.close();
});

it.each([
  [{ names: "never" }, '`names` must be "when-needed" or "always", not "never"'],
  [{ upstreams: { note: {} } }, "no option `upstreams.note`; did you mean `notes`?"],
  [{ upstreams: { notes: { prefx: "a" } } }, "no option `upstreams.notes.prefx`; did you mean `prefix`?"],
  [{ upstreams: { notes: { names: 1 } } }, '`upstreams.notes.names` must be "when-needed" or "always"'],
  [{ upstreams: { notes: { prefix: "a.b" } } }, "`upstreams.notes.prefix` must have 1 to 24 letters, digits, _ and -"],
  [{ upstreams: { notes: { prefix: "a" }, mail: { prefix: "a" } } }, "notes and mail have the same `prefix`"],
  [{ rememberNames: 1 }, "`rememberNames` must be a string, not a number"],
  [{ onWarning: "x" }, "`onWarning` must be a function, not a string"],
])("the options of names are checked: %j", (options, message) => {
  expect(() => chain().to({ notes: server(), mail: server() }, options as never)).toThrow(message);
});

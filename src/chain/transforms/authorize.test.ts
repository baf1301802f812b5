// One decision for lists and calls, by caller.

import { expect, it } from "vitest";
import { fakeClient } from "../../../test/support/handlers/fake-client.ts";
import { scriptedServer } from "../../../test/support/handlers/scripted-server.ts";
import type { Caller, Handler } from "../../core/handler.ts";
import { createServer } from "../../server/server.ts";
import { chain } from "../chain.ts";
import { authorize, type AuthorizeOptions } from "./authorize.ts";

const notes = () =>
  createServer({ name: "notes", version: "1" })
    .tool("read", {}, () => "read")
    .tool("delete", {}, () => "deleted")
    .prompt("review", { arguments: { what: { complete: () => ["this"] } } }, () => "review")
    .resource("note://open/1", { name: "one" }, () => "1")
    .resource("note://shut/2", { name: "two" }, () => "2")
    .template("note://shut/{id}", { name: "shut" }, ({ id }) => id);

const ADA = { principal: "ada", scopes: ["notes"], headers: {} };
const BOB = { principal: "bob", scopes: [], headers: {} };

/** What a caller sees in lists, and what it can use. Both must be the same. */
async function allowed(handler: Handler, caller: Partial<Caller> = {}): Promise<string[]> {
  const client = fakeClient(handler, { caller });
  const listed: string[] = [];
  for (const [method, field, key] of [
    ["tools/list", "tools", "name"],
    ["prompts/list", "prompts", "name"],
    ["resources/list", "resources", "uri"],
    ["resources/templates/list", "resourceTemplates", "uriTemplate"],
  ] as const) {
    const result = await client.call(method);
    listed.push(...(result[field] as Record<string, string>[]).map((item) => item[key]!));
  }
  for (const name of ["read", "delete"]) {
    const outcome = await client.call("tools/call", { name }).then(
      () => undefined,
      (error: unknown) => error,
    );
    if (listed.includes(name)) expect(outcome).toBeUndefined();
    else expect(outcome).toMatchObject({ kind: "tool_not_found" });
  }
  return listed;
}

const EVERYTHING = ["read", "delete", "review", "note://open/1", "note://shut/2", "note://shut/{id}"];

it("lets the first matching rule decide, by caller, scope and name", async () => {
  const gateway = chain(
    authorize({
      rules: [
        { allow: false, tools: ["delete"], callers: ["bob"] },
        { callers: ["a*"], scopes: ["notes"] },
        { callers: ["bob"], tools: ["*"], resources: ["note://open/*"] },
      ],
    }),
  ).to(notes());
  expect(await allowed(gateway, ADA)).toEqual(EVERYTHING);
  expect(await allowed(gateway, { ...ADA, scopes: [] })).toEqual([]);
  expect(await allowed(gateway, BOB)).toEqual(["read", "note://open/1"]);
  expect(await allowed(gateway, { principal: "eve" })).toEqual([]);
  expect(await allowed(gateway)).toEqual([]);
});

it("denies what no rule matches, or allows it", async () => {
  const rules = [{ allow: false, tools: ["delete"] }];
  expect(await allowed(chain(authorize({ rules: [] })).to(notes()), ADA)).toEqual([]);
  expect(await allowed(chain(authorize({ rules, default: "allow" })).to(notes()), ADA)).toEqual(
    EVERYTHING.filter((name) => name !== "delete"),
  );
});

it("matches a caller without an identity by no name, and by scopes only if it is not from the network", async () => {
  const of = (rule: object) => chain(authorize({ rules: [rule] })).to(notes());
  expect(await allowed(of({ callers: ["*"] }))).toEqual([]);
  expect(await allowed(of({ scopes: ["notes"] }))).toEqual(EVERYTHING);
  expect(await allowed(of({ scopes: ["notes"] }), { headers: {} })).toEqual([]);
  const denied = chain(authorize({ rules: [{ allow: false, scopes: ["guest"] }], default: "allow" })).to(notes());
  expect(await allowed(denied)).toEqual(EVERYTHING);
  expect(await allowed(denied, { ...BOB, scopes: ["guest"] })).toEqual([]);
});

it("refuses an item under all its names at the upstreams", async () => {
  const mine = authorize({ rules: [{ allow: false, tools: ["delete"] }], default: "allow" });
  const gateway = chain(mine).to({ a: notes(), b: notes() });
  const client = fakeClient(gateway, { caller: ADA });
  const { tools } = await client.call("tools/list");
  expect((tools as { name: string }[]).map(({ name }) => name)).toEqual(["a_read", "b_read"]);
  for (const name of ["delete", "a_delete", "b_delete"]) {
    expect(await client.callError("tools/call", { name })).toMatchObject({ kind: "tool_not_found" });
  }
  await client.call("tools/call", { name: "a_read" });
  await gateway.close();
});

it("asks a function about what no rule matches, once for each item of a list", async () => {
  const asked: string[] = [];
  const options: AuthorizeOptions = {
    rules: [{ tools: ["read"] }],
    decide: async ({ principal }, { kind, name }) => {
      asked.push(`${kind} ${name}`);
      return principal === "ada" || name === "note://open/1";
    },
  };
  const gateway = chain(authorize(options)).to(notes());
  expect(await allowed(gateway, ADA)).toEqual(EVERYTHING);
  expect(asked).toEqual([
    "tool delete",
    "prompt review",
    "resource note://open/1",
    "resource note://shut/2",
    "resource note://shut/{id}",
    "tool delete",
  ]);
  expect(await allowed(gateway, BOB)).toEqual(["read", "note://open/1"]);
  const failing = chain(authorize({ decide: () => Promise.reject(new Error("no database")) })).to(notes());
  const error = await fakeClient(failing).callError("tools/list");
  expect(error.message).toBe("The middleware authorize failed: no database");
});

it("counts for completions and subscriptions", async () => {
  for (const options of [
    { rules: [{ resources: ["note://open/*"] }] },
    { decide: async (_caller, { name }) => name.startsWith("note://open/") },
    { decide: (_caller, { name }) => name.startsWith("note://open/") },
  ] satisfies AuthorizeOptions[]) {
    const updated: Handler = async ({ params }, { notify }) => {
      expect(params["notifications"]).toEqual({ resourceSubscriptions: ["note://open/1"] });
      for (const uri of ["note://open/1", "note://shut/2"]) {
        notify({ method: "notifications/resources/updated", params: { uri } });
      }
      return {};
    };
    const client = fakeClient(chain(authorize(options)).to(updated));
    const resourceSubscriptions = ["note://open/1", "note://shut/2"];
    await client.call("subscriptions/listen", { notifications: { resourceSubscriptions } });
    await expect.poll(() => client.notifications.map(({ params }) => params?.["uri"])).toEqual(["note://open/1"]);
    const error = await client.callError("completion/complete", {
      ref: { type: "ref/prompt", name: "review" },
      argument: { name: "what", value: "" },
    });
    expect(error.message).toBe("There is no prompt review to complete");
  }
});

it("says what was refused, and which scopes are needed, if it may", async () => {
  const rules = [{ callers: ["bob"], scopes: ["write", "delete"], tools: ["delete"] }];
  const gateway = chain(authorize({ rules, tell: true })).to(notes());
  const refused = (caller: object, name: string) => fakeClient(gateway, { caller }).callError("tools/call", { name });
  expect(await refused(BOB, "delete")).toMatchObject({
    kind: "access_denied",
    message: "The tool delete needs the scopes write, delete",
    data: { requiredScopes: ["write", "delete"] },
  });
  for (const [caller, name] of [
    [ADA, "delete"],
    [BOB, "read"],
    [BOB, "not-there"],
  ] as const) {
    expect(await refused(caller, name)).toMatchObject({
      message: `The tool ${name} is not allowed for this caller`,
      data: { kind: "access_denied", middlewareName: "authorize" },
    });
  }
  expect(await allowed(chain(authorize({ rules })).to(notes()), { ...BOB, scopes: ["write", "delete"] })).toEqual([
    "delete",
  ]);
});

it("lets no cache share what depends on the caller", async () => {
  const cached = { cacheScope: "public", ttlMs: 60_000 };
  const upstream = scriptedServer({
    "tools/list": { tools: [], ...cached },
    "resources/read": { contents: [], ...cached },
  });
  const scopeOf = async (options: AuthorizeOptions, method: string): Promise<unknown> =>
    (await fakeClient(authorizedBy(options)).call(method, { uri: "note://1" }))["cacheScope"];
  const authorizedBy =
    (options: AuthorizeOptions): Handler =>
    (request, context) =>
      authorize(options)(request, context, upstream);
  for (const method of ["tools/list", "resources/read"]) {
    expect(await scopeOf({ rules: [{ callers: ["ada"] }, {}] }, method)).toBe("private");
    expect(await scopeOf({ decide: () => true }, method)).toBe("private");
    expect(await scopeOf({ rules: [{}] }, method)).toBe("public");
  }
});

it("denies a file whatever the case of its name", async () => {
  const server = createServer({ name: "files", version: "1" }).template("file:///{+path}", { name: "f" }, () => "x");
  const rules = [{ allow: false, resources: ["file:///Secret/*"] }];
  const client = fakeClient(chain(authorize({ rules, default: "allow" })).to(server));
  for (const uri of ["file:///Secret/a", "file:///secret/a"]) {
    await expect(client.call("resources/read", { uri })).rejects.toMatchObject({ kind: "resource_not_found" });
  }
  await client.call("resources/read", { uri: "file:///open/a" });
});

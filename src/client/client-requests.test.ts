// Requests from the server: declared capabilities, answers, and errors.

import { afterEach, describe, expect, it } from "vitest";
import { sampleServer } from "../../test/support/handlers/sample-server.ts";
import type { Params, Result } from "../core/handler.ts";
import { McpError } from "../protocol/errors.ts";
import { REVISIONS } from "../protocol/revisions/index.ts";
import { connectInMemory } from "../testing.ts";
import { ClientRequests, userRejected, type ClientRequestHandlers } from "./client-requests.ts";
import { connect } from "./connect.ts";

const { signal } = new AbortController();

const answer = (handlers: ClientRequestHandlers, method: string, params: Params = {}): Promise<Result> =>
  new ClientRequests(handlers).answer({ method, params }, signal);

const properties = {
  name: { type: "string", default: "John Doe" },
  age: { type: "integer", default: 30 },
  score: { type: "number", default: 95.5 },
  status: { type: "string", enum: ["on", "off"], default: "on" },
  verified: { type: "boolean", default: true },
  tags: { type: "array", items: { type: "string", enum: ["a", "b"] }, default: ["a"] },
  free: { type: "string" },
};
const form = { message: "Who?", requestedSchema: { type: "object", properties, required: ["name"] } };
const FILLED = { name: "John Doe", age: 30, score: 95.5, status: "on", verified: true, tags: ["a"] };

const SAMPLING = { messages: [], maxTokens: 5 };

it("the declared capabilities follow from the handlers", () => {
  const sample = (): never => {
    throw userRejected();
  };
  const cancel = () => ({ action: "cancel" }) as const;
  expect(new ClientRequests({}).capabilities).toEqual({});
  expect(new ClientRequests({ elicit: {} }).capabilities).toEqual({});
  expect(new ClientRequests({ sample, roots: [], elicit: cancel }).capabilities).toEqual({
    sampling: {},
    roots: {},
    elicitation: { form: {} },
  });
  expect(new ClientRequests({ elicit: { url: cancel } }).capabilities).toEqual({ elicitation: { url: {} } });
  expect(new ClientRequests({ elicit: { form: cancel, url: cancel } }).capabilities).toEqual({
    elicitation: { form: {}, url: {} },
  });
  expect(
    new ClientRequests({ sample, capabilities: { sampling: { tools: {} }, extensions: { "x/y": {} } } }).capabilities,
  ).toEqual({
    sampling: { tools: {} },
    extensions: { "x/y": {} },
  });
});

it("the declared capabilities limit what the server may request", async () => {
  const missing = { name: "McpError", kind: "missing_capability" };
  for (const method of ["roots/list", "sampling/createMessage", "elicitation/create"]) {
    await expect(answer({}, method, form)).rejects.toMatchObject(missing);
  }
  const accept = () => ({ action: "accept" }) as const;
  await expect(
    answer({ elicit: accept }, "elicitation/create", { mode: "url", message: "", url: "https://a.example" }),
  ).rejects.toMatchObject(missing);
  await expect(answer({ elicit: { url: accept } }, "elicitation/create", form)).rejects.toMatchObject(missing);
  const sample = () => ({ role: "assistant", content: { type: "text", text: "" }, model: "m" }) as const;
  await expect(answer({ sample }, "sampling/createMessage", { tools: [] })).rejects.toMatchObject(missing);
  await expect(answer({ sample }, "tools/call")).rejects.toMatchObject({ kind: "method_not_found" });
  // Declared without a handler.
  await expect(answer({ capabilities: { roots: {} } }, "roots/list")).rejects.toMatchObject(missing);
});

it("a form is completed with its defaults if it is accepted", async () => {
  expect(await answer({ elicit: () => ({ action: "accept" }) }, "elicitation/create", form)).toEqual({
    action: "accept",
    content: FILLED,
  });
  const given = { action: "accept", content: { name: "Ada", verified: false, free: "x", other: 1 } } as const;
  expect(await answer({ elicit: async () => given }, "elicitation/create", form)).toEqual({
    action: "accept",
    content: { ...FILLED, name: "Ada", verified: false, free: "x", other: 1 },
  });
  for (const action of ["decline", "cancel"] as const) {
    expect(await answer({ elicit: () => ({ action, content: { name: "Ada" } }) }, "elicitation/create", form)).toEqual({
      action,
    });
  }
});

it("a form is checked before it is sent", async () => {
  const accept = (content: unknown): Promise<Result> =>
    answer({ elicit: () => ({ action: "accept", content }) as never }, "elicitation/create", form);
  await expect(accept({ age: 1.5 })).rejects.toThrow("`age` must be of type integer");
  await expect(accept({ score: "high" })).rejects.toThrow("`score` must be of type number");
  await expect(accept({ tags: ["a", 1] })).rejects.toThrow("`tags` must be of type array");
  await expect(accept({ name: 1 })).rejects.toMatchObject({ kind: "internal_error" });
  await expect(accept(["a"])).rejects.toThrow("object");
  const bare = {
    message: "",
    requestedSchema: { type: "object", properties: { free: { type: "string" } }, required: ["free", "constructor"] },
  };
  await expect(answer({ elicit: () => ({ action: "accept" }) }, "elicitation/create", bare)).rejects.toThrow(
    "`free` is missing",
  );
  const content = { free: "" };
  await expect(answer({ elicit: () => ({ action: "accept", content }) }, "elicitation/create", bare)).rejects.toThrow(
    "`constructor` is missing",
  );
  for (const bad of [undefined, "accept", {}, { action: "yes" }]) {
    await expect(answer({ elicit: () => bad as never }, "elicitation/create", form)).rejects.toThrow(
      "accept, decline or cancel",
    );
  }
});

it("a form may contain any names, even those of inherited properties", async () => {
  const hostile = JSON.parse(
    '{"__proto__": {"type": "string", "default": "x"}, "a": null, "b": {"type": "toString"}}',
  ) as object;
  const accept = (requestedSchema: unknown): Promise<Result> =>
    answer({ elicit: () => ({ action: "accept", content: { b: "1" } }) }, "elicitation/create", {
      message: "",
      requestedSchema,
    });
  const result = await accept({ type: "object", properties: hostile });
  expect(Object.keys(result["content"] as object)).toEqual(["b", "__proto__"]);
  expect(await accept({ properties: [] })).toEqual({ action: "accept", content: { b: "1" } });
  for (const schema of [undefined, null, 1, []]) {
    await expect(accept(schema)).rejects.toMatchObject({
      code: -32602,
      message: expect.stringContaining("requestedSchema") as string,
    });
  }
});

it("a URL is opened only if it is http or https", async () => {
  const elicit = { url: () => ({ action: "accept", content: { a: "b" } }) as const };
  const open = (url: unknown): Promise<Result> =>
    answer({ elicit }, "elicitation/create", { mode: "url", message: "", url });
  expect(await open("https://a.example/x")).toEqual({ action: "accept" });
  expect(await open("HTTP://127.0.0.1/x")).toEqual({ action: "accept" });
  for (const url of ["vbscript:x", "file:///etc/passwd", "data:,x", " https://a.example", "", undefined]) {
    await expect(open(url)).rejects.toMatchObject({ kind: "invalid_params" });
  }
});

it("sampling and roots: answer, or fail with an error that the server can distinguish", async () => {
  const message = { role: "assistant", content: { type: "text", text: "hm" }, model: "m" } as const;
  expect(await answer({ sample: async () => message }, "sampling/createMessage", SAMPLING)).toEqual(message);
  const failing = (error: unknown): ClientRequestHandlers => ({
    sample: () => {
      throw error;
    },
  });
  await expect(answer(failing(userRejected()), "sampling/createMessage", SAMPLING)).rejects.toMatchObject({
    code: -1,
    kind: "user_rejected",
  });
  await expect(answer(failing(new McpError(7, "own")), "sampling/createMessage", SAMPLING)).rejects.toMatchObject({
    code: 7,
  });
  const cause = new Error("no model");
  await expect(answer(failing(cause), "sampling/createMessage", SAMPLING)).rejects.toMatchObject({
    kind: "internal_error",
    cause,
  });
  await expect(answer({ sample: () => ({ model: "m" }) as never }, "sampling/createMessage", SAMPLING)).rejects.toThrow(
    "`content`",
  );
  const roots = [{ uri: "file:///a" }];
  expect(await answer({ roots }, "roots/list")).toEqual({ roots });
  expect(await answer({ roots: async () => roots }, "roots/list")).toEqual({ roots });
  await expect(answer({ roots: () => "x" as never }, "roots/list")).rejects.toThrow("array of roots");
});

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
});

describe.each([undefined, ...REVISIONS.map(({ name }) => name)])("a request during a call, in %s", (name) => {
  const revision = REVISIONS.find((known) => known.name === name);
  const handlers: ClientRequestHandlers = {
    roots: [{ uri: "file:///a" }],
    sample: ({ maxTokens }) => ({ role: "assistant", content: { type: "text", text: `${maxTokens}` }, model: "m" }),
    elicit: ({ message }) => ({ action: "accept", content: { free: message } }),
  };

  it("a request during a call is answered if the revision has it", async () => {
    const there = sampleServer();
    const joined =
      name === undefined
        ? await connect(there.handler, handlers).then((client) => ({ client, close: () => client.close() }))
        : await connectInMemory(there.handler, { ...handlers, revision: name });
    closers.push(() => joined.close());
    const ask = async (method: string, params: Params): Promise<unknown> => {
      const { content } = await joined.client.callTool("ask", { method, params });
      return JSON.parse((content[0] as { text: string }).text);
    };
    const message = { role: "user", content: { type: "text", text: "?" } };
    expect(await ask("sampling/createMessage", { messages: [message], maxTokens: 5 })).toEqual({
      role: "assistant",
      content: { type: "text", text: "5" },
      model: "m",
    });
    expect(await ask("roots/list", {})).toEqual({ roots: [{ uri: "file:///a" }] });
    const elicited = ask("elicitation/create", { message: "hey", requestedSchema: { type: "object", properties: {} } });
    if (revision === undefined || revision.clientRequests.has("elicitation/create")) {
      expect(await elicited).toEqual({ action: "accept", content: { free: "hey" } });
    } else {
      await expect(elicited).rejects.toMatchObject({ name: "McpError", kind: "missing_capability" });
    }
  });
});

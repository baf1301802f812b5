// Examples of what older revisions cannot express: content types, titles, forms and sampling, when lowered. Methods,
// errors and the conversion between session and stateless style are in revisions.test.ts.

import { describe, expect, it } from "vitest";
import { McpError } from "../errors.ts";
import type { Json, Revision } from "../revision.ts";
import { REVISIONS } from "./index.ts";

const [R1, R2, R3, R4] = REVISIONS as unknown as [Revision, Revision, Revision, Revision];
const icons = [{ src: "https://a.example/i.png" }];

function refusal(action: () => unknown): { kind: string | undefined; data: Json } {
  try {
    action();
  } catch (error) {
    if (error instanceof McpError) return { kind: error.kind, data: error.data as Json };
    throw error;
  }
  throw new Error("Nothing was refused");
}

const called = (revision: Revision, ...content: Json[]): unknown =>
  revision.lower.result("tools/call", { content }).content;

const link = {
  type: "resource_link",
  uri: "a:b",
  name: "notes",
  icons,
  annotations: { priority: 1, lastModified: "x" },
};

it("lowered content: a resource link keeps its icons, loses them, then becomes text with its URI", () => {
  expect(called(R4, link)).toEqual([link]);
  const { icons: _, ...plain } = link;
  expect(called(R3, link)).toEqual([plain]);
  expect(called(R2, link)).toEqual([{ type: "text", text: "notes: a:b", annotations: { priority: 1 } }]);
});

it("lowered content: audio becomes an embedded resource in the first revision", () => {
  const audio = { type: "audio", data: "AAAA", mimeType: "audio/wav", annotations: { priority: 1 } };
  expect(called(R2, audio)).toEqual([audio]);
  const resource = { uri: "urn:catenary:audio", mimeType: "audio/wav", blob: "AAAA" };
  const embedded = { type: "resource", resource, annotations: { priority: 1 } };
  expect(called(R1, audio)).toEqual([embedded]);
  const prompt = { messages: [{ role: "user", content: audio }] };
  expect(R1.lower.result("prompts/get", prompt)).toEqual({ messages: [{ role: "user", content: embedded }] });
});

it("lowered content: annotations with nothing but lastModified are dropped", () => {
  const block = { type: "text", text: "a", annotations: { lastModified: "x" } };
  expect(called(R3, block)).toEqual([block]);
  expect(called(R2, block)).toEqual([{ type: "text", text: "a" }]);
});

it("lowered content: structured content alone becomes text if it is not supported", () => {
  const result = { content: [], structuredContent: { a: 1 } };
  expect(R2.lower.result("tools/call", result)).toEqual({ content: [{ type: "text", text: '{"a":1}' }] });
});

it("lowered lists tools lose icons and execution, then title and output schema, then annotations", () => {
  const plain = { name: "a", inputSchema: { type: "object" }, _meta: { kept: 1 } };
  const tool = { ...plain, title: "A", icons, execution: {}, outputSchema: { type: "object" } };
  const listed = (revision: Revision): unknown => revision.lower.result("tools/list", { tools: [tool] });
  expect(listed(R3)).toEqual({ tools: [{ ...plain, title: "A", outputSchema: { type: "object" } }] });
  expect(listed(R2)).toEqual({ tools: [{ ...plain, annotations: { title: "A" } }] });
  expect(listed(R1)).toEqual({ tools: [plain] });
});

it("lowered lists: a tool's title does not replace that of its annotations", () => {
  const tool = { name: "a", title: "A", annotations: { title: "B", readOnlyHint: true } };
  const { tools } = R2.lower.result("tools/list", { tools: [tool] });
  expect(tools).toEqual([{ name: "a", annotations: { title: "B", readOnlyHint: true } }]);
});

it("lowered lists: prompts, resources, templates and implementations lose icons and titles", () => {
  const item = { name: "a", title: "A", icons };
  const prompt = { ...item, arguments: [{ name: "x", title: "X" }] };
  expect(R3.lower.result("prompts/list", { prompts: [prompt] })).toEqual({
    prompts: [{ name: "a", title: "A", arguments: [{ name: "x", title: "X" }] }],
  });
  expect(R2.lower.result("prompts/list", { prompts: [prompt] })).toEqual({
    prompts: [{ name: "a", arguments: [{ name: "x" }] }],
  });
  expect(R2.lower.result("resources/list", { resources: [item] })).toEqual({ resources: [{ name: "a" }] });
  expect(R2.lower.result("resources/templates/list", { resourceTemplates: [item] })).toEqual({
    resourceTemplates: [{ name: "a" }],
  });
  const implementation = { ...item, version: "1", description: "d", websiteUrl: "u" };
  expect(R3.lower.implementation(implementation)).toEqual({ name: "a", title: "A", version: "1" });
  expect(R2.lower.implementation(implementation)).toEqual({ name: "a", version: "1" });
});

it("lowered lists: completion loses its context and the title of its reference", () => {
  const params = { ref: { type: "ref/prompt", name: "a", title: "A" }, argument: {}, context: { arguments: {} } };
  expect(R3.lower.request("completion/complete", params)).toBe(params);
  const lowered = { ref: { type: "ref/prompt", name: "a" }, argument: {} };
  expect(R2.lower.request("completion/complete", params)).toEqual(lowered);
});

it("lowered lists: progress loses its message in the first revision", () => {
  const progress = { method: "notifications/progress", params: { progressToken: 1, progress: 2, message: "m" } };
  expect(R2.lower.notification(progress)).toBe(progress);
  expect(R1.lower.notification(progress)?.params).toEqual({ progressToken: 1, progress: 2 });
});

const form = (properties: Json): Json => ({
  mode: "form",
  message: "m",
  requestedSchema: { type: "object", properties },
});
const lower = (properties: Json): unknown => {
  const { requestedSchema, mode } = R3.lower.request("elicitation/create", form(properties));
  expect(mode).toBeUndefined();
  return (requestedSchema as Json).properties;
};

it("lowered forms lose defaults that are not supported", () => {
  expect(lower({ a: { type: "string", default: "x" } })).toEqual({ a: { type: "string" } });
  expect(lower({ a: { type: "integer", default: 1 } })).toEqual({ a: { type: "integer" } });
  expect(lower({ a: { type: "boolean", default: true } })).toEqual({ a: { type: "boolean", default: true } });
  expect(lower({ a: { type: "string", enum: ["x"], default: "x" } })).toEqual({ a: { type: "string", enum: ["x"] } });
});

it("lowered forms write titled choices as enum and enumNames", () => {
  const oneOf = [
    { const: "r", title: "Red" },
    { const: "g", title: "Green" },
  ];
  expect(lower({ a: { type: "string", oneOf, default: "r" } })).toEqual({
    a: { type: "string", enum: ["r", "g"], enumNames: ["Red", "Green"] },
  });
});

it("lowered forms: a field may have any name", () => {
  const properties = JSON.parse('{"__proto__":{"type":"string","default":"x"}}') as Json;
  const lowered = lower(properties) as Json;
  expect(Object.keys(lowered)).toEqual(["__proto__"]);
  expect(JSON.stringify(lowered)).toBe('{"__proto__":{"type":"string"}}');
});

it("lowered forms refuse multiple choice, URLs and results with several values", () => {
  const several = form({ a: { type: "array", items: { type: "string", enum: ["x"] } } });
  expect(refusal(() => R3.lower.request("elicitation/create", several)).kind).toBe("missing_capability");
  const url = refusal(() => R3.lower.request("elicitation/create", { mode: "url", message: "m", url: "a:b" }));
  expect(url.data.requiredCapabilities).toEqual({ elicitation: { url: {} } });
  const answer = { action: "accept", content: { a: ["x"] } };
  expect(refusal(() => R3.lower.result("elicitation/create", answer)).kind).toBe("internal_error");
});

it("lowered forms are lifted with the mode form", () => {
  const { mode: _, ...old } = form({});
  expect(R3.lift.request("elicitation/create", old)).toEqual(form({}));
});

it("lowered forms are the meaning of the capability elicitation, if the client supports them", () => {
  const lowered = (elicitation: Json): Json => R3.lower.clientCapabilities({ elicitation });
  expect(lowered({ form: {}, url: {} })).toEqual({ elicitation: {} });
  expect(lowered({})).toEqual({ elicitation: {} });
  expect(lowered({ url: {} })).toEqual({});
  expect(R2.lower.clientCapabilities({ elicitation: {}, sampling: {} })).toEqual({ sampling: {} });
  expect(R3.lower.clientCapabilities({ sampling: { tools: {}, context: {} } })).toEqual({ sampling: {} });
});

describe("lowered sampling", () => {
  const ask = (content: unknown, more?: Json): Json => ({
    messages: [{ role: "user", content }],
    maxTokens: 1,
    ...more,
  });
  const text = { type: "text", text: "a" };
  const lower = (revision: Revision, params: Json): Json => revision.lower.request("sampling/createMessage", params);

  it("lowered sampling: an array of one block becomes that block", () => {
    expect(lower(R4, ask([text]))).toEqual(ask([text]));
    expect(lower(R3, ask([text]))).toEqual(ask(text));
    const answer = { role: "assistant", model: "m", content: [text] };
    expect(R3.lower.result("sampling/createMessage", answer)).toEqual({ ...answer, content: text });
  });

  it("lowered sampling: several blocks, tools and tool use are refused", () => {
    const use = { type: "tool_use", id: "1", name: "a", input: {} };
    for (const params of [ask([text, text]), ask([]), ask(use), ask(text, { tools: [{ name: "a" }] })]) {
      const { kind, data } = refusal(() => lower(R3, params));
      expect(kind).toBe("missing_capability");
      expect(data.requiredCapabilities).toEqual({ sampling: { tools: {} } });
    }
    expect(lower(R3, ask(text, { tools: [], toolChoice: { mode: "none" } }))).toEqual(ask(text));
    const answer = { role: "assistant", model: "m", content: use };
    expect(refusal(() => R3.lower.result("sampling/createMessage", answer)).kind).toBe("internal_error");
  });

  it("lowered sampling: audio is refused in the first revision", () => {
    const audio = { type: "audio", data: "AAAA", mimeType: "audio/wav" };
    expect(lower(R2, ask(audio))).toEqual(ask(audio));
    expect(refusal(() => lower(R1, ask(audio))).kind).toBe("missing_capability");
    const answer = { role: "assistant", model: "m", content: audio };
    expect(refusal(() => R1.lower.result("sampling/createMessage", answer)).kind).toBe("internal_error");
  });
});

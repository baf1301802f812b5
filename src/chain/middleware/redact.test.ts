// Secrets are replaced wherever they travel, and nothing else is changed.

import { expect, it } from "vitest";
import { fakeClient, textResult } from "../../../test/support/handlers/fake-client.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Context, Handler, Params, Request, Result } from "../../core/handler.ts";
import { McpError, toMcpError } from "../../protocol/errors.ts";
import { chain } from "../chain.ts";
import { redact, type RedactOptions } from "./redact.ts";

/** What a text becomes. */
async function redacted(text: string, options: RedactOptions = {}): Promise<string> {
  const result = await fakeClient(chain(redact(options)).to(async () => textResult(text))).call("tools/call", {
    name: "x",
  });
  return (result["content"] as { text: string }[])[0]!.text;
}

const A = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0";
const PEM = `-----BEGIN RSA PRIVATE KEY-----\nMIIE${A}\n${A}==\n-----END RSA PRIVATE KEY-----`;
const JWT = `eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U`;

it.each([
  [`Authorization: Bearer ${A}`, "Authorization: Bearer [redacted]"],
  ["key AKIAIOSFODNN7EXAMPLE.", "key [redacted]."],
  [`aws_secret_access_key = "${A}"`, 'aws_secret_access_key = "[redacted]"'],
  [`ghp_${A.slice(0, 36)} and github_pat_${A}`, "[redacted] and [redacted]"],
  [`glpat-${A.slice(0, 20)}`, "[redacted]"],
  ["xoxb-1234567890-abcdef, xapp-1-A1B2C3D4E5F6-123456", "[redacted], [redacted]"],
  [`https://hooks.slack.com/services/T00000000/B00000000/${A}`, "https://[redacted]"],
  [`sk-${A}; sk-proj-${A}_x; sk-ant-api03-${A}-AA`, "[redacted]; [redacted]; [redacted]"],
  [`sk_live_${A} rk_test_${A}`, "[redacted] [redacted]"],
  [`AIza${A.slice(0, 35)} npm_${A.slice(0, 36)} hf_${A}`, "[redacted] [redacted] [redacted]"],
  [`token=${JWT}`, "token=[redacted]"],
  [`before\n${PEM}\nafter ${PEM}`, "before\n[redacted]\nafter [redacted]"],
  ["-----BEGIN PRIVATE KEY-----\nMIIE", "[redacted]"],
])("replaces %j", async (text, expected) => {
  expect(await redacted(text)).toBe(expected);
});

it.each([
  "The bearer of good news-and-more-words is here",
  "task-sk-abc sk-short sk-this-is-a-long-name-of-a-branch",
  "AKIA is a prefix; eyJ too",
  "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
  "4111 1111 1111 1111 and ada@example.org",
  "0f8b3c1e-7a52-4c6e-9f0a-3d2b1c4e5f6a",
])("keeps %j", async (text) => {
  expect(await redacted(text)).toBe(text);
});

it("replaces card numbers and addresses only with the option, and only valid ones", async () => {
  const options: RedactOptions = { detect: ["cards", "emails"] };
  expect(await redacted("4111 1111 1111 1111, 4111-1111-1111-1112, ada.l+x@mail.example.org", options)).toBe(
    "[redacted], 4111-1111-1111-1112, [redacted]",
  );
  expect(await redacted(`sk-${A} 0000000000000000 12345`, options)).toBe(`sk-${A} 0000000000000000 12345`);
});

it("replaces values in all their forms", async () => {
  const options = { values: ['p"ss/wörd', "p$&x", "p$&x-long", "two words"] };
  expect(await redacted('a p"ss/wörd b', options)).toBe("a [redacted] b");
  expect(await redacted('{"x":"p\\"ss/wörd"}', options)).toBe('{"x":"[redacted]"}');
  expect(await redacted("?q=p%22ss%2Fw%C3%B6rd", options)).toBe("?q=[redacted]");
  expect(await redacted("a=two+words&b=two%20words", options)).toBe("a=[redacted]&b=[redacted]");
  expect(await redacted("p$&x-long p$&x", options)).toBe("[redacted] [redacted]");
  expect(() => redact({ values: ["abc"] })).toThrow("redact: `values` must have at least 4 characters each");
});

it("replaces fields by name in structured content, and in text that is JSON", async () => {
  const task = { error: { code: 1, message: "no", data: { password: "hunter2" } } };
  const given = await redact({ keys: ["password"] })(
    { method: "tasks/get", params: {} },
    fakeClient(async () => ({})).context,
    async () => task,
  );
  expect(given["error"]).toMatchObject({ data: { password: "[redacted]" } });
  const structured = { user: "ada", Password: "hunter2", tokens: ["a", { b: 7 }], accessToken: null, n: 1 };
  const content = [{ type: "text", text: JSON.stringify(structured) }];
  const upstream: Handler = async () => ({ content, structuredContent: structured, _meta: { progressToken: "t" } });
  const gateway = chain(redact({ keys: ["password", "*token*"] })).to(upstream);
  const result = await fakeClient(gateway).call("tools/call", { name: "x" });
  const expected = { ...structured, Password: "[redacted]", tokens: ["[redacted]", { b: 0 }] };
  expect(result).toEqual({
    content: [{ type: "text", text: JSON.stringify(expected) }],
    structuredContent: expected,
    _meta: { progressToken: "t" },
  });
  expect(await redacted('{ "password": "x" ', { keys: ["password"] })).toBe('{ "password": "x" ');
});

const SECRET = `ghp_${A.slice(0, 36)}`;

it.each<[string, Result]>([
  ["tools/call", { content: [{ type: "resource", resource: { uri: "x://a", text: SECRET } }] }],
  ["tools/call", { resultType: "input_required", inputRequests: { a: { params: { message: SECRET } } } }],
  ["resources/read", { contents: [{ uri: "x://a", text: SECRET }] }],
  ["prompts/get", { messages: [{ role: "user", content: { type: "text", text: SECRET } }] }],
  ["completion/complete", { completion: { values: [SECRET] } }],
  ["tasks/get", { statusMessage: SECRET, result: { content: [{ type: "text", text: SECRET }] } }],
  ["tasks/get", { error: { code: 1, message: SECRET, data: SECRET } }],
  ["tasks/get", { error: { code: 1, message: "no", data: { name: SECRET, uri: [SECRET] } } }],
  ["tools/call", { content: [], structuredContent: { tokens: { [SECRET]: "ada", b: 1 } } }],
  ["tools/list", { tools: [{ name: "a", description: SECRET }] }],
])("replaces secrets in %s: %j", async (method, result) => {
  const middleware = redact();
  const given = await middleware({ method, params: {} }, fakeClient(async () => ({})).context, async () => result);
  expect(JSON.stringify(given)).toBe(JSON.stringify(result).replaceAll(SECRET, "[redacted]"));
});

it("changes neither what the protocol needs nor what has no secret", async () => {
  const results: Result[] = [
    { content: [{ type: "image", data: SECRET, mimeType: "image/png" }] },
    { contents: [{ uri: `x://${SECRET}`, blob: SECRET }] },
    { resultType: "input_required", requestState: JWT },
    { tools: [{ name: SECRET }], nextCursor: JWT },
    { content: [{ type: "text", text: "harmless" }], structuredContent: { deep: [{ x: 1 }] } },
  ];
  for (const result of results) {
    const given = await redact()(
      { method: "tools/call", params: {} },
      fakeClient(async () => ({})).context,
      async () => result,
    );
    expect(given).toBe(result);
  }
});

it("replaces secrets in errors, notifications and questions", async () => {
  const errors = [
    McpError.of("execution_failed", `no ${SECRET}`, { detail: SECRET }),
    new ConnectionError("http", `no ${SECRET}`, { cause: new Error(SECRET), diagnostics: ` (${SECRET})`, status: 500 }),
  ];
  for (const error of errors) {
    const client = fakeClient((request, context) => redact()(request, context, () => Promise.reject(error)));
    const thrown = (await client.call("tools/call").catch((one: unknown) => one)) as McpError;
    expect(thrown.message).toContain("no [redacted]");
    expect(JSON.stringify([thrown.message, thrown.data, String(thrown.cause)])).not.toContain(SECRET);
    expect(thrown.constructor).toBe(error.constructor);
    if (error instanceof ConnectionError) expect(thrown).toMatchObject({ diagnostics: " ([redacted])", status: 500 });
  }
  const talkative: Handler = async (_request, { notify, ask }) => {
    notify({ method: "notifications/progress", params: { progressToken: 1, progress: 1, message: SECRET } });
    notify({ method: "notifications/message", params: { level: "info", data: { deep: [SECRET] } } });
    return { structuredContent: await ask({ method: "elicitation/create", params: { message: SECRET } }) };
  };
  const client = fakeClient(chain(redact()).to(talkative), { answer: () => ({ content: { code: SECRET } }) });
  expect(await client.call("tools/call")).toEqual({ structuredContent: { content: { code: "[redacted]" } } });
  expect(client.notifications).toMatchObject([
    { params: { message: "[redacted]" } },
    { params: { data: { deep: ["[redacted]"] } } },
  ]);
  expect(client.clientRequests[0]?.request.params).toEqual({ message: "[redacted]" });
});

it("keeps the output of a program in an error apart, so that callers do not see it", async () => {
  const exit = new ConnectionError("closed", "node exited", { diagnostics: `; its stderr: ${SECRET} of admin` });
  const named = exit.with({ problem: `The upstream a failed: ${exit.problem}` });
  const client = fakeClient((request, context) => redact()(request, context, () => Promise.reject(named)));
  const error = (await client.call("tools/call").catch((thrown: unknown) => thrown)) as Error;
  expect(error.message).toBe("The upstream a failed: node exited; its stderr: [redacted] of admin");
  expect(toMcpError(error).message).toBe("The upstream a failed: node exited");
});

it("replaces secrets in arguments and answers with the option", async () => {
  const sent: Params[] = [];
  const upstream: Handler = async ({ params }: Request, { ask }: Context) => {
    sent.push(params);
    sent.push(await ask({ method: "elicitation/create", params: { message: SECRET } }));
    return { structuredContent: { echo: SECRET } };
  };
  const options: RedactOptions = { in: ["arguments"], keys: ["pin"] };
  const gateway = chain(redact(options)).to(upstream);
  const client = fakeClient(gateway, {
    answer: () => ({ action: "accept", content: { name: SECRET, pin: "1234", x: SECRET } }),
  });
  const params = { name: "x", arguments: { text: `a ${SECRET}`, pin: 1234, list: [SECRET] } };
  expect(await client.call("tools/call", params)).toEqual({ structuredContent: { echo: SECRET } });
  expect(sent).toEqual([
    { name: "x", arguments: { text: "a [redacted]", pin: 0, list: ["[redacted]"] } },
    { action: "accept", content: { name: "[redacted]", pin: "[redacted]", x: "[redacted]" } },
  ]);
  expect(client.clientRequests[0]?.request.params).toEqual({ message: SECRET });
  expect(params.arguments.pin).toBe(1234);
});

it("takes time linear in the text", async () => {
  const size = 200_000;
  for (const part of [
    "-eyJaaaaaaaa",
    "eyJaaaaaaaa.",
    "ghp_",
    "sk-",
    "-----BEGIN PRIVATE KEY-----",
    "a@",
    "1 ",
    "Bearer ",
  ]) {
    const text = part.repeat(size / part.length);
    await redacted(text, { detect: ["tokens", "jwts", "private-keys", "cards", "emails"] });
  }
});

it("replaces values that are nested too deeply to check, and keeps keys such as __proto__", async () => {
  let deep: unknown = SECRET;
  for (let depth = 0; depth < 1_000; depth += 1) deep = [deep];
  const proto = JSON.parse(`{"__proto__": {"x": "${SECRET}"}}`) as object;
  const gateway = chain(redact()).to(async () => ({ structuredContent: { deep, proto } }));
  const { structuredContent } = await fakeClient(gateway).call("tools/call", { name: "x" });
  expect(JSON.stringify(structuredContent)).not.toContain(SECRET);
  expect(JSON.stringify((structuredContent as { proto: object }).proto)).toBe('{"__proto__":{"x":"[redacted]"}}');
});

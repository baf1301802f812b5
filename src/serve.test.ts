// What people write as options of HTTP by mistake, and the sentence that each mistake gets. Nothing is listened on.

import { describe, expect, it } from "vitest";
import { chain } from "./chain/chain.ts";
import type { Handler } from "./core/handler.ts";
import { EVALUATES_CODE } from "./core/evaluates-code.ts";
import { fetchHandler, nodeHandler } from "./http.ts";
import { serve } from "./serve.ts";
import { bearer } from "./auth/bearer/bearer.ts";

const handler: Handler = async () => ({});
const attempt = (options: unknown): Promise<unknown> => serve(handler, options as never);

async function refused(options: unknown): Promise<string> {
  const error: unknown = await attempt(options).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(TypeError);
  return (error as Error).message;
}

describe("serve()", () => {
  it.each([
    [3134, "3134"],
    [true, "true"],
    [false, "false"],
    [null, "null"],
    ["127.0.0.1:3000", '"127.0.0.1:3000"'],
    [[], "a list"],
  ])("does not take %j for its options of HTTP", async (http, shown) => {
    expect(await refused({ http })).toBe(`serve(): \`http\` must be an object, such as { port: 3000 }; got ${shown}`);
  });

  it.each(["", " "])("does not take the host %j for all addresses", async (host) => {
    expect(await refused({ http: { host, port: 0 } })).toBe(
      "serve(): http.host is empty, which would mean every address of this machine: leave it out for 127.0.0.1, or write 0.0.0.0 to listen on all addresses",
    );
  });

  it.each([null, 1, {}])("does not take the host %j", async (host) => {
    expect(await refused({ http: { host, port: 0 } })).toContain("serve(): http.host must be a text; got ");
  });

  it("says of a port that is a text that it is one", async () => {
    expect(await refused({ http: { port: "3135" } })).toBe(
      'serve(): http.port is the text "3135" and must be a number: make it a number, as in Number(process.env.PORT)',
    );
  });

  it.each([-1, 65_536, 1.5, Number.NaN, null])("does not take the port %d", async (port) => {
    expect(await refused({ http: { port } })).toBe(
      `serve(): http.port must be a whole number from 0 (any that is free) to 65535; got ${port}`,
    );
  });

  it.each(["allowedHosts", "allowedOrigins"])("does not take a text for the list %s", async (name) => {
    expect(await refused({ http: { port: 0, [name]: "notes.example.com" } })).toMatch(
      new RegExp(`^${name} .* must be a list of texts, .*; got "notes\\.example\\.com"$`),
    );
  });

  it("lists what there is where something is misspelt, or stands in the wrong place", async () => {
    expect(await refused({ http: { prot: 1 } })).toMatch(
      /^serve\(\) has no option `http\.prot`; there are host, port, path, .*$/,
    );
    expect(await refused({ port: 3000 })).toMatch(/^serve\(\) has no option `port`; there are http, stdio, .*$/);
    expect(await refused({ http: { toString: 1 } })).toContain("no option `http.toString`");
    expect(await refused(3000)).toBe("serve(): the options must be an object; got 3000");
  });

  it("passes over what is undefined", async () => {
    const options = { http: { port: 0, host: undefined, prot: undefined }, graceMs: undefined };
    const serving = (await attempt(options)) as { url: string; close(): Promise<void> };
    expect(serving.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/);
    await serving.close();
  });
});

describe.each([
  ["nodeHandler", nodeHandler],
  ["fetchHandler", fetchHandler],
])("%s()", (name, mount) => {
  it("does not listen, so it takes no host and no port", () => {
    const said = `${name}() has no option \`port\`; there are path, oldSse, `;
    expect(() => mount(handler, { port: 3000 } as never)).toThrow(said);
    expect(() => mount(handler, { port: 3000 } as never)).toThrow(TypeError);
  });

  it("takes its names as lists only", () => {
    expect(() => mount(handler, { allowedHosts: "notes.example.com" as never })).toThrow("must be a list");
  });
});

describe("a handler that evaluates code", () => {
  const live: Handler = async () => ({});
  Object.defineProperty(live, EVALUATES_CODE, { value: true });
  const gateway = chain().to({ js: live, other: handler });
  const sentence =
    /^What is served evaluates code, .*: give `auth`, such as bearer.*, or `auth: false` to let everybody/;

  const post = (headers: Record<string, string> = {}): Request =>
    new Request("http://localhost/mcp", { method: "POST", headers, body: "" });

  it("is not served over HTTP to everybody, unless somebody says so", async () => {
    await expect(serve(live, { http: { port: 0 } })).rejects.toThrow(sentence);
    await expect(serve(gateway, { http: { port: 0 } })).rejects.toThrow(TypeError);
    expect(() => nodeHandler(gateway)).toThrow(sentence);
    expect(() => fetchHandler(live)).toThrow(sentence);
    const open = fetchHandler(gateway, { auth: false });
    expect((await open(post())).status).toBe(415);
    await open.close();
  });

  it("is served to those who say who they are", async () => {
    const auth = bearer({ verify: (token) => (token === "right" ? { principal: "ada" } : undefined) });
    const closed = fetchHandler(live, { auth });
    expect((await closed(post())).status).toBe(401);
    expect((await closed(post({ authorization: "Bearer right" }))).status).toBe(415);
    await closed.close();
  });
});

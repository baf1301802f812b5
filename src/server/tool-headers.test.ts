// Arguments that are repeated in HTTP headers: which calls are checked, and which annotations are refused. How values
// are compared is tested in protocol/header-values.test.ts.

import { expect, it, vi } from "vitest";
import { z } from "zod";
import { fakeClient } from "../../test/support/handlers/fake-client.ts";
import type { Caller } from "../core/handler.ts";
import { META } from "../protocol/model/base.ts";
import { NEWEST } from "../protocol/revisions/index.ts";
import { createServer } from "./server.ts";

const info = { name: "test", version: "1" };
const ran = vi.fn(() => "x");
const region = { type: "object", properties: { region: { type: "string", "x-mcp-header": "Region" } } } as const;
const server = createServer(info)
  .tool("plain", { input: region }, ran)
  .tool("zod", { input: z.object({ region: z.string().meta({ "x-mcp-header": "Region" }) }) }, ran)
  .tool("scoped", { input: region, scopes: ["a"] }, ran)
  .tool("none", {}, ran);

const _meta = { [META.revision]: NEWEST.name };
const at = (headers: Record<string, string> | undefined, caller?: Partial<Caller>) =>
  fakeClient(server, { caller: headers === undefined ? {} : { headers, ...caller } });

it.each(["plain", "zod"])("a tool whose arguments are repeated in headers runs if they match: %s", async (name) => {
  const params = { name, arguments: { region: "eu" }, _meta };
  expect(await at({ "mcp-param-region": "eu" }).call("tools/call", params)).toMatchObject({ isError: false });
});

it.each(["plain", "zod"])(
  "a tool whose arguments are repeated in headers does not run if they differ: %s",
  async (name) => {
    vi.clearAllMocks();
    const params = { name, arguments: { region: "eu" }, _meta };
    const missing = await at({}).callError("tools/call", params);
    expect(missing.toBody()).toEqual({
      code: -32020,
      message: "Header mismatch: mcp-param-region is missing for the argument region",
      data: { kind: "header_mismatch" },
    });
    const other = await at({ "mcp-param-region": "us" }).callError("tools/call", params);
    expect(other.message).toBe("Header mismatch: mcp-param-region does not equal the argument region");
    expect(ran).not.toHaveBeenCalled();
  },
);

it("a tool whose arguments are repeated in headers checks a call without arguments too", async () => {
  const error = await at({ "mcp-param-region": "eu" }).callError("tools/call", { name: "plain", _meta });
  expect(error.kind).toBe("header_mismatch");
  expect(await at({}).call("tools/call", { name: "plain", _meta })).toMatchObject({ isError: false });
});

it("a tool whose arguments are repeated in headers ignores callers without headers and session-style callers", async () => {
  const args = { name: "plain", arguments: { region: "eu" } };
  expect(await at(undefined).call("tools/call", { ...args, _meta })).toMatchObject({ isError: false });
  expect(await at({}).call("tools/call", args)).toMatchObject({ isError: false });
  expect(await at({}).call("tools/call", { ...args, _meta: {} })).toMatchObject({ isError: false });
});

it("a tool whose arguments are repeated in headers ignores headers of other tools", async () => {
  const params = { name: "none", arguments: { region: "eu" }, _meta };
  expect(await at({ "mcp-param-region": "us" }).call("tools/call", params)).toMatchObject({ isError: false });
});

it("a tool whose arguments are repeated in headers checks scopes before headers", async () => {
  const params = { name: "scoped", arguments: { region: "eu" }, _meta };
  const error = await at({}, { principal: "p", scopes: [] }).callError("tools/call", params);
  expect(error.kind).toBe("access_denied");
});

it("a tool whose arguments are repeated in headers has its annotations in the list", async () => {
  const { tools } = await at({}).call("tools/list");
  expect(tools).toContainEqual({ name: "plain", inputSchema: region });
  expect(tools).toContainEqual(
    expect.objectContaining({
      name: "zod",
      inputSchema: expect.objectContaining({
        properties: { region: { type: "string", "x-mcp-header": "Region" } },
      }) as object,
    }),
  );
});

it("a tool whose arguments are repeated in headers is refused at registration if an annotation is wrong", () => {
  const add = (properties: object, rest?: object) =>
    createServer(info).tool("t", { input: { type: "object", properties, ...rest } }, ran);
  expect(() => add({ a: { type: "number", "x-mcp-header": "A" } })).toThrow(
    new TypeError(`Tool t: x-mcp-header of a needs the type "string", "integer" or "boolean"`),
  );
  expect(() => add({ a: { type: "string", "x-mcp-header": "a b" } })).toThrow(
    new TypeError("Tool t: x-mcp-header of a must be a name for an HTTP header"),
  );
  expect(() => add({}, { "x-mcp-header": "A" })).toThrow(/^Tool t: x-mcp-header of its input must be on a property/);
  const optional = z.object({ a: z.string().nullable().meta({ "x-mcp-header": "A" }) });
  expect(() => createServer(info).tool("t", { input: optional }, ran)).toThrow(/^Tool t: x-mcp-header of a needs/);
});

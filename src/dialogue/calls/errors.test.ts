// What clients get to see of internal errors.

import { expect, it } from "vitest";
import { ConnectionError } from "../../core/errors.ts";
import type { Request } from "../../core/handler.ts";
import { compatRules, DOCUMENTS } from "../../protocol/compat-documents.ts";
import { McpError, toMcpError } from "../../protocol/errors.ts";
import { NEWEST_SESSION } from "../../protocol/revisions/index.ts";
import { toErrorBody } from "./errors.ts";

it("a ConnectionError loses the output of the program, however often it was wrapped", () => {
  const exit = new ConnectionError("closed", "node exited with code 1", {
    diagnostics: "; the end of its stderr:\nsecret",
  });
  expect(exit.message).toBe("node exited with code 1; the end of its stderr:\nsecret");
  const named = new ConnectionError("closed", `The upstream notes failed: ${exit.message}`, { cause: exit });
  const again = new ConnectionError("closed", `In the middleware log: ${named.message}`, {
    cause: named,
    mayHaveRun: false,
  });
  expect(toMcpError(again).toBody()).toEqual({
    code: -32603,
    message: "In the middleware log: The upstream notes failed: node exited with code 1",
    data: { kind: "unreachable", connection: "closed", mayHaveRun: false },
  });
});

const CALL: Request = { method: "tools/call", params: { name: "x" } };
const READ: Request = { method: "resources/read", params: { uri: "a:b" } };
const rules = { chain: compatRules(DOCUMENTS.chain), reference: compatRules(DOCUMENTS.reference) };
const code = (error: unknown, compat?: keyof typeof rules, request = CALL): number =>
  toErrorBody(error, request, NEWEST_SESSION, compat && rules[compat]).code;

it.each([
  ["tool_not_found", -32602, -32001, -32602],
  ["resource_not_found", -32002, -32002, -32001],
  ["prompt_not_found", -32602, -32003, -32602],
  ["execution_failed", -32603, -32004, -32002],
  ["access_denied", -32603, -32005, -32603],
  ["unauthorized", -32600, -32600, -32003],
  ["rate_limited", -31429, -31429, -32004],
  ["internal_error", -32603, -32603, -32603],
] as const)("compat has the code of %s", (kind, mcp, chain, reference) => {
  const error = McpError.of(kind, "no");
  expect([code(error), code(error, "chain"), code(error, "reference")]).toEqual([mcp, chain, reference]);
});

it("compat knows a missing resource of another implementation, and a tool that an older server does not have", () => {
  const missing = new McpError(-32602, "no", { uri: "a:b" });
  expect([code(missing, undefined, READ), code(missing, "reference", READ)]).toEqual([-32002, -32001]);
  const lifted = NEWEST_SESSION.lift.error({ code: -32601, message: "no such tool" }, CALL);
  const old = McpError.fromBody(lifted);
  expect([code(old), code(old, "chain")]).toEqual([-32601, -32001]);
});

it("compat leaves errors alone whose codes a user chose", () => {
  expect(code(new McpError(-32003, "mine", { kind: "access_denied" }), "chain")).toBe(-32003);
  const mine = { code: 7, message: "mine", data: { a: 1 } };
  expect(toErrorBody(McpError.fromBody(mine), CALL, NEWEST_SESSION, rules.reference)).toEqual(mine);
});

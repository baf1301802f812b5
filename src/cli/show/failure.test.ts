// The exit code, kind and message of every error.

import { expect, it } from "vitest";
import { ConnectionError, type ConnectionErrorKind, type Hint } from "../../core/errors.ts";
import { findSpawnProblem } from "../../process/spawn-problem.ts";
import { McpError, type ErrorKind } from "../../protocol/errors.ts";
import { NotFoundError, UnreachableError, UsageError } from "../command.ts";
import { requiredPages, toFailure } from "./failures.ts";

it.each<[ConnectionErrorKind, number, string]>([
  ["closed", 4, "unreachable"],
  ["timeout", 4, "unreachable"],
  ["refused", 4, "unreachable"],
  ["http", 4, "unreachable"],
  ["protocol", 4, "unreachable"],
  ["spawn", 4, "unreachable"],
  ["unauthorized", 3, "auth"],
  ["cancelled", 130, "interrupted"],
])("an exit code of a connection error of kind %s is %i", (reason, exit, kind) => {
  expect(toFailure(new ConnectionError(reason, "why"))).toEqual({ exit, kind, reason, message: "why" });
});

it("an exit code of a missing command is 2", () => {
  const cause = Object.assign(new Error("spawn"), { code: "ENOENT" });
  expect(toFailure(new ConnectionError("spawn", "why", { cause }))).toMatchObject({ exit: 2, kind: "not_found" });
});

it.each<[ErrorKind, number, string]>([
  ["tool_not_found", 2, "not_found"],
  ["resource_not_found", 2, "not_found"],
  ["prompt_not_found", 2, "not_found"],
  ["unauthorized", 3, "auth"],
  ["access_denied", 3, "auth"],
  ["unreachable", 4, "unreachable"],
  ["timeout", 4, "unreachable"],
  ["internal_error", 5, "failed"],
  ["invalid_params", 5, "failed"],
])("an exit code of a server error of kind %s is %i", (reason, exit, kind) => {
  const error = McpError.of(reason, "why", { more: 1 });
  const { code } = error;
  expect(toFailure(error)).toEqual({ exit, kind, reason, code, data: { kind: reason, more: 1 }, message: "why" });
});

it("an exit code comes with the details of a server error", () => {
  const said = (message: string, data: unknown): string => toFailure(new McpError(-32600, message, data)).message;
  expect(said("Invalid Request", { details: "too long" })).toBe("Invalid Request: too long");
  expect(said("It is too long", { details: "too long" })).toBe("It is too long");
  expect(said("Invalid Request", { details: [{}] })).toBe("Invalid Request");
});

it("an exit code of a server error with an unknown code is 5", () => {
  expect(toFailure(new McpError(7, "odd"))).toEqual({ exit: 5, kind: "failed", code: 7, message: "odd" });
});

it("an exit code of a required URL elicitation comes with the pages to visit", () => {
  const elicitations = [{ mode: "url", url: "https://a.example/x" }, { url: "file:///etc/passwd" }, { url: 3 }, null];
  const error = McpError.of("url_elicitation_required", "Sign first", { elicitations });
  expect(toFailure(error).message).toBe("Sign first");
  expect(requiredPages(error)).toEqual(["https://a.example/x"]);
  expect(requiredPages(McpError.of("url_elicitation_required", "Sign first"))).toEqual([]);
});

it("an exit code of a NotFoundError comes with the server error that caused it", () => {
  const cause = McpError.of("resource_not_found", "gone", { uri: "a://b" });
  const data = { kind: "resource_not_found", uri: "a://b" };
  expect(toFailure(new NotFoundError("no a://b", { cause }))).toEqual({
    ...{ exit: 2, kind: "not_found", message: "no a://b" },
    ...{ reason: "resource_not_found", code: cause.code, data },
  });
});

it.each<[Hint, string]>([
  [{ text: "raise `timeoutMs`", flags: "use --timeout to allow more" }, "It failed; use --timeout to allow more"],
  [{ text: "raise `maxTimeoutMs`", flags: "" }, "It failed"],
  [{ text: "try again" }, "It failed; try again"],
])("an exit code comes with the hint %j for the command line", (hint, message) => {
  const error = new ConnectionError("closed", "It failed", { hint });
  expect(error.message).toBe(`It failed; ${hint.text}`);
  expect(toFailure(error).message).toBe(message);
  expect(toFailure(error.with({ problem: `a: ${error.problem}` })).message).toBe(`a: ${message}`);
  expect(toFailure(new McpError(7, error.message)).message).toBe(error.message);
});

it.each([
  [{ command: "no-such-program" }, "there is no command of that name on the PATH; install it, or give its full path"],
  [{ command: "no such" }, "there is no command of that name; do not quote it together with its arguments"],
  [{ command: "cat", cwd: "/none" }, "its folder /none does not exist; create it or change --cwd"],
  [{ command: "/none" }, "there is no file /none"],
])("an exit code of the start of %j comes with a hint for the command line", async (program, reason) => {
  const { message } = toFailure(await findSpawnProblem(program));
  expect(message).toBe(`cannot start "${program.command}": ${reason}`);
});

it("an exit code of an error of a command is in the error", () => {
  const errors = [new UsageError("a"), new NotFoundError("b"), new UnreachableError("c"), new Error("d")];
  expect(errors.map((error) => toFailure(error))).toEqual([
    { exit: 1, kind: "usage", message: "a" },
    { exit: 2, kind: "not_found", message: "b" },
    { exit: 4, kind: "unreachable", message: "c" },
    { exit: 1, kind: "usage", message: "d" },
  ]);
});

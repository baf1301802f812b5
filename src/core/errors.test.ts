// Errors of two copies of the package, as a process has them when a user's module brings its own. The second copy is
// the same source, loaded once more under another address.

import { describe, expect, it } from "vitest";
import { McpError } from "../protocol/errors.ts";
import { AuthError } from "./authentication.ts";
import { ConnectionError, UserError } from "./errors.ts";

type Errors = typeof import("./errors.ts");
type ProtocolErrors = typeof import("../protocol/errors.ts");
type Authentication = typeof import("./authentication.ts");

describe("errors of another copy of the package", async () => {
  const copy = async <Module>(path: string): Promise<Module> => (await import(/* @vite-ignore */ path)) as Module;
  const errors = await copy<Errors>("./errors.ts?copy");
  const protocol = await copy<ProtocolErrors>("../protocol/errors.ts?copy");
  const authentication = await copy<Authentication>("./authentication.ts?copy");

  it.each([
    ["McpError", McpError, protocol.McpError, protocol.McpError.of("access_denied", "no")],
    ["ConnectionError", ConnectionError, errors.ConnectionError, new errors.ConnectionError("closed", "gone")],
    ["UserError", UserError, errors.UserError, new errors.UserError("no")],
    ["AuthError", AuthError, authentication.AuthError, new authentication.AuthError(401, "no", "Bearer")],
  ] as const)("errors of another copy of the package are recognized: %s", (_name, ours, theirs, error) => {
    expect(theirs).not.toBe(ours);
    expect(Object.getPrototypeOf(error)).not.toBe(ours.prototype);
    expect(error instanceof ours).toBe(true);
    expect(error instanceof Error).toBe(true);
    expect(Object.keys(error)).not.toContain("catenary");
  });

  it("errors of another copy of the package are distinguished from each other, from plain errors and from other values", () => {
    const others = [
      new Error("x"),
      new ConnectionError("closed", "x"),
      { code: 1, message: "x" },
      "x",
      null,
      undefined,
    ];
    for (const other of others) expect(other instanceof McpError).toBe(false);
    expect(McpError.of("timeout", "x") instanceof ConnectionError).toBe(false);
    expect(new UserError("x") instanceof McpError).toBe(false);
  });

  it("errors of another copy of the package leave subclasses to their prototypes", () => {
    class Lost extends ConnectionError {}
    expect(new Lost("closed", "x") instanceof ConnectionError).toBe(true);
    expect(new Lost("closed", "x") instanceof Lost).toBe(true);
    expect(new ConnectionError("closed", "x") instanceof Lost).toBe(false);
    expect(new errors.ConnectionError("closed", "x") instanceof Lost).toBe(false);
  });
});

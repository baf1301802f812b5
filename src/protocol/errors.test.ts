// What callers read of an error that is not meant for them.

import { expect, it } from "vitest";
import { toMcpError, withoutDiagnostics } from "./errors.ts";

it("names no file of the machine to callers if our own code cannot be loaded", () => {
  const message = "EMFILE: too many open files, open '/opt/catenary/dist/parts/router.js'";
  const error = Object.assign(new Error(message), { code: "EMFILE" });
  expect(toMcpError(error).message).toBe("Internal error: too many files are open on this machine");
  const missing = Object.assign(new Error("Cannot find module '/opt/x.js'"), { code: "ERR_MODULE_NOT_FOUND" });
  expect(withoutDiagnostics(missing)).toBe("a module could not be loaded");
  expect(withoutDiagnostics(new Error("the disk is full"))).toBe("the disk is full");
});

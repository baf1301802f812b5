// What callers read of an error that is not meant for them.

import { expect, it } from "vitest";
import { ConnectionError } from "../core/errors.ts";
import { toMcpError, withoutDiagnostics } from "./errors.ts";

it("names no folder of the machine to callers if our own code cannot be loaded", () => {
  const message = "EMFILE: too many open files, open '/opt/catenary/dist/parts/router.js'";
  const error = Object.assign(new Error(message), { code: "EMFILE" });
  expect(toMcpError(error).message).toBe("Internal error: EMFILE: too many open files, open '.../router.js'");
  const missing = Object.assign(new Error("Cannot find module '/opt/dist/x.js'"), { code: "ERR_MODULE_NOT_FOUND" });
  expect(withoutDiagnostics(missing)).toBe("Cannot find module '.../x.js'");
  expect(withoutDiagnostics(new Error("the disk is full"))).toBe("the disk is full");
});

it.each([
  [
    "EROFS: read-only file system, open '/home/ada/.local/state/x.json'",
    "EROFS: read-only file system, open '.../x.json'",
  ],
  [
    "cannot start: there is no file /srv/notes/server.js; check it",
    "cannot start: there is no file .../server.js; check it",
  ],
  ["The directory /home/ada/ could not be made", "The directory .../ could not be made"],
  ["C:\\Users\\ada\\x.txt is gone", ".../x.txt is gone"],
  ["HTTP 404 from https://example.com/a/b/mcp", "HTTP 404 from https://example.com/a/b/mcp"],
  ["tools/call failed: /v1 is not there, 1/2/3", "tools/call failed: /v1 is not there, 1/2/3"],
])("errors for callers do not name folders of this machine: %s", (message, shown) => {
  expect(toMcpError(new ConnectionError("spawn", message)).message).toBe(shown);
  expect(toMcpError(new Error(message)).message).toBe(`Internal error: ${shown}`);
});

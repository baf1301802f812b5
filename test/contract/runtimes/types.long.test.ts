// The declarations of the package in a project for Workers: without the types of Node, and with every declaration
// checked.

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, it } from "vitest";
import { Workspace } from "./runtimes.ts";

const TSC = fileURLToPath(new URL("../../../node_modules/.bin/tsc", import.meta.url));

const WORKER = `
import { createServer } from "catenary/server";
import { fetchHandler } from "catenary/http";
const mcp = fetchHandler(createServer({ name: "notes", version: "1.0.0" }), { stateless: true });
export default { fetch: (request: Request, env: object): Promise<Response> => mcp(request, { env }) };
`;
const OPTIONS = {
  module: "esnext",
  moduleResolution: "bundler",
  target: "es2023",
  lib: ["es2023", "webworker"],
  types: [],
  strict: true,
  skipLibCheck: false,
  preserveSymlinks: true,
  noEmit: true,
};

const workspace = new Workspace({
  "worker.ts": WORKER,
  "tsconfig.json": JSON.stringify({ compilerOptions: OPTIONS, files: ["worker.ts"] }),
});
afterAll(() => workspace.remove());

it("a server for Workers compiles without the types of Node", () => {
  const compile = (): string => execFileSync(TSC, ["-p", join(workspace.folder)], { encoding: "utf8" });
  expect(compile).not.toThrow();
});

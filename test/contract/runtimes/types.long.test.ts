// The declarations of the package, each of them checked: in a project for Workers without the types of Node, and in one for
// Node that imports all entries.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, it } from "vitest";
import { endOf } from "../../support/blocking-program.ts";
import { Workspace } from "./runtimes.ts";

const TSC = fileURLToPath(new URL("../../../node_modules/.bin/tsc", import.meta.url));

const TYPES = fileURLToPath(new URL("../../../node_modules/@types", import.meta.url));

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

const { exports } = JSON.parse(
  readFileSync(fileURLToPath(new URL("../../../package.json", import.meta.url)), "utf8"),
) as {
  readonly exports: Readonly<Record<string, unknown>>;
};
const ENTRIES = Object.keys(exports).filter((entry) => !entry.endsWith(".json"));
const NODE_OPTIONS = {
  ...OPTIONS,
  module: "nodenext",
  moduleResolution: "nodenext",
  lib: ["es2024"],
  types: ["node"],
  typeRoots: [TYPES],
};

const workspace = new Workspace({
  "worker.ts": WORKER,
  "tsconfig.json": JSON.stringify({ compilerOptions: OPTIONS, files: ["worker.ts"] }),
  "all.ts": ENTRIES.map((entry, at) => `export * as entry${at} from "catenary${entry.slice(1)}";`).join("\n"),
  "all.json": JSON.stringify({ compilerOptions: NODE_OPTIONS, files: ["all.ts"] }),
});
afterAll(() => workspace.remove());

/** What the compiler says. */
function compile(config: string): string {
  return endOf(TSC, ["-p", join(workspace.folder, config)]).stdout;
}

it("a server for Workers compiles without the types of Node", () => {
  expect(compile("tsconfig.json")).toBe("");
});

it("the declarations of all entries compile in a project that checks them", () => {
  expect(ENTRIES.length).toBeGreaterThan(10);
  expect(compile("all.json")).toBe("");
});

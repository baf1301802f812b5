// Bundles made with esbuild: how much a small server loads, and that servers, clients and gateways run from one file, in
// a folder where nothing is installed.

import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, expect, it } from "vitest";
import { connect } from "../../../src/client/index.ts";
import { ROOT } from "./package.ts";
import { outputOf } from "../../support/blocking-program.ts";
import { importPackage, missingRuntimes, SERVER, Workspace } from "./runtimes.ts";

const reason = await missingRuntimes();
if (reason !== undefined) console.warn(`Skipped: bundles, because ${reason}`);

const MINIMAL = `
import { createServer } from "catenary/server";
import { fetchHandler } from "catenary/http";
import { z } from "zod";

const server = createServer({ name: "notes", version: "1.0.0" });
server.tool("echo", { input: z.object({ text: z.string() }) }, ({ text }) => text);
export default { fetch: fetchHandler(server) };
`;

/** What we use of webpack. */
type Webpack = (options: object, done: (error: Error | null, stats?: WebpackStats) => void) => void;
interface WebpackStats {
  toJson(options: object): { readonly errors: readonly object[]; readonly warnings: readonly object[] };
}

const ERROR = 'import { McpError } from "catenary"; console.log(new McpError(-32000, "no").kind);';

const workspace = new Workspace({ "server.js": SERVER, "minimal.js": MINIMAL, "error.js": ERROR });
const empty = realpathSync(mkdtempSync(join(tmpdir(), "catenary-bundle-")));
afterAll(() => {
  workspace.remove();
  rmSync(empty, { recursive: true, force: true });
});

/** Bundles a program for Node into one file, in the empty folder. */
async function bundled(name: string, program: string): Promise<string> {
  workspace.write(name, program);
  const [script] = await workspace.bundle(name, { platform: "node", minify: true });
  const file = join(empty, name.replace(/\.js$/, ".mjs"));
  writeFileSync(file, script?.text ?? "");
  return file;
}

it.skipIf(reason !== undefined)(
  "a bundle of a small server with zod tools loads at most 60 KB gzipped, without zod itself",
  async () => {
    const { outputFiles, metafile } = await workspace.build("minimal.js", {
      platform: "node",
      minify: true,
      splitting: true,
      metafile: true,
      external: ["zod"],
    });
    const files = new Map(outputFiles.map((file) => [basename(file.path), file.contents]));
    const outputs = new Map(Object.entries(metafile?.outputs ?? {}).map(([path, file]) => [basename(path), file]));
    // What the server loads at its start. The rest, such as the check of JSON Schemas, is loaded when it is needed.
    const loaded = new Set(["minimal.js"]);
    for (const name of loaded) {
      for (const { path, kind, external } of outputs.get(name)?.imports ?? []) {
        if (kind === "import-statement" && external !== true) loaded.add(basename(path));
      }
    }
    const code = Buffer.concat([...loaded].map((name) => files.get(name) ?? Buffer.alloc(0)));
    expect(gzipSync(code, { level: 9 }).length).toBeLessThanOrEqual(60 * 1024);
    expect(Object.keys(metafile?.inputs ?? {}).filter((path) => path.includes("/ajv/"))).toEqual([]);
  },
);

it.skipIf(reason !== undefined)("a bundle of an error class alone has at most 2.5 KB", async () => {
  const [script] = await workspace.bundle("error.js", { platform: "node", minify: true });
  expect(script?.text).toContain("McpError");
  expect(script?.contents.length).toBeLessThanOrEqual(2_500);
});

it.skipIf(reason !== undefined)(
  "a bundle: made with webpack has no warnings, for any entry of the package",
  async () => {
    const { default: webpack } = await importPackage<{ default: Webpack }>("webpack", "lib/index.js");
    const { exports } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { exports: object };
    const entries = Object.keys(exports).filter((entry) => !entry.endsWith(".json"));
    const program = entries.map((entry, index) => `export * as entry${index} from "catenary${entry.slice(1)}";`);
    workspace.write("entries.js", program.join("\n"));
    const stats = await new Promise<WebpackStats | undefined>((resolve, reject) => {
      const options = {
        mode: "development",
        devtool: false,
        target: "node20",
        context: workspace.folder,
        entry: "./entries.js",
      };
      webpack({ ...options, output: { path: join(empty, "webpack") } }, (error, done) =>
        error ? reject(error) : resolve(done),
      );
    });
    const { errors, warnings } = stats?.toJson({ all: false, errors: true, warnings: true }) ?? {};
    expect([errors, warnings]).toEqual([[], []]);
    expect(entries.length).toBeGreaterThan(10);
  },
);

it.skipIf(reason !== undefined)(
  "a bundle of a server on stdio answers, and checks JSON Schemas without ajv",
  async () => {
    const file = await bundled(
      "stdio.js",
      'import { serve } from "catenary"; import { createNotes } from "./server.js"; await serve(createNotes());',
    );
    await using client = await connect(
      { command: process.execPath, args: [file], cwd: empty },
      { elicit: () => ({ action: "accept", content: { name: "Ann" } }) },
    );
    expect(await client.callTool("echo", { text: "hi" })).toMatchObject({ content: [{ text: "hi" }] });
    expect(await client.callTool("add", { n: 1 })).toMatchObject({ content: [{ text: "2" }] });
    expect(await client.callTool("add", {})).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining("n: is required") as string }],
    });
    expect(await client.callTool("ask")).toMatchObject({ content: [{ text: "Ann" }] });
    expect(await client.callTool("slow")).toMatchObject({ content: [{ text: "done" }] });
  },
);

it.skipIf(reason !== undefined)(
  "a bundle of a client and a gateway over HTTP and commands works, with OAuth and without its optional keychain",
  async () => {
    const server = await bundled(
      "notes.js",
      'import { serve } from "catenary"; import { createNotes } from "./server.js"; await serve(createNotes());',
    );
    const file = await bundled(
      "gateway.js",
      `import { chain, connect, serve, upstream } from "catenary";
       import { log } from "catenary/middleware";
       import { keychainTokens } from "catenary/oauth";
       const command = { command: process.execPath, args: [${JSON.stringify(server)}] };
       const gateway = chain(log({ write: () => {} })).to({ a: upstream(command), b: upstream(command) });
       const front = await serve(gateway, { http: { port: 0 } });
       const client = await connect(front.url);
       const { tools } = await client.listTools();
       console.log(tools.length, typeof keychainTokens);
       const { name } = tools.find((tool) => tool.name.endsWith("echo"));
       console.log((await client.callTool(name, { text: "through" })).content[0].text);
       await client.close();
       await front.close();
       console.log("closed");`,
    );
    expect(outputOf(process.execPath, [file], { cwd: empty })).toBe("14 function\nthrough\nclosed\n");
  },
);

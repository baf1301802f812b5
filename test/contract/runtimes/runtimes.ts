// What the tests of this folder share: the other runtimes and the bundler, which come from npm into packages/, and a
// folder outside of the repository in which `catenary` is installed as users have it.

import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { installPackages } from "../../support/install-packages.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const PACKAGES = fileURLToPath(new URL("packages", import.meta.url));

/** Installs the runtimes. Returns why that is not possible; in CI, that is an error. */
export async function missingRuntimes(): Promise<string | undefined> {
  if (process.platform !== "linux") return "they are installed on Linux only";
  const reason = await installPackages(PACKAGES);
  if (reason !== undefined && process.env["CI"] === "true") throw new Error(reason);
  return reason;
}

/** Imports one of the installed packages. */
export async function importPackage<Module>(name: string, file: string): Promise<Module> {
  return (await import(pathToFileURL(join(PACKAGES, "node_modules", name, file)).href)) as Module;
}

const PROGRAMS = {
  bun: { arm64: "@oven/bun-linux-aarch64/bin/bun", x64: "@oven/bun-linux-x64-baseline/bin/bun" },
  deno: { arm64: "@deno/linux-arm64-glibc/deno", x64: "@deno/linux-x64-glibc/deno" },
} as const;

/** The path of a runtime's program. */
export function programOf(runtime: keyof typeof PROGRAMS): string {
  return join(PACKAGES, "node_modules", PROGRAMS[runtime][process.arch === "arm64" ? "arm64" : "x64"]);
}

/** What we use of esbuild, which is not a dependency of the project. */
export interface OutputFile {
  readonly path: string;
  readonly contents: Uint8Array;
  readonly text: string;
}

export interface Built {
  readonly outputFiles: readonly OutputFile[];
  readonly warnings: readonly { readonly text: string }[];
  readonly metafile?: {
    readonly inputs: Readonly<Record<string, unknown>>;
    readonly outputs: Readonly<Record<string, { readonly imports: readonly BundleImport[] }>>;
  };
}

interface BundleImport {
  readonly path: string;
  readonly kind: string;
  readonly external?: boolean;
}

/** A new folder with programs, in which `catenary` and zod can be imported. */
export class Workspace {
  readonly folder: string = realpathSync(mkdtempSync(join(tmpdir(), "catenary-runtimes-")));

  constructor(files: Readonly<Record<string, string>> = {}) {
    mkdirSync(join(this.folder, "node_modules"));
    for (const [name, target] of [
      ["catenary", ROOT],
      ["zod", join(ROOT, "node_modules/zod")],
    ] as const) {
      symlinkSync(target, join(this.folder, "node_modules", name));
    }
    this.write("package.json", '{ "type": "module" }');
    for (const [name, text] of Object.entries(files)) this.write(name, text);
  }

  write(name: string, text: string): string {
    const file = join(this.folder, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    return file;
  }

  /** Bundles one file with esbuild. Warnings fail, since users would see them. */
  async bundle(entry: string, options: object = {}): Promise<readonly OutputFile[]> {
    const { outputFiles, warnings } = await this.build(entry, options);
    if (warnings.length > 0) throw new Error(warnings.map(({ text }) => text).join("\n"));
    return outputFiles;
  }

  async build(entry: string, options: object): Promise<Built> {
    const { build } = await importPackage<{ build(options: object): Promise<Built> }>("esbuild", "lib/main.js");
    return build({
      entryPoints: [join(this.folder, entry)],
      absWorkingDir: this.folder,
      outdir: "out",
      bundle: true,
      write: false,
      format: "esm",
      logLevel: "silent",
      ...options,
    });
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A server with one tool for each thing that a runtime could lack. */
export const SERVER = `
import { createServer, inputRequired } from "catenary/server";
import { z } from "zod";

const FORM = { type: "object", properties: { name: { type: "string" } } };
const params = { message: "Who?", requestedSchema: FORM };
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export const createNotes = () =>
  createServer({ name: "notes", version: "1.0.0", sealKey: "a key" })
    .tool("echo", { input: z.object({ text: z.string() }) }, ({ text }) => text)
    .tool("add", { input: { type: "object", properties: { n: { type: "number" } }, required: ["n"] } }, ({ n }) => String(n + 1))
    .tool("steps", {}, async (_args, { progress }) => {
      progress(1, 2);
      await pause(5);
      return "all";
    })
    .tool("ask", {}, async (_args, { ask }) => (await ask.elicit(params)).content.name)
    .tool("return", {}, (_args, { answers }) =>
      answers.who === undefined
        ? inputRequired({ who: { method: "elicitation/create", params } })
        : answers.who.content.name,
    )
    .tool("slow", { task: "required" }, async () => {
      await pause(20);
      return "done";
    })
    .tool("host", {}, (_args, { env }) => String(env?.REGION))
    .resource("note://one", { name: "one" }, () => new Uint8Array([1, 2, 255]));
`;

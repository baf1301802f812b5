// The files of this machine that the gateway of a config runs, and their digest. A user approves a config together with
// them, so a changed module is asked about like a changed config. What a program finds by itself, such as a package, is
// not among them.

import { createHash } from "node:crypto";
import { stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { readBounded } from "../core/files.ts";
import { relativeImports } from "../modules/load-module.ts";
import { findProgram } from "../process/program.ts";
import type { UpstreamSource } from "./kinds.ts";

const SCRIPT = /\.(?:[cm]?[jt]sx?|py|rb|pl|php|sh|jar)$/;
const MODULE = /\.[cm]?[jt]s$/;
/** How many files are read, and how many bytes of each. */
const MAX_FILES = 1_000;
const MAX_FILE_BYTES = 67_108_864;

/** The files that an entry runs: its programs, its module, and scripts among its arguments. */
export async function filesOf(entry: UpstreamSource, folder: string): Promise<string[]> {
  const found = await Promise.all((entry.programs ?? []).map(({ command }) => findProgram(command)));
  return [...found.filter((one) => one !== undefined), ...scriptsOf(entry, folder)];
}

function scriptsOf({ settings }: UpstreamSource, folder: string): string[] {
  const { module, args = [], cwd = folder } = settings as { module?: string; args?: readonly string[]; cwd?: string };
  const scripts = args.filter((arg) => SCRIPT.test(arg)).map((arg) => resolve(cwd, arg));
  return module === undefined ? scripts : [module, ...scripts];
}

/** The files that an entry names by a path. A program that is found by its name belongs to the machine. */
function namedFiles(entry: UpstreamSource, folder: string): string[] {
  const { envFile, openapi } = entry.settings as { envFile?: string; openapi?: unknown };
  const programs = (entry.programs ?? []).flatMap(({ command: { command, cwd = folder } }) =>
    /[/\\]/.test(command) ? [resolve(cwd, command)] : [],
  );
  const document = typeof openapi === "string" && !/^https?:/i.test(openapi) ? [openapi] : [];
  return [...programs, ...scriptsOf(entry, folder), ...(envFile === undefined ? [] : [envFile]), ...document];
}

type Middleware = readonly { readonly kind: string; readonly file?: string }[];

/** A config, as far as it says what runs. */
interface RunningPart {
  readonly path: string;
  readonly upstreams: ReadonlyMap<string, UpstreamSource & { readonly use: Middleware }>;
  readonly chain: Middleware;
}

/** Changes with every file that the config names by a path, and with what modules import by relative paths. */
export async function digestFiles(config: RunningPart): Promise<string> {
  const folder = dirname(config.path);
  const upstreams = [...config.upstreams.values()];
  const middleware = [...config.chain, ...upstreams.flatMap(({ use }) => use)];
  const files = new Set([
    ...upstreams.flatMap((entry) => namedFiles(entry, folder)),
    ...middleware.flatMap(({ kind, file }) => (kind === "module" && file !== undefined ? [file] : [])),
  ]);
  const digest = createHash("sha256");
  let read = 0;
  for (const file of files) {
    if (read === MAX_FILES) break;
    read += 1;
    const content = await readBounded(file, MAX_FILE_BYTES).catch(() => undefined);
    digest.update(JSON.stringify([file, content?.length ?? "cannot be read"])).update(content ?? "");
    if (content === undefined || !MODULE.test(file)) continue;
    for (const name of relativeImports(content.toString())) {
      const imported = await findImported(resolve(dirname(file), name));
      if (imported !== undefined) files.add(imported);
    }
  }
  return digest.digest("hex");
}

/** The file of a relative import, with the extension that may be left out or be that of the compiled file. */
async function findImported(path: string): Promise<string | undefined> {
  const candidates = [path, path.replace(/js$/, "ts"), `${path}.js`, `${path}.ts`, `${path}.cjs`, `${path}/index.js`];
  for (const candidate of candidates) {
    if ((await stat(candidate).catch(() => undefined))?.isFile() === true) return candidate;
  }
  return undefined;
}

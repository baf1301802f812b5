// The files of this machine that the gateway of a config runs, and their digest. A user approves a config together with
// them, so a changed module is asked about like a changed config. What a program finds by itself, such as a package, is
// not among them.

import { createHash } from "node:crypto";
import { realpath, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { readBounded } from "../core/files.ts";
import { localImports, localPath } from "../modules/load-module.ts";
import { findProgram } from "../process/spawn-problem.ts";
import { isInterpreter, isShell, SHELL_CODE } from "../process/runners.ts";
import type { UpstreamSource } from "./kinds.ts";

const SCRIPT = /\.(?:[cm]?[jt]sx?|py|rb|pl|php|sh|jar)$/;
/** What may import other files: JavaScript, TypeScript, and scripts without an extension. */
const MODULE = /\.[cm]?[jt]sx?$|(?:^|[/\\])[^.]+$/;
/** Options of Node whose value is a module that is loaded first. */
const PRELOAD = /^(?:--(?:import|require|loader|experimental-loader)|-r)$/;
/** How many files are read, how many imports are looked up, and how many bytes of each file are read. */
const MAX_FILES = 1_000;
const MAX_IMPORTS = 10_000;
const MAX_FILE_BYTES = 67_108_864;
const MAX_PACKAGE_BYTES = 1_048_576;

/** The files that an entry runs: its programs, its module, and scripts among its arguments. */
export async function filesOf(entry: UpstreamSource, folder: string): Promise<string[]> {
  const programs = await Promise.all((entry.programs ?? []).map(({ command }) => findProgram(command)));
  return [...programs.filter((path) => path !== undefined), ...(await scriptsOf(entry, folder))];
}

async function scriptsOf({ settings, modules = [] }: UpstreamSource, folder: string): Promise<string[]> {
  const { command, args = [], env = {}, cwd = folder } = settings as Settings;
  const main = command !== undefined && isInterpreter(command) ? await mainScript(command, args, cwd) : [];
  const inArguments = args.map((arg) => arg.replace(/^-[^=]*=/, "")).filter((arg) => SCRIPT.test(arg));
  const preloaded = [...preloads(args), ...preloads(wordsOf(env["NODE_OPTIONS"] ?? ""))];
  const named = await Promise.all(preloaded.map((specifier) => runFiles(localPath(specifier, cwd))));
  const scripts = inArguments.map((arg) => localPath(arg, cwd));
  return [...modules, ...main, ...scripts, ...named.flat()];
}

/** The fields of entries that name scripts. */
interface Settings {
  readonly command?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/**
 * What an interpreter runs: the first argument that names a file or a folder, also if it may be the value of the option
 * before it. Code in an argument has no file.
 */
async function mainScript(command: string, args: readonly string[], cwd: string): Promise<string[]> {
  const isCode = isShell(command) ? SHELL_CODE : /^-(?:[cemp]|pe)$|^--(?:eval|print)(?:=|$)/;
  const scripts: string[] = [];
  for (const [at, arg] of args.entries()) {
    if (isCode.test(arg)) break;
    if (arg.startsWith("-") || PRELOAD.test(args[at - 1] ?? "")) continue;
    const files = await runFiles(localPath(arg, cwd));
    scripts.push(...files);
    const mayBeValue = at > 0 && args[at - 1]?.startsWith("-") === true && !SCRIPT.test(arg);
    if (files.length > 0 && !mayBeValue) break;
  }
  return scripts;
}

/** The modules that options of Node load, as far as they are named by a path or a file: URL. */
function preloads(words: readonly string[]): string[] {
  const values = words.flatMap((word, at) => {
    const [option = "", ...value] = word.split("=");
    if (!PRELOAD.test(option)) return [];
    return [value.length > 0 ? value.join("=") : (words[at + 1] ?? "")];
  });
  return values.filter((value) => /^(?:\.{0,2}[/\\]|file:)/.test(value));
}

/** The words of NODE_OPTIONS. Double quotes keep spaces. */
function wordsOf(text: string): string[] {
  return Array.from(text.matchAll(/(?:"[^"]*"|[^\s"])+/g), ([word]) => word.replaceAll('"', ""));
}

/** The files that an entry names by a path. A program that is found by its name belongs to the machine. */
async function namedFiles(entry: UpstreamSource, folder: string): Promise<string[]> {
  const programs = (entry.programs ?? []).flatMap(({ command: { command, cwd = folder } }) =>
    /[/\\]/.test(command) ? [resolve(cwd, command)] : [],
  );
  return [...programs, ...(await scriptsOf(entry, folder)), ...(entry.files ?? [])];
}

type Middleware = readonly { readonly file?: string | undefined }[];

/** An entry, as far as it says what runs. */
export type RunningEntry = UpstreamSource & { readonly use: Middleware };

/** A config, as far as it says what runs. */
export interface RunningPart {
  readonly path: string;
  readonly upstreams: ReadonlyMap<string, RunningEntry>;
  readonly chain: Middleware;
}

/** The modules of middleware. */
export function middlewareFiles({ chain, upstreams }: RunningPart): string[] {
  return [...chain, ...[...upstreams.values()].flatMap(({ use }) => use)].flatMap(({ file }) => file ?? []);
}

/** Changes with every file that the config runs by a path, and with what modules import by a path. */
export async function digestFiles(config: RunningPart): Promise<string> {
  const folder = dirname(config.path);
  const named = await Promise.all([...config.upstreams.values()].map((entry) => namedFiles(entry, folder)));
  const files = new Set([...named.flat(), ...middlewareFiles(config)]);
  const digest = createHash("sha256");
  const imports = new Set<string>();
  let read = 0;
  for (const file of files) {
    if (read === MAX_FILES) break;
    read += 1;
    const content = await readBounded(file, MAX_FILE_BYTES).catch(() => undefined);
    digest.update(JSON.stringify([file, content?.length ?? (await unreadState(file))])).update(content ?? "");
    if (content === undefined || !MODULE.test(file)) continue;
    // Node resolves imports from where the file is, not from a link to it.
    for (const imported of localImports(content.toString(), await realpath(file).catch(() => file))) {
      if (imports.has(imported) || imports.size === MAX_IMPORTS) continue;
      imports.add(imported);
      for (const path of await runFiles(imported)) files.add(path);
    }
  }
  return digest.digest("hex");
}

/** What changes with a file that is too long to be read, or that may be run and not read. */
async function unreadState(file: string): Promise<unknown> {
  const stats = await stat(file).catch(() => undefined);
  return stats?.isFile() === true ? [stats.size, stats.ctimeMs] : "cannot be read";
}

/**
 * The files that may run if a path is run or imported: the file, with an extension that may be left out or be that of
 * the compiled file; or the main file of a folder, with the package.json that names it. All that exist, since loaders
 * differ in which they prefer.
 */
async function runFiles(path: string): Promise<string[]> {
  const sources = [path.replace(/js$/, "ts"), path.replace(/jsx?$/, "tsx")];
  const files = await existing([path, ...sources, ...ENDINGS.map((ending) => `${path}${ending}`)]);
  if ((await stat(path).catch(() => undefined))?.isDirectory() !== true) return files;
  const description = join(path, "package.json");
  const main = mainOf(await readBounded(description, MAX_PACKAGE_BYTES).catch(() => undefined));
  const mains = main === undefined ? [] : [main, `${main}.js`, `${main}/index.js`];
  const entryFiles = await existing([...mains, "index.js", "index.ts", "__main__.py"].map((name) => join(path, name)));
  return [...files, ...(main === undefined ? [] : [description]), ...entryFiles];
}

const ENDINGS = [".js", ".ts", ".tsx", ".cjs", ".mjs", ".node"];

function mainOf(description: Buffer | undefined): string | undefined {
  try {
    const { main } = JSON.parse(description?.toString() ?? "{}") as { main?: unknown };
    return typeof main === "string" ? main : undefined;
  } catch {
    return undefined;
  }
}

async function existing(candidates: readonly string[]): Promise<string[]> {
  const isFile = async (path: string): Promise<boolean> => (await stat(path).catch(() => undefined))?.isFile() === true;
  const existingFiles = await Promise.all(
    [...new Set(candidates)].map(async (path) => ((await isFile(path)) ? [path] : [])),
  );
  return existingFiles.flat();
}

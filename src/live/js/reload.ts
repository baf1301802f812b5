// reload: loads modules anew whose files have changed, with all modules that import them, and assigns the session's
// names that were imported from them. Old modules stay in memory, since Node keeps every ES module.

import { Buffer } from "node:buffer";
import { once } from "node:events";
import { readFileSync, realpathSync, statSync } from "node:fs";
import * as nodeModule from "node:module";
import { relative } from "node:path";
import { performance } from "node:perf_hooks";
import process from "node:process";
import { fileURLToPath, pathToFileURL, URL } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { MessageChannel, type MessagePort } from "node:worker_threads";
import { packageFile } from "../../core/files.ts";
import { isTypeScript } from "../../modules/typescript.ts";
import type { Globals, Import } from "./globals.ts";
import { loadedScripts } from "./inspector.ts";
import type { Thrown } from "./messages.ts";
import { describeThrown } from "./print.ts";

// Saved because the user's code may declare these names.
const NativeMap = Map;
const NativePromise = Promise;
const NativeSet = Set;
const encode = encodeURIComponent;
const { parse: parseJson } = JSON;
const { entries, hasOwn } = Object;
const { createRequire, register } = nodeModule;
const require = createRequire(import.meta.url);
/** Newer versions of Node remove types themselves. */
const { stripTypeScriptTypes: stripTypes } = nodeModule as { stripTypeScriptTypes?: (source: string) => string };

/** Node loads it in the thread of its module hooks: it adds the version to the URL of each module that was reloaded. */
const HOOK = `
let versions = new Map();
export function initialize(port) {
  port.on("message", (given) => {
    versions = given;
    port.postMessage("ready");
  });
}
export async function resolve(specifier, context, next) {
  const found = await next(specifier, context);
  const version = versions.get(found.url);
  return version === undefined ? found : { ...found, url: version };
}`;

/** Also finds what only looks like an import, which does no harm: at worst, a module is reloaded without need. */
const SPECIFIER = /\b(?:from|import|require)\s*(?:\(\s*)?(["'`])([^"'`\n]+)\1/g;

/** A file that was loaded as a module. */
interface ModuleFile {
  /** Without a version. */
  readonly url: string;
  readonly path: string;
  readonly kind: "esm" | "commonjs" | "json";
  /** What the engine has compiled, if it still has it. */
  readonly source: string | undefined;
}

export interface ReloadReport {
  /** The number of modules that were checked. */
  readonly checked: number;
  readonly reloaded: readonly { readonly file: string; readonly isChanged: boolean }[];
  readonly failed: readonly { readonly file: string; readonly thrown: Thrown }[];
  /** The names of the session that have values of the new modules now. */
  readonly names: readonly string[];
  /** Names that have no value in the new modules, so that they keep the old one. */
  readonly missing: readonly string[];
}

/** What must be undone if a reload is stopped in the middle. */
interface Attempt {
  readonly cached: Map<string, NodeJS.Module | undefined>;
}

type Modules = ReadonlyMap<string, ModuleFile>;

export class Reloader {
  readonly #globals: Globals;
  /** The URLs of the newest versions of reloaded ES modules, by their own URLs. */
  #versions: ReadonlyMap<string, string> = new NativeMap();
  /** When each module was last reloaded, by its path. */
  readonly #loadedAt = new NativeMap<string, number>();
  #count = 0;
  #port: MessagePort | undefined;
  #attempt: Attempt | undefined;

  constructor(globals: Globals) {
    this.#globals = globals;
  }

  /** Never settles if it is aborted. */
  async reload(): Promise<ReloadReport> {
    const files = await this.#loadedFiles();
    const changed = new NativeSet<string>();
    for (const file of files.values()) if (await this.#isChanged(file)) changed.add(file.url);
    const common = { checked: files.size, names: [], missing: [] };
    if (changed.size === 0) return { ...common, reloaded: [], failed: [] };
    const graph = importGraph(files, changed);
    const attempt: Attempt = { cached: new NativeMap<string, NodeJS.Module | undefined>() };
    this.#attempt = attempt;
    this.#count += 1;
    const order = inOrder(withImporters(changed, graph), graph);
    const versions = new NativeMap(this.#versions);
    for (const url of order) versions.set(url, `${url}${url.includes("?") ? "&" : "?"}reload=${this.#count}`);
    await this.#tell(versions);
    for (const url of order) uncache(files.get(url), attempt.cached);
    const waiting = new NativeSet(order);
    const reloaded = new NativeMap<string, ModuleFile>();
    const failed: [url: string, error: unknown][] = [];
    for (const url of order) {
      waiting.delete(url);
      const file = files.get(url) as ModuleFile;
      const isNeeded = [...(graph.get(url) ?? [])].some(
        (dependency) => reloaded.has(dependency) || waiting.has(dependency),
      );
      try {
        // If what it imports has failed, the old module is still the right one.
        if (!changed.has(url) && !isNeeded) this.#keep(file, versions, attempt);
        else {
          await load(file, versions);
          reloaded.set(url, file);
        }
      } catch (error) {
        failed.push([url, error]);
        this.#keep(file, versions, attempt);
      }
      if (!reloaded.has(url)) await this.#tell(versions);
      if (this.#attempt !== attempt) await new NativePromise(() => undefined);
    }
    this.#versions = versions;
    for (const { path } of reloaded.values()) this.#loadedAt.set(path, now());
    // From here on, the new modules are used.
    this.#attempt = undefined;
    const assigned = await this.#assign(reloaded, versions);
    const shownPath = (url: string): string => relative(process.cwd(), files.get(url)?.path ?? url);
    return {
      ...common,
      ...assigned,
      reloaded: [...reloaded.keys()].map((url) => ({ file: shownPath(url), isChanged: changed.has(url) })),
      failed: failed.map(([url, error]) => ({ file: shownPath(url), thrown: describeThrown(error) })),
    };
  }

  /** Undoes what a reload that was stopped has begun. */
  abort(): void {
    const attempt = this.#attempt;
    if (attempt === undefined) return;
    this.#attempt = undefined;
    for (const [path, module] of attempt.cached) if (module !== undefined) require.cache[path] = module;
    void this.#tell(this.#versions);
  }

  /** Makes the module what it was before the reload. */
  #keep({ url, path }: ModuleFile, versions: Map<string, string>, { cached }: Attempt): void {
    const before = this.#versions.get(url);
    if (before === undefined) versions.delete(url);
    else versions.set(url, before);
    const module = cached.get(path);
    if (module !== undefined) require.cache[path] = module;
  }

  /** Resolves when the hook knows the versions. */
  async #tell(versions: ReadonlyMap<string, string>): Promise<void> {
    if (this.#port === undefined) {
      const { port1, port2 } = new MessageChannel();
      const url = `data:text/javascript,${encode(HOOK)}`;
      register(url, { data: port2, transferList: [port2] });
      port1.unref();
      this.#port = port1;
    }
    const ready = once(this.#port, "message");
    const send = this.#port.postMessage.bind(this.#port);
    send(versions);
    await ready;
  }

  /** The files of all modules, but for those in packages and our own. */
  async #loadedFiles(): Promise<Modules> {
    const files = new NativeMap<string, ModuleFile>();
    for (const { url: versioned, source, isModule } of loadedScripts(isUserFile)) {
      const url = versioned.replace(/[?&]reload=\d+$/, "");
      const path = fileURLToPath(url);
      const isCurrent = isModule ? versioned === (this.#versions.get(url) ?? url) : hasOwn(require.cache, path);
      // Scripts come in the order in which they were compiled, so the last of a CommonJS module is the current one.
      if (isCurrent) files.set(url, { url, path, kind: isModule ? "esm" : "commonjs", source });
    }
    for (const [path, module] of entries(require.cache)) {
      const { href: url } = pathToFileURL(path);
      if (module !== undefined && isUserFile(url) && !files.has(url))
        files.set(url, { url, path, kind: "commonjs", source: undefined });
    }
    const imported = [...this.#globals.imports.values()].map(urlOfImport);
    const inFiles = [...files.values()].flatMap((file) => importsOf(file, file.source ?? ""));
    for (const url of [...imported, ...inFiles]) {
      if (url !== undefined && url.endsWith(".json") && isUserFile(url) && !files.has(url))
        files.set(url, { url, path: fileURLToPath(url), kind: "json", source: undefined });
    }
    return files;
  }

  async #isChanged(file: ModuleFile): Promise<boolean> {
    const { path, source, kind } = file;
    const text = readText(path);
    if (text === undefined) return false;
    if (path.endsWith(".json")) {
      try {
        const loaded: unknown = kind === "json" ? await load(file, this.#versions) : require.cache[path]?.exports;
        return !isDeepStrictEqual(loaded, parseJson(text));
      } catch {
        // The error shows when it is loaded.
        return true;
      }
    }
    if (source === undefined) return statSync(path).mtimeMs > (this.#loadedAt.get(path) ?? performance.timeOrigin);
    if (source === text) return false;
    if (!isTypeScript(path) && !path.endsWith(".cts")) return true;
    const written = typedSource(source);
    if (written !== undefined) return written !== text;
    try {
      // Node has removed the types, and added a line.
      return source.replace(/\n\n\/\/# sourceURL=.*$/, "") !== stripTypes?.(text);
    } catch {
      return true;
    }
  }

  /** Assigns the names that still have the values that were imported. */
  async #assign(
    reloaded: Modules,
    versions: ReadonlyMap<string, string>,
  ): Promise<{ readonly names: string[]; readonly missing: string[] }> {
    const names: string[] = [];
    const missing: string[] = [];
    for (const [name, imported] of this.#globals.imports) {
      const file = reloaded.get(urlOfImport(imported) ?? "");
      if (file === undefined) continue;
      const isRequired = imported.isRequire && file.kind === "commonjs";
      let value: unknown = isRequired ? require(file.path) : await importFile(file, versions);
      try {
        for (const key of imported.path) value = (value as Record<string, unknown> | undefined)?.[key];
      } catch {
        // The getter of an export has failed, and will again where it is used.
        value = undefined;
      }
      if (value === undefined) missing.push(name);
      else if (this.#globals.reimport(name, value)) names.push(name);
    }
    return { names, missing };
  }
}

function now(): number {
  return performance.timeOrigin + performance.now();
}

const PACKAGE_FOLDER = pathToFileURL(packageFile("dist/")).href;

function isUserFile(url: string): boolean {
  return url.startsWith("file:") && !url.includes("/node_modules/") && !url.startsWith(PACKAGE_FOLDER);
}

/** Undefined if the file cannot be read. */
function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").replace(/^\uFEFF/, "");
  } catch {
    return undefined;
  }
}

/** The TypeScript from which our own compiler made the source. */
function typedSource(source: string): string | undefined {
  const [, map] = /\n\/\/# sourceMappingURL=data:application\/json;base64,([\w+/=]+)\s*$/.exec(source) ?? [];
  if (map === undefined) return undefined;
  const { sourcesContent } = parseJson(Buffer.from(map, "base64").toString()) as { sourcesContent?: string[] };
  return sourcesContent?.[0];
}

/** The value of `module.exports`, or the namespace of an ES module. For JSON, the value itself. */
async function load(file: ModuleFile, versions: ReadonlyMap<string, string>): Promise<unknown> {
  if (file.kind === "commonjs") return require(file.path) as unknown;
  const module = await importFile(file, versions);
  return file.kind === "json" ? module["default"] : module;
}

async function importFile(
  { url, path }: ModuleFile,
  versions: ReadonlyMap<string, string>,
): Promise<Record<string, unknown>> {
  const options = path.endsWith(".json") ? { with: { type: "json" } } : undefined;
  return (await import(versions.get(url) ?? url, options)) as Record<string, unknown>;
}

/** Removes a CommonJS module from the cache, and remembers it. Node may also keep imported JSON there. */
function uncache(file: ModuleFile | undefined, cached: Attempt["cached"]): void {
  if (file === undefined) return;
  cached.set(file.path, require.cache[file.path]);
  delete require.cache[file.path];
}

function urlOfImport({ specifier, from }: Import): string | undefined {
  return resolveFrom(from, specifier);
}

/** The URL of what a file imports; undefined if it cannot be found. */
function resolveFrom(path: string, specifier: string): string | undefined {
  try {
    const url = /^(?:\.{0,2}\/|file:)/.test(specifier) ? new URL(specifier, pathToFileURL(path)) : undefined;
    const isFile = url !== undefined && statSync(url, { throwIfNoEntry: false })?.isFile() === true;
    if (isFile) return pathToFileURL(realpathSync(url)).href + url.search;
    return pathToFileURL(createRequire(path).resolve(specifier)).href;
  } catch {
    return undefined;
  }
}

function importsOf({ path }: ModuleFile, text: string): string[] {
  const urls = [...text.matchAll(SPECIFIER)].map(([, , specifier = ""]) => resolveFrom(path, specifier));
  return urls.filter((url) => url !== undefined);
}

type Graph = ReadonlyMap<string, ReadonlySet<string>>;

/** What each of the files imports of the others. */
function importGraph(files: Modules, changed: ReadonlySet<string>): Graph {
  const graph = new NativeMap<string, Set<string>>();
  for (const file of files.values()) {
    const text = changed.has(file.url) ? undefined : file.source;
    const imported = importsOf(file, text ?? readText(file.path) ?? "");
    graph.set(file.url, new NativeSet(imported.filter((url) => files.has(url) && url !== file.url)));
  }
  return graph;
}

/** The changed files and all that import them, also through others. */
function withImporters(changed: ReadonlySet<string>, graph: Graph): ReadonlySet<string> {
  const all = new NativeSet(changed);
  for (const url of all) for (const [importer, imported] of graph) if (imported.has(url)) all.add(importer);
  return all;
}

/** Each file after those that it imports, as far as they do not import each other. */
function inOrder(urls: ReadonlySet<string>, graph: Graph): string[] {
  const ordered = new NativeSet<string>();
  const seen = new NativeSet<string>();
  const visit = (url: string): void => {
    if (!urls.has(url) || seen.has(url)) return;
    seen.add(url);
    for (const imported of graph.get(url) ?? []) visit(imported);
    ordered.add(url);
  };
  for (const url of urls) visit(url);
  return [...ordered];
}

// The rules for source files as functions: each takes sources and returns the faults it finds, so that a test can
// run it on a bad sample as well as on the real tree. CONTRIBUTING.md explains the rules.

import { posix } from "node:path";
import { importsOf, isTest, withoutComments } from "./source.ts";
import type { SourceFile } from "./source.ts";

/**
 * The folders of src/ from the bottom up. A folder may import the folders listed before it, and itself; the files right
 * under src/ are above all folders but cli.
 */
const LAYERS: readonly string[] = [
  "jsonrpc",
  "core",
  "process",
  "modules",
  "protocol",
  "tools",
  "transport",
  "tasks",
  "dialogue",
  "http",
  "auth",
  "server",
  "client",
  "chain",
  "live",
  "programs",
  "openapi",
  "config",
  "console",
];

/** Folders that never import each other. */
const APART: readonly string[] = ["chain", "live", "programs", "openapi"];
/** A chain is a client of its upstreams, and no server. */
const FORBIDDEN_IMPORTS: Readonly<Record<string, readonly string[]>> = {
  chain: ["server"],
  server: ["dialogue", "http"],
};

const DOOR = "src/*.ts";
const CLI = "cli";

function folderOf(path: string): string {
  const [first = "", second] = path.replace(/^src\//, "").split("/");
  return second === undefined ? DOOR : first;
}

function rankOf(folder: string): number {
  if (folder === CLI) return LAYERS.length + 1;
  return folder === DOOR ? LAYERS.length : LAYERS.indexOf(folder);
}

const isOurs = (specifier: string): boolean => specifier.startsWith(".");

function target(file: SourceFile, specifier: string): string {
  return posix.join(posix.dirname(file.path), specifier);
}

function layerFault(from: string, to: string): string | undefined {
  const unknown = [from, to].find((folder) => rankOf(folder) < 0);
  if (unknown !== undefined) return `"${unknown}" is not a known folder`;
  if (from === to) return undefined;
  if (rankOf(to) > rankOf(from)) return `"${to}" is above "${from}"`;
  const isForbidden = (APART.includes(from) && APART.includes(to)) || FORBIDDEN_IMPORTS[from]?.includes(to) === true;
  return isForbidden ? `"${from}" may not import "${to}"` : undefined;
}

/** Imports that go up the layers, or out of src/. Tests may import what they need. */
export function importFaults(files: readonly SourceFile[]): string[] {
  return files
    .filter((file) => !isTest(file.path))
    .flatMap((file) =>
      importsOf(file.text).flatMap(({ specifier }) => {
        if (!isOurs(specifier)) return [];
        const path = target(file, specifier);
        const fault = path.startsWith("src/")
          ? layerFault(folderOf(file.path), folderOf(path))
          : "the library imports nothing outside src/";
        return fault === undefined ? [] : [`${file.path} imports ${specifier}: ${fault}`];
      }),
    );
}

/** Which of our files each file imports: statically, lazily, or only for types. Tests are left out. */
function importGraph(files: readonly SourceFile[]): Map<string, Set<string>> {
  const sources = files.filter((file) => !isTest(file.path));
  const known = new Set(sources.map(({ path }) => path));
  return new Map(
    sources.map((file) => {
      const targets = importsOf(file.text)
        .filter(({ specifier }) => isOurs(specifier))
        .map(({ specifier }) => target(file, specifier));
      return [file.path, new Set(targets.filter((path) => known.has(path)))];
    }),
  );
}

/** Files that import each other in a cycle of any kind, as "a.ts -> b.ts -> a.ts". */
export function importCycles(files: readonly SourceFile[]): string[] {
  const graph = importGraph(files);
  const done = new Set<string>();
  const found: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    const seen = trail.indexOf(path);
    if (seen >= 0) found.push([...trail.slice(seen), path].join(" -> "));
    if (seen >= 0 || done.has(path)) return;
    for (const next of graph.get(path) ?? []) visit(next, [...trail, path]);
    done.add(path);
  };
  for (const path of graph.keys()) visit(path, []);
  return found;
}

function packageOf(specifier: string): string {
  return specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
}

/** Packages that the library imports without depending on them. Node's own modules need the prefix `node:`. */
export function packageFaults(files: readonly SourceFile[], dependencies: readonly string[]): string[] {
  return files
    .filter((file) => !isTest(file.path))
    .flatMap((file) =>
      importsOf(file.text)
        .filter(({ specifier }) => !isOurs(specifier) && !specifier.startsWith("node:"))
        .filter(({ specifier }) => !dependencies.includes(packageOf(specifier)))
        .map(({ specifier }) => `${file.path} imports ${specifier}, which is not a dependency`),
    );
}

/** Every file that is loaded with a file: its static imports, followed through our own files. */
export function loadedBy(entry: string, files: readonly SourceFile[]): { files: Set<string>; outside: string[] } {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const reached = new Set<string>([entry]);
  const outside: string[] = [];
  for (const path of reached) {
    const file = byPath.get(path);
    if (file === undefined) {
      outside.push(`${path} does not exist`);
      continue;
    }
    for (const { specifier, kind } of importsOf(file.text)) {
      if (kind !== "static") continue;
      if (isOurs(specifier)) reached.add(target(file, specifier));
      else if (!specifier.startsWith("node:")) outside.push(`${path} loads ${specifier}`);
    }
  }
  return { files: reached, outside };
}

const REVISION_FOLDER = "src/protocol/revisions/";

/** Names of revisions outside their folder, in tests and comments too. */
export function revisionFaults(files: readonly SourceFile[], names: readonly string[]): string[] {
  return files
    .filter((file) => !file.path.startsWith(REVISION_FOLDER))
    .flatMap((file) => names.filter((name) => file.text.includes(name)).map((name) => `${file.path} names ${name}`));
}

/** The limit of lines for code, and for tests. */
export const MAX_LINES = 500;
export const MAX_TEST_LINES = 600;
const MAX_HEADER_LINES = 6;

function lines(text: string): number {
  return text.split("\n").length - (text.endsWith("\n") ? 1 : 0);
}

export function longerThan(limit: number, testLimit: number, files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, text }) => {
    const most = isTest(path) ? testLimit : limit;
    return lines(text) > most ? [`${path} has ${lines(text)} lines; the limit is ${most}`] : [];
  });
}

/** Every file begins with a short comment. */
export function headerFaults(files: readonly SourceFile[]): string[] {
  return files.flatMap((file) => {
    const body = file.text.replace(/^#![^\n]*\n/, "");
    const header = /^(?:\/\/[^\n]*\n)+|^\/\*[^]*?\*\//.exec(body)?.[0].trimEnd();
    if (header === undefined) return [`${file.path} does not begin with a comment`];
    const length = lines(header);
    return length <= MAX_HEADER_LINES
      ? []
      : [`${file.path} begins with ${length} comment lines; the limit is ${MAX_HEADER_LINES}`];
  });
}

/** Comments in the middle of a file that stand alone, as a header does: the file is about a second thing from there on. */
export function secondHeaders(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, text }) => {
    const found = [...text.matchAll(/(?<=\n\n)(?:\/\/(?!\/)[^\n]*\n)+(?=\n)/g)];
    return found.map(({ 0: comment }) => `${path}: ${comment.split("\n", 1)[0]}`);
  });
}

export interface Exception {
  readonly file: string;
  readonly what: string;
  readonly why: string;
}

const FORBIDDEN: readonly (readonly [what: string, pattern: RegExp])[] = [
  ["shell: true", /\bshell\s*:\s*(?:true\b|["'`])/],
  ["eval(", /(?<![.\w$])eval\s*\(/],
  ["new Function", /\bnew\s+Function\b/],
  // Spreading defines keys. Object.assign sets them, and setting "__proto__" changes the prototype.
  ["Object.assign(", /\bObject\.assign\s*\(/],
  ["__proto__", /\.\s*__proto__\b/],
];

/** Constructs that turn data into code. An exception that is no longer needed is a fault too. */
export function dangerFaults(files: readonly SourceFile[], exceptions: readonly Exception[]): string[] {
  const unused = new Set(exceptions);
  const faults: string[] = [];
  for (const file of files) {
    if (isTest(file.path)) continue;
    const code = withoutComments(file.text);
    for (const [what, pattern] of FORBIDDEN) {
      if (!pattern.test(code)) continue;
      const exception = exceptions.find((one) => one.file === file.path && one.what === what);
      if (exception) unused.delete(exception);
      else faults.push(`${file.path} has ${what}`);
    }
  }
  return [
    ...faults,
    ...[...unused].map((one) => `${one.file} has an exception for "${one.what}" that it does not need`),
  ];
}

/** What code calls that which is said to people. */
const SAID = "(?:message|hint|reason|problem|advice|details|said)";
const SEARCH =
  '\\??\\.(?:startsWith|endsWith|includes|indexOf|search|match|matchAll|replace|replaceAll|split(?!\\("\\\\n"))\\(\\s*';
const REGEXP = /(?<=[=(,:[] *|^ +)\/(?![*/ ])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\n\\[])+\/[dgimsuy]*(?=[\s,.;)\]])/gm;

/** How code reads a sentence. */
const READING: readonly RegExp[] = [
  new RegExp(`\\b(?:${SAID}|errorMessage\\(\\w+\\))${SEARCH}`),
  new RegExp(`\\.(?:test|exec)\\((?:(?:\\w+\\??\\.)*${SAID}|errorMessage\\(\\w+\\))\\)`),
  // Words, or a label such as "Error: ", in anything.
  new RegExp(`${SEARCH}(["'\`])(?:(?!\\1)[^\\n])*[A-Za-z]{3,}(?:: | [a-z]{2,})(?:(?!\\1)[^\\n])*\\1`),
  /new RegExp\((?:String\.raw)?[`"'][^\n]*[A-Za-z]{4,}(?: |\(\?)/,
];

/** The files whose code looks for words in what is said to people. */
export function sentenceReaders(files: readonly SourceFile[]): string[] {
  const sources = files
    .filter(({ path }) => !isTest(path))
    .map(({ path, text }) => [path, withoutComments(text, true)] as const);
  const constants = sources.flatMap(([, code]) =>
    [...code.matchAll(/\bconst ([A-Z][A-Z_]+)(?:: string)? =\s*["'`]([^\n]*)/g)].flatMap(([, name = "", value = ""]) =>
      /[A-Za-z]{3,} [a-z]{2,}/.test(value) ? [name] : [],
    ),
  );
  const patterns = [...READING];
  if (constants.length > 0) {
    patterns.push(new RegExp(`(?:\\b${SAID} [!=]== |${SEARCH}(?:\`\\W*)?)(?:${constants.join("|")})\\b`));
  }
  const reads = (code: string): boolean =>
    patterns.some((pattern) => pattern.test(code)) ||
    [...code.matchAll(REGEXP)].some(([found]) => /[A-Za-z]{3,} [a-z]{2,}|\\\[[a-z]{4,}/.test(found));
  return sources.flatMap(([path, code]) => (reads(code) ? [path] : [])).toSorted();
}

// The rules of the house as functions: each takes sources and gives the faults it finds, so that a test can
// show it a bad sample as well as the real tree. What the rules are for is told in CONTRIBUTING.md.

import { posix } from "node:path";
import { importsOf, isTest, withoutComments } from "./source.ts";
import type { SourceFile } from "./source.ts";

const BELOW_CLIENT = ["dialogue", "transport", "protocol", "core", "jsonrpc", "store", "process"];
const BELOW_CONSOLE = ["chain", "live", "programs", "server", "client", "modules", ...BELOW_CLIENT];

/** Which room may import which; a room may always import itself. Rooms that are not built yet stand here already. */
export const ROOMS: Readonly<Record<string, readonly string[]>> = {
  jsonrpc: [],
  store: [],
  process: [],
  modules: [],
  core: ["jsonrpc"],
  protocol: ["core", "jsonrpc"],
  transport: ["core", "jsonrpc", "store", "process"],
  dialogue: ["transport", "protocol", "core", "jsonrpc", "store"],
  server: ["protocol", "core", "store"],
  client: ["dialogue", "transport", "protocol", "core", "store"],
  chain: ["client", ...BELOW_CLIENT],
  live: ["server", "process", "modules", "protocol", "core", "store"],
  programs: ["server", "process", "protocol", "core", "store"],
  config: BELOW_CONSOLE,
  console: [...BELOW_CONSOLE, "config"],
};

/** The command line and the doors (index.ts and the other files right under src/) stand above all rooms. */
const ABOVE = "above the rooms";

function roomOf(path: string): string {
  const [first = "", second] = path.replace(/^src\//, "").split("/");
  return second === undefined || first === "cli" ? ABOVE : first;
}

const isOurs = (specifier: string): boolean => specifier.startsWith(".");

function target(file: SourceFile, specifier: string): string {
  return posix.join(posix.dirname(file.path), specifier);
}

function tableFault(from: string, to: string): string | undefined {
  if (from === ABOVE || from === to) return undefined;
  if (to === ABOVE) return `nothing below may import a door or the command line`;
  const allowed = ROOMS[from];
  if (allowed === undefined) return `"${from}" is not a room of the table`;
  return allowed.includes(to) ? undefined : `"${from}" may import ${allowed.join(", ") || "nothing of ours"}`;
}

/** Who imports whom across rooms, against the table. Tests may reach wherever they need to. */
export function importFaults(files: readonly SourceFile[]): string[] {
  return files
    .filter((file) => !isTest(file.path))
    .flatMap((file) =>
      importsOf(file.text).flatMap(({ specifier }) => {
        if (!isOurs(specifier)) return [];
        const path = target(file, specifier);
        const fault = path.startsWith("src/")
          ? tableFault(roomOf(file.path), roomOf(path))
          : "the library imports nothing outside src/";
        return fault === undefined ? [] : [`${file.path} imports ${specifier}: ${fault}`];
      }),
    );
}

/** A circle of rooms that import each other, as "a -> b -> a"; of a table, or of what the files do. */
export function roomCycles(imports: ReadonlyMap<string, Iterable<string>>): string[] {
  const done = new Set<string>();
  const found: string[] = [];
  const visit = (room: string, way: readonly string[]): void => {
    const seen = way.indexOf(room);
    if (seen >= 0) found.push([...way.slice(seen), room].join(" -> "));
    if (seen >= 0 || done.has(room)) return;
    for (const next of imports.get(room) ?? []) visit(next, [...way, room]);
    done.add(room);
  };
  for (const room of imports.keys()) visit(room, []);
  return found;
}

export function roomImports(files: readonly SourceFile[]): Map<string, Set<string>> {
  const imports = new Map<string, Set<string>>();
  for (const file of files) {
    if (isTest(file.path)) continue;
    const room = roomOf(file.path);
    const others = imports.get(room) ?? new Set();
    imports.set(room, others);
    for (const { specifier } of importsOf(file.text)) {
      const other = isOurs(specifier) ? roomOf(target(file, specifier)) : room;
      if (other !== room) others.add(other);
    }
  }
  return imports;
}

function packageOf(specifier: string): string {
  return specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
}

/** Packages that the library imports without depending on them; Node's own modules are written with node:. */
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

/** Everything that loading a file loads: static imports, followed through our own files. */
export function loadedBy(entry: string, files: readonly SourceFile[]): { files: Set<string>; outside: string[] } {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const reached = new Set<string>([entry]);
  const outside: string[] = [];
  for (const path of reached) {
    const file = byPath.get(path);
    if (file === undefined) {
      outside.push(`${path} is not there`);
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

/** Names of revisions outside their folder; tests and comments are no exception. */
export function revisionFaults(files: readonly SourceFile[], names: readonly string[]): string[] {
  return files
    .filter((file) => !file.path.startsWith(REVISION_FOLDER))
    .flatMap((file) => names.filter((name) => file.text.includes(name)).map((name) => `${file.path} names ${name}`));
}

export const MOST_LINES = 400;
export const AIMED_LINES = 250;

function lines(text: string): number {
  return text.split("\n").length - (text.endsWith("\n") ? 1 : 0);
}

export function longerThan(limit: number, files: readonly SourceFile[]): string[] {
  return files
    .filter((file) => lines(file.text) > limit)
    .map((file) => `${file.path} has ${lines(file.text)} lines; the limit is ${limit}`);
}

/** Every file opens with a comment, and not with a long one. */
export function openingFaults(files: readonly SourceFile[]): string[] {
  return files.flatMap((file) => {
    const body = file.text.replace(/^#![^\n]*\n/, "");
    const opening = /^(?:\/\/[^\n]*\n)+|^\/\*[^]*?\*\//.exec(body)?.[0].trimEnd();
    if (opening === undefined) return [`${file.path} does not open with a comment`];
    const length = lines(opening);
    return length <= 8 ? [] : [`${file.path} opens with ${length} comment lines; the limit is 8`];
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
  // Peer data is copied by spreading, which defines keys; Object.assign sets them, and "__proto__" is a setter.
  ["Object.assign(", /\bObject\.assign\s*\(/],
  ["__proto__", /\.\s*__proto__\b/],
];

/** Ways of turning data into code. An exception that is no longer needed is a fault too. */
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
  return [...faults, ...[...unused].map((one) => `${one.file} is excepted from "${one.what}" and does not have it`)];
}

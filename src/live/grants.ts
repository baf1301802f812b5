// The files of the host that a sandbox shows: the paths of `read` and `write`. A path is resolved once, when the server
// is created, and from then on is the same place. Code in a sandbox may replace what lies in a folder of `write` by a
// link, so nothing else that we show, start or trust may lie in one.

import { constants, lstatSync, readlinkSync } from "node:fs";
import { open, readlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, isAbsolute, join, resolve } from "node:path";
import { cacheFolder, homeFolder, packageFile } from "../core/files.ts";
import { stateDirectory } from "../core/private-files.ts";
import type { Optional } from "../core/values.ts";

/** What a session in a sandbox may read and change. */
type GrantOptions = Optional<Record<"read" | "write", readonly string[]>>;

/** A path of `read` or `write`. */
interface Grant {
  readonly setting: "read" | "write";
  readonly path: string;
  /** The links that the path leads through, and at last its real path, or where that would be. */
  readonly trail: readonly string[];
  /** Undefined if there is nothing at the path. */
  readonly real: string | undefined;
}

/** A file or folder that code in a sandbox must not change. */
interface Trusted {
  readonly path: string;
  /** In words, for errors. */
  readonly what: string;
  /** What lies in the folder may be changed, the folder as a whole may not. */
  readonly isWhole?: true;
}

/** Resolves the paths. A path that does not exist is kept, for an error when a session starts. */
export function resolveGrants({ read = [], write = [] }: GrantOptions): Grant[] {
  // The last of two grants for one path holds.
  const all = new Map<string, Grant>();
  for (const path of read) all.set(resolve(path), { setting: "read", path: resolve(path), ...follow(resolve(path)) });
  for (const path of write) all.set(resolve(path), { setting: "write", path: resolve(path), ...follow(resolve(path)) });
  return [...all.values()];
}

/** The real paths of the grants that may be changed. */
export function writableOf(grants: readonly Grant[]): string[] {
  return grants.flatMap(({ setting, real }) => (setting === "write" && real !== undefined ? [real] : []));
}

/** Why there can be no sandbox, and what to do about it. */
export interface SandboxProblem {
  readonly message: string;
  readonly hint: string;
}

/**
 * Why these grants would let code out of its sandbox; undefined if they would not. `writable` are the folders that code
 * of this or another sandbox may change, and `trusted` is what it must not change.
 */
export function grantProblem(
  grants: readonly Grant[],
  writable: readonly string[],
  trusted: readonly Trusted[],
): SandboxProblem | undefined {
  for (const { setting, path, trail, real } of grants) {
    const because = (problem: string, hint: string): SandboxProblem => ({
      message: `The path ${path} in "sandbox.${setting}" ${problem}`,
      hint,
    });
    if (real !== undefined && /^\/(?:proc|dev|sys)?$/.test(real))
      return because("cannot be shown in a sandbox", "name folders in it");
    const outer = writable.find((folder) => trail.some((hop) => hop !== folder && isWithin(hop, folder)));
    if (outer !== undefined)
      return because(
        `lies in ${outer}, a folder of "sandbox.write", where code can replace it by a link to any other file`,
        "leave it out, or move it out of that folder",
      );
    if (setting === "read" || real === undefined) continue;
    for (const { path: file, what, isWhole } of trusted) {
      if (isWithin(file, real))
        return because(
          `has ${file} in it, ${what}, which code in a sandbox must not change`,
          "name a folder that has only what it may change",
        );
      if (isWhole !== true && isWithin(real, file))
        return because(`lies in ${file}, ${what}, which code in a sandbox must not change`, "name another folder");
    }
  }
  return undefined;
}

/** Why a file that we start or show could be replaced by code in a sandbox; undefined if it could not. */
function fileProblem(path: string, writable: readonly string[]): SandboxProblem | undefined {
  const { trail } = follow(resolve(path));
  const folder = writable.find((folder) => trail.some((hop) => isWithin(hop, folder)));
  if (folder === undefined) return undefined;
  const where = `lies in ${folder}, a folder of "sandbox.write", where code can replace it`;
  return { message: `The session needs the file ${path}, which ${where}`, hint: "move one of them" };
}

/** Where programs and their settings are, below / and below /usr. */
const PROGRAM_FOLDERS = [
  "bin",
  "sbin",
  "lib",
  "lib32",
  "lib64",
  "libx32",
  "libexec",
  "local/bin",
  "local/sbin",
  "local/lib",
];

/** What no sandbox may change: Catenary, the programs that it starts, and the files that it relies on. */
export function trustedPaths(): Trusted[] {
  const { PATH = "", XDG_RUNTIME_DIR: runtime = "", npm_config_cache: npm, UV_CACHE_DIR: uv } = process.env;
  const home = homeFolder();
  const modules = packageFile(".").replace(/(\/node_modules)\/.*$/, "$1");
  const named: readonly (readonly [what: string, paths: readonly string[]])[] = [
    ["a part of Catenary", [...["dist", "src", "web", "node_modules", "package.json"].map(packageFile), modules]],
    ["the program that runs Catenary", [process.execPath]],
    ["where Catenary keeps tokens, checkpoints and settings", [stateDirectory()]],
    ["where Catenary keeps saved images", [cacheFolder()]],
    [
      "where running gateways are controlled",
      [...(isAbsolute(runtime) ? [join(runtime, "catenary")] : []), join(tmpdir(), `catenary-${process.getuid?.()}`)],
    ],
    ["a folder of programs on the PATH", PATH.split(delimiter).filter(isAbsolute)],
    ["from which npx starts servers", [npm ?? join(home, ".npm")]],
    ["from which uvx starts servers", [uv ?? join(home, ".cache/uv"), join(home, ".local/share/uv")]],
    [
      "a folder of the system's programs and settings",
      [...["/", "/usr"].flatMap((base) => PROGRAM_FOLDERS.map((name) => join(base, name))), "/nix/store", "/etc"],
    ],
  ];
  const trusted = named.flatMap(([what, paths]) => paths.map((path) => ({ what, path: placeOf(path) })));
  return [...trusted, { what: "your home", path: placeOf(home), isWhole: true }];
}

/** The real path, even of a file that does not exist yet. */
export function placeOf(path: string): string {
  return follow(resolve(path)).trail.at(-1) ?? path;
}

const MAX_LINKS = 40;

/** Follows a path link by link, as the system does. */
function follow(path: string): Pick<Grant, "trail" | "real"> {
  const trail: string[] = [];
  let at = "";
  let rest = path.split("/");
  while (rest.length > 0) {
    const [name = "", ...others] = rest;
    rest = others;
    if (name === "" || name === ".") continue;
    if (name === "..") {
      at = at.slice(0, at.lastIndexOf("/"));
      continue;
    }
    const next = `${at}/${name}`;
    const target = linkAt(next);
    if (target === undefined || trail.length >= MAX_LINKS) {
      trail.push(join(next, ...others));
      return { trail, real: undefined };
    }
    if (target === "") {
      at = next;
      continue;
    }
    trail.push(next);
    if (target.startsWith("/")) at = "";
    rest = [...target.split("/"), ...others];
  }
  const real = at === "" ? "/" : at;
  return { trail: [...trail, real], real };
}

/** The target of a link; empty if it is not a link, undefined if there is nothing. */
function linkAt(path: string): string | undefined {
  try {
    return lstatSync(path).isSymbolicLink() ? readlinkSync(path) : "";
  } catch {
    return undefined;
  }
}

export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder === "/" ? folder : `${folder}/`);
}

/** A grant as bubblewrap mounts it. */
interface Mount {
  readonly setting: Grant["setting"];
  /** The names at which it is shown: the one that was given, and the real one, which programs use too. */
  readonly names: readonly string[];
  /** The path to mount, which leads through no link. */
  readonly real: string;
  /** Device and inode of the file or folder, as `stat -c %d:%i` prints them. */
  readonly identity: string;
}

/** The folders that code of any sandbox of this process could change so far, also of those that have ended. */
const writable = new Set<string>();

/** The grants of the sessions of one server. */
export class Grants {
  #all: readonly Grant[];

  constructor(options: GrantOptions) {
    this.#all = resolveGrants(options);
  }

  /** What to mount for a session that needs these files of ours. Rejects if that would let its code out. */
  async mounts(files: readonly string[]): Promise<Mount[]> {
    // What did not exist when the server was created may exist now.
    this.#all = this.#all.map((grant) => (grant.real === undefined ? { ...grant, ...follow(grant.path) } : grant));
    const ownFolders = writableOf(this.#all);
    const folders = [...writable, ...ownFolders];
    const problems = [
      grantProblem(this.#all, folders, ownFolders.length === 0 ? [] : trustedPaths()),
      ...(folders.length === 0 ? [] : files.map((file) => fileProblem(file, folders))),
    ];
    const problem = problems.find((message) => message !== undefined);
    if (problem !== undefined) throw new Error(`${problem.message}; ${problem.hint}`);
    const mounts = await Promise.all(this.#all.map(mountOf));
    for (const folder of ownFolders) writable.add(folder);
    return mounts.toSorted((one, other) => one.real.length - other.real.length);
  }
}

/** O_PATH, which Node does not name: opens whatever is there without reading it. */
const PATH_ONLY = 0o10000000;

async function mountOf({ setting, path, real }: Grant): Promise<Mount> {
  const name = `The path ${path} in "sandbox.${setting}"`;
  const file =
    real === undefined ? undefined : await open(real, PATH_ONLY | constants.O_NOFOLLOW).catch(() => undefined);
  if (real === undefined || file === undefined) throw new Error(`${name} does not exist`);
  try {
    const stats = await file.stat({ bigint: true });
    // The one name that the kernel has for it, so it tells whether a folder in the path is a link now.
    const place = await readlink(`/proc/self/fd/${file.fd}`);
    if (place !== real || stats.isSymbolicLink())
      throw new Error(
        `${name} led to ${real} when the server was created, and there is a link now; remove the link, or create the server again`,
      );
    return { setting, names: [...new Set([path, real])], real, identity: `${stats.dev}:${stats.ino}` };
  } finally {
    await file.close();
  }
}

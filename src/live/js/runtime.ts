// Builds the command that runs the guest of a JavaScript session in Node, with the flags that restrict it. The guest
// always runs from dist/, even if this file runs as TypeScript: plain Node must be able to load its worker thread.

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { ConnectionError } from "../../core/errors.ts";
import { packageFile } from "../../core/files.ts";
import type { GuestCommand, GuestRequest, Limits, Runtime } from "../runtime.ts";

/** What a session may access, as far as Node can restrict it. This prevents accidents, but is not a sandbox. */
export interface JavaScriptPermission {
  /** Files and folders that may be read; all by default. */
  readonly read?: readonly string[];
  /** Files and folders that may be written; none by default. */
  readonly write?: readonly string[];
  /** Whether the session may start other programs. */
  readonly childProcess?: boolean;
  /** Whether the session may use the network. Before Node 25 it always may, since Node cannot restrict it. */
  readonly net?: boolean;
}

export interface JavaScriptGuestOptions {
  /** The Node executable; by default that of this process. */
  readonly command?: string;
  /** The working directory, to which imports, `require` and paths are relative; by default that of this process. */
  readonly cwd?: string;
  /** Variables to add to the environment that the guest inherits. */
  readonly env?: Readonly<Record<string, string>>;
  /** Restricts the session with the permission model of Node 24 and later. */
  readonly permission?: boolean | JavaScriptPermission;
}

/** The first Node whose permission model can allow the inspector, which the guest needs to interrupt an evaluation. */
export const MIN_PERMISSION_NODE: number = 24;
/** The first Node that can restrict the network. */
const MIN_NET_PERMISSION_NODE = 25;
const VERSION_TIMEOUT_MS = 10_000;

export function jsRuntime(options: JavaScriptGuestOptions): Runtime {
  return {
    language: "js",
    stopSteps: ["interrupt"],
    async start(limits) {
      const isRestricted = options.permission !== undefined && options.permission !== false;
      return guestCommand(options, limits, isRestricted ? await permissionFlags(options) : []);
    },
    encode: (request: GuestRequest) => JSON.stringify(request),
  };
}

function guestCommand(options: JavaScriptGuestOptions, limits: Limits, flags: readonly string[]): GuestCommand {
  return {
    command: options.command ?? process.execPath,
    args: [
      `--max-old-space-size=${limits.memoryMb}`,
      // Without this flag, Node aborts when an interrupt terminates a callback of its event loop.
      "--no-force-async-hooks-checks",
      ...flags,
      guestFile(),
    ],
    // The guest must not preload the modules that this process preloads.
    env: { NODE_OPTIONS: "", ...options.env },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  };
}

function guestFile(): string {
  const file = packageFile("dist/live/js/guest.js");
  if (existsSync(file)) return file;
  throw new ConnectionError("spawn", `A JavaScript session needs ${file}; build it with npm run build`, {
    mayHaveRun: false,
  });
}

async function permissionFlags(options: JavaScriptGuestOptions): Promise<string[]> {
  const major = await nodeMajor(options.command ?? process.execPath);
  if (major < MIN_PERMISSION_NODE) {
    const message = `The option "permission" of a JavaScript session needs Node ${MIN_PERMISSION_NODE} or later, but this is Node ${major}; set "command" ("program" in a config) to a later one, or leave the option out`;
    throw new ConnectionError("spawn", message, { mayHaveRun: false });
  }
  const { read, write = [], childProcess, net } = typeof options.permission === "object" ? options.permission : {};
  return [
    "--permission",
    "--allow-worker",
    "--allow-inspector",
    ...(read === undefined
      ? ["--allow-fs-read=*"]
      : [...read, ...guestFolders()].map((path) => `--allow-fs-read=${path}`)),
    ...write.map((path) => `--allow-fs-write=${path}`),
    ...(childProcess === true ? ["--allow-child-process"] : []),
    ...(net === true && major >= MIN_NET_PERMISSION_NODE ? ["--allow-net"] : []),
    // Node warns at each start that workers and the inspector weaken the restriction. Our documentation explains that.
    "--disable-warning=SecurityWarning",
  ];
}

/** The folders that the guest itself must be able to read. */
function guestFolders(): string[] {
  const own = packageFile(".");
  const require = createRequire(import.meta.url);
  // The whole node_modules folder, since these packages have dependencies.
  const packages = ["acorn", "sucrase"].map((name) =>
    require.resolve(name).replace(/([/\\]node_modules[/\\]).*$/, "$1"),
  );
  return [...new Set([own, ...packages])];
}

async function nodeMajor(node: string): Promise<number> {
  if (node === process.execPath) return Number.parseInt(process.versions.node, 10);
  return new Promise((resolve, reject) => {
    execFile(node, ["--version"], { timeout: VERSION_TIMEOUT_MS }, (error, stdout) => {
      const [, major] = /^v(\d+)\./.exec(stdout) ?? [];
      if (major !== undefined) return resolve(Number(major));
      const message = `A JavaScript session could not be started: ${node} is not a Node executable, or cannot be run`;
      return reject(new ConnectionError("spawn", message, { mayHaveRun: false, cause: error }));
    });
  });
}

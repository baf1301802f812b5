// How a JavaScript session is started: Node itself, with the guest as its program. The guest runs as it was built, also
// where this file is read as TypeScript: its threads are started by Node alone.

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { ConnectionError } from "../../core/errors.ts";
import type { GuestCommand, GuestRequest, Limits, Runtime } from "../runtime.ts";

/** What a session may touch, where Node can restrict it. This is a fence, not a sandbox. */
export interface JavaScriptPermission {
  /** Files and folders that may be read; by default all. */
  readonly read?: readonly string[];
  /** Files and folders that may be written; by default none. */
  readonly write?: readonly string[];
  /** Whether other programs may be started. */
  readonly childProcess?: boolean;
  /** Whether the network may be used, where Node can refuse it. */
  readonly net?: boolean;
}

export interface JavaScriptGuestOptions {
  /** The Node to run; by default our own. */
  readonly command?: string;
  /** The folder to which imports, `require` and paths are relative; by default ours. */
  readonly cwd?: string;
  /** Added to our own environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Restricts the session by the permission model of Node 24 and later. */
  readonly permission?: boolean | JavaScriptPermission;
}

/** The first Node whose permission model lets the inspector in, without which nothing could be interrupted. */
export const FIRST_PERMITTING: number = 24;
/** The first that can refuse the network. */
const FIRST_NET = 25;
const VERSION_MS = 10_000;

export function jsRuntime(options: JavaScriptGuestOptions): Runtime {
  return {
    language: "js",
    ladder: ["interrupt"],
    async start(limits) {
      const fence = options.permission === undefined || options.permission === false ? [] : await fenced(options);
      return command(options, limits, fence);
    },
    encode: (request: GuestRequest) => JSON.stringify(request),
  };
}

function command(options: JavaScriptGuestOptions, limits: Limits, fence: readonly string[]): GuestCommand {
  return {
    command: options.command ?? process.execPath,
    args: [
      `--max-old-space-size=${limits.memoryMb}`,
      // Without it, Node ends where a callback of its event loop was terminated, although all is well.
      "--no-force-async-hooks-checks",
      ...fence,
      guest(),
    ],
    // What our own Node was told to load is not for the user's.
    env: { NODE_OPTIONS: "", ...options.env },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  };
}

function guest(): string {
  const file = fileURLToPath(new URL("../../../dist/live/js/guest.js", import.meta.url));
  if (existsSync(file)) return file;
  throw new ConnectionError("spawn", `A JavaScript session needs ${file}: build it with npm run build`, {
    mayHaveRun: false,
  });
}

async function fenced(options: JavaScriptGuestOptions): Promise<string[]> {
  const major = await majorOf(options.command ?? process.execPath);
  if (major < FIRST_PERMITTING) {
    const message = `The option "permission" of a JavaScript session needs Node ${FIRST_PERMITTING} or later, and this is Node ${major}: run a later one ("command", and "program" in a config), or leave the option out`;
    throw new ConnectionError("spawn", message, { mayHaveRun: false });
  }
  const { read, write = [], childProcess, net } = typeof options.permission === "object" ? options.permission : {};
  return [
    "--permission",
    "--allow-worker",
    "--allow-inspector",
    ...(read === undefined ? ["--allow-fs-read=*"] : [...read, ...ours()].map((path) => `--allow-fs-read=${path}`)),
    ...write.map((path) => `--allow-fs-write=${path}`),
    ...(childProcess === true ? ["--allow-child-process"] : []),
    ...(net === true && major >= FIRST_NET ? ["--allow-net"] : []),
    // Node warns at each start that both of the first are holes, which the documentation says too.
    "--disable-warning=SecurityWarning",
  ];
}

/** What the guest itself reads. */
function ours(): string[] {
  const own = fileURLToPath(new URL("../../../", import.meta.url));
  const require = createRequire(import.meta.url);
  // With what those need in turn, wherever it was installed.
  const packages = ["acorn", "sucrase"].map((name) =>
    require.resolve(name).replace(/([/\\]node_modules[/\\]).*$/, "$1"),
  );
  return [...new Set([own, ...packages])];
}

async function majorOf(node: string): Promise<number> {
  if (node === process.execPath) return Number.parseInt(process.versions.node, 10);
  return new Promise((resolve, reject) => {
    execFile(node, ["--version"], { timeout: VERSION_MS }, (error, stdout) => {
      const [, major] = /^v(\d+)\./.exec(stdout) ?? [];
      if (major !== undefined) return resolve(Number(major));
      const message = `A JavaScript session could not be started: ${node} is no Node, or cannot be run`;
      return reject(new ConnectionError("spawn", message, { mayHaveRun: false, cause: error }));
    });
  });
}

// Runs the guest of a live session in bubblewrap (bwrap): in namespaces of its own, with a root that has only the files
// which programs need, read-only, one small folder in memory to write to, and no network. The channel on fd 3 is its
// only way out. The languages know nothing of it: `sandboxed` wraps the command that a runtime starts.

import { constants, createWriteStream, lstatSync, readlinkSync } from "node:fs";
import { open, realpath, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { ConnectionError } from "../core/errors.ts";
import { packageFile } from "../core/files.ts";
import { defaultsOf } from "../core/options.ts";
import { defined, errorMessage } from "../core/values.ts";
import { outputOf } from "../process/child.ts";
import { namedEnvironment } from "../process/program.ts";
import { findProgram } from "../process/spawn-problem.ts";
import { Grants, isWithin, type SandboxProblem } from "./grants.ts";
import { SANDBOX, type SandboxOptions } from "./options.ts";
import { memoryLimitMb, type GuestCommand, type Runtime } from "./runtime.ts";
import { createSandboxLimit } from "./sandbox-limit.ts";

/** Of /dev/shm, which some programs need for semaphores. */
const SHARED_MEMORY_MB = 16;
const CHECK_TIMEOUT_MS = 10_000;

/** The folder that is private to the session and writable, and its home in there. One file system, so one limit. */
const TMP = "/tmp";
const HOME = "/tmp/session";
/** The user in the sandbox. Outside, it is the user of this process. */
const USER_ID = "1000";

/** Where programs and libraries are. All but /usr may be links to folders in it. */
const SYSTEM = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"];
const SETTINGS = ["alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime"];
const NETWORK_SETTINGS = [
  ...["resolv.conf", "hosts", "nsswitch.conf", "host.conf", "gai.conf", "services", "protocols"],
  ...["ssl", "ca-certificates", "pki"],
];
/** Variables that every session gets, for languages and times. */
const INHERITED = ["LANG", "LANGUAGE", "LC_*", "TZ", "TERM"];

const INSTALL = "install it (Debian and Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap)";
const NEWER = "install version 0.8 or later, which Debian 12 and Ubuntu 24.04 have";
/** The setting that turns it off, as it is written in the options or in the entry of a live server. */
const OFF = '"sandbox": false';

/** Returns a runtime whose guests run in a sandbox, or the same one if `sandbox` is false or undefined. */
export function sandboxed(runtime: Runtime, sandbox: boolean | SandboxOptions | undefined): Runtime {
  if (sandbox === undefined || sandbox === false) return runtime;
  const options = sandbox === true ? {} : sandbox;
  const grants = new Grants(options);
  const { checkpoint, noSandbox } = runtime;
  const start: Runtime["start"] = async (limits) => {
    if (noSandbox !== undefined)
      throw new ConnectionError("spawn", `These sessions cannot run in a sandbox: ${noSandbox}`, { mayHaveRun: false });
    const tools = await requireTools();
    return enter(await runtime.start(limits, true), options, grants, tools, memoryLimitMb(limits));
  };
  return {
    ...runtime,
    ownFolder: TMP,
    start,
    startFailed: async (command, isCancelled) =>
      (await runtime.startFailed?.(command.inner ?? command, isCancelled)) === true,
    ...(checkpoint && {
      checkpoint: {
        async start(limits, file) {
          const tools = await requireTools();
          return enter(await checkpoint.start(limits, file), options, grants, tools, memoryLimitMb(limits));
        },
      },
    }),
  };
}

/** The programs that make a sandbox. */
interface Tools {
  readonly bwrap: string;
  readonly prlimit: string;
}

let working: Tools | undefined;

/**
 * Why no sandbox can be had on this machine, and what to do about it; undefined if one can. Starts a trivial program in a
 * sandbox to find out, once: containers and some systems forbid what bubblewrap needs. `off` says how to do without.
 */
export async function sandboxProblem(off?: string): Promise<SandboxProblem | undefined> {
  const tools = await findTools(off);
  return "bwrap" in tools ? undefined : tools;
}

async function requireTools(): Promise<Tools> {
  const tools = await findTools();
  if ("bwrap" in tools) return tools;
  throw new ConnectionError("spawn", tools.message, { mayHaveRun: false, hint: { text: tools.hint } });
}

/** The programs, or why there can be no sandbox. Only success is remembered: bubblewrap may be installed later. */
async function findTools(off = OFF): Promise<Tools | SandboxProblem> {
  if (working !== undefined) return working;
  const otherwise = `or run without a sandbox (${off})`;
  const because = (message: string, hint: string): SandboxProblem => ({ message, hint: `${hint}${otherwise}` });
  if (process.platform !== "linux") return because("A sandbox needs Linux", "run this on Linux, ");
  const [bwrap, prlimit] = await Promise.all(["bwrap", "prlimit"].map((command) => findProgram({ command })));
  if (bwrap === undefined) return because("A sandbox needs bubblewrap, but bwrap is not on the PATH", `${INSTALL}, `);
  if (prlimit === undefined)
    return because("A sandbox needs prlimit, which is not on the PATH", "install the package util-linux, ");
  const tools = { bwrap, prlimit };
  const args = [...rootArguments({}), ...endArguments("/"), prlimit, "--core=0", "--", "true"];
  const said = await tryOut(bwrap, args);
  if (said === undefined) return (working = tools);
  const [problem, hint] = explain(said);
  return because(`No sandbox can be had on this machine: ${problem}`, hint);
}

/** Resolves to the reason if the program fails. */
async function tryOut(command: string, args: readonly string[]): Promise<string | undefined> {
  const options = { command, args, cwd: "/", inheritsNothing: true, env: { PATH: SEARCH_PATH } } as const;
  try {
    const { code, signal, stderr } = await outputOf(options, CHECK_TIMEOUT_MS);
    const said = stderr.trim().split("\n").at(-1) ?? "";
    return code === 0 ? undefined : said === "" ? `${command} exited with ${signal ?? code}` : said;
  } catch (error) {
    return errorMessage(error);
  }
}

/** What an error of bubblewrap means, and what to do about it. */
function explain(said: string): readonly [problem: string, hint: string] {
  if (/unknown option/i.test(said)) return [`bubblewrap is too old (${said})`, `${NEWER}; `];
  if (!/namespace|uid map|permission|not permitted|userns|Read-only/i.test(said)) return [said, ""];
  return [
    `the system does not let bubblewrap create namespaces (${said})`,
    "allow user namespaces (on Ubuntu, an AppArmor profile for bwrap; in a container, --privileged); ",
  ];
}

const SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin";

/** Namespaces, and the files of the system. */
function rootArguments({ network, diskMb = SANDBOX.diskMb.default }: SandboxOptions): string[] {
  const bytes = (mb: number): string => String(mb * 1024 * 1024);
  const names = network === true ? [...SETTINGS, ...NETWORK_SETTINGS] : SETTINGS;
  return [
    ...["--unshare-user", "--unshare-all", ...(network === true ? ["--share-net"] : [])],
    // No namespaces within: much of the kernel can only be reached with the rights that they give.
    ...["--disable-userns", "--cap-drop", "ALL", "--die-with-parent"],
    ...["--uid", USER_ID, "--gid", USER_ID, "--hostname", "sandbox"],
    ...SYSTEM.flatMap(systemFolder),
    ...names.flatMap((name) => ["--ro-bind-try", `/etc/${name}`, `/etc/${name}`]),
    ...["--ro-bind", packageFile("src/live/sandbox-passwd.txt"), "/etc/passwd"],
    // For root, the settings of the kernel in /proc/sys would be writable, since their owner is root.
    ...["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev"],
    ...["--size", bytes(SHARED_MEMORY_MB), "--perms", "1777", "--tmpfs", "/dev/shm", "--remount-ro", "/dev"],
    ...["--size", bytes(diskMb), "--perms", "0700", "--tmpfs", TMP, "--perms", "0700", "--dir", HOME],
  ];
}

/** The last arguments before the command. What bubblewrap had to create in the root is now read-only too. */
function endArguments(folder: string): string[] {
  return ["--remount-ro", "/", "--chdir", folder, "--"];
}

function systemFolder(path: string): string[] {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return [];
  return stats.isSymbolicLink()
    ? ["--symlink", readlinkSync(path).replace(/^\//, ""), path]
    : ["--ro-bind", path, path];
}

/**
 * Runs in the sandbox before anything else: bubblewrap has mounted by name, and a name may have been replaced by a link
 * since it was checked. Arguments: each path with its identity, `--`, and the command to become.
 */
const VERIFY = `while [ "$1" != -- ]; do
  [ "$(PATH=${SEARCH_PATH} stat -c %d:%i "$1")" = "$2" ] || {
    echo "the path $1 of the sandbox was replaced while the session was started" >&2
    exit 1
  }
  shift 2
done
shift
exec "$@"`;

/** The command that runs `inner` in a sandbox. */
async function enter(
  inner: GuestCommand,
  options: SandboxOptions,
  grants: Grants,
  { bwrap, prlimit }: Tools,
  memoryMb: number,
): Promise<GuestCommand> {
  const { command, args, env, cwd = ".", inheritEnv, reads = [], inner: _, ...rest } = inner;
  const program = await findProgram({ command, cwd, ...defined({ env }) });
  if (program === undefined)
    throw new ConnectionError("spawn", `The program ${command} was not found`, { mayHaveRun: false });
  const files = [...reads, program, ...(await programFiles(program))];
  const mounts = await grants.mounts(files).catch((error: unknown) => {
    throw new ConnectionError("spawn", errorMessage(error), { mayHaveRun: false });
  });
  const mounted = mounts.flatMap(({ names, ...mount }) => names.map((path) => ({ path, ...mount })));
  const ownFiles = await existing(files);
  const folder = resolve(cwd);
  const isVisible = mounted.some(({ path }) => isWithin(folder, path));
  const { processes, diskMb } = { ...defaultsOf(SANDBOX), ...defined(options) };
  const limit = await createSandboxLimit({ processes, memoryMb, filesMb: diskMb + SHARED_MEMORY_MB });
  const named = typeof inheritEnv === "object" ? inheritEnv : [];
  const wrapped = [
    bwrap,
    ...rootArguments(options),
    ...mounted.flatMap(({ setting, real, path }) => [setting === "write" ? "--bind" : "--ro-bind", real, path]),
    ...ownFiles.flatMap((path) => ["--ro-bind", path, path]),
    ...endArguments(isVisible ? folder : HOME),
    ...(mounted.length === 0 ? [] : ["/bin/sh", "-c", VERIFY, "sh"]),
    ...mounted.flatMap(({ path, identity }) => [path, identity]),
    ...(mounted.length === 0 ? [] : ["--"]),
    ...[prlimit, "--core=0", ...limit.flags, "--", program, ...args],
  ];
  const [first = bwrap, ...others] = limit.wrap(wrapped);
  return {
    ...rest,
    command: first,
    args: others,
    cwd: "/",
    inheritsNothing: true,
    env: {
      ...namedEnvironment(inheritEnv === true ? true : [...INHERITED, ...named]),
      ...{ HOME, TMPDIR: TMP, USER: "session", LOGNAME: "session", PATH: `${dirname(program)}:${SEARCH_PATH}` },
      ...env,
    },
    inner,
    usedTooMuch: () => limit.usedTooMuch(),
    onEnd: () => limit.end(),
  };
}

/** The file of a program, and the folders in which a program keeps its own files, unless the system has them anyway. */
async function programFiles(program: string): Promise<string[]> {
  const real = await realpath(program);
  const paths = new Set([program, real].filter((path) => !SYSTEM.some((folder) => isWithin(path, folder))));
  for (const path of [...paths]) {
    const folder = dirname(path);
    if (basename(folder) !== "bin") continue;
    for (const name of ["lib", "libexec", "share"]) paths.add(join(folder, "..", name));
  }
  return [...paths];
}

/** The paths that exist and that are not in a folder that is shown anyway, with their real paths. */
async function existing(paths: readonly string[]): Promise<string[]> {
  const outside = new Set<string>();
  for (const path of paths) {
    const real = await realpath(path).catch(() => undefined);
    if (real === undefined) continue;
    for (const known of [resolve(path), real])
      if (!SYSTEM.some((folder) => isWithin(known, folder))) outside.add(known);
  }
  return [...outside];
}

/**
 * Moves a file that a guest has saved in its own folder out of the sandbox. The guest is not trusted: a link is not
 * followed, and no more than `maxBytes` are read. `pids` are the processes of the session.
 */
export async function takeFile(pids: readonly number[], path: string, target: string, maxBytes: number): Promise<void> {
  for (const pid of pids) {
    // The first process is outside the sandbox and does not have the file.
    const source = `/proc/${pid}/root${path}`;
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    const file = await open(source, flags).catch(() => undefined);
    if (file === undefined) continue;
    try {
      const stats = await file.stat();
      if (!stats.isFile()) throw new Error("the session did not save a file");
      // One byte more than allowed, so that the caller sees that it is too large.
      const reading = file.createReadStream({ autoClose: false, end: maxBytes });
      await pipeline(reading, createWriteStream(target, { flags: "wx", mode: 0o600 }));
    } finally {
      await file.close();
      await rm(source, { force: true });
    }
    return;
  }
  throw new Error("the file that the session has saved was not found");
}

// Programs that we start: the part of our environment that each gets, and why one cannot be started.

import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { delimiter, resolve } from "node:path";
import { ConnectionError, type Hint } from "../core/errors.ts";
import { matchesGlob } from "../core/text.ts";

// The part of our own environment that a child process gets. A gateway starts many programs, and its environment may have
// the keys of all of them, so a program gets only what most programs need to run at all, and what the user names.

/**
 * `false`: the variables that most programs need (INHERITED). `true`: all variables, except those of Catenary itself. An
 * array: those of `false`, and the variables of these names, in which `*` matches any characters.
 */
export type InheritEnv = boolean | readonly string[];

const ON_WINDOWS = [
  ...["APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "NUMBER_OF_PROCESSORS", "OS", "PATH", "PATHEXT"],
  ...["PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)", "SYSTEMDRIVE", "SYSTEMROOT"],
  ...["TEMP", "TMP", "USERDOMAIN", "USERNAME", "USERPROFILE", "WINDIR"],
];

/** The variables that every program gets. */
const INHERITED: readonly string[] = [
  // Who and where: as the clients of the official SDKs do.
  ...["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", ...(process.platform === "win32" ? ON_WINDOWS : [])],
  // Settings of Catenary, for a gateway behind a gateway; its secrets are left out below.
  "CATENARY_*",
  // Languages, times, and folders.
  ...["LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "XDG_*", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "NIX_*"],
  // The way to the network. A program that cannot reach it often fails without a useful error.
  ...["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy"],
  ...[
    "NODE_EXTRA_CA_CERTS",
    "NODE_OPTIONS",
    "NODE_USE_ENV_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
  ],
  ...["CURL_CA_BUNDLE", "PIP_CERT", "GIT_SSL_CAINFO"],
  // Where programs and packages are. Not all of npm_config_*, which may contain tokens.
  ...["npm_config_cache", "npm_config_prefix", "npm_config_registry", "npm_config_userconfig"],
  ...["NPM_CONFIG_CACHE", "NPM_CONFIG_PREFIX", "NPM_CONFIG_REGISTRY", "NPM_CONFIG_USERCONFIG"],
  ...["NVM_DIR", "NVM_BIN", "VOLTA_HOME", "PNPM_HOME", "BUN_INSTALL", "DENO_DIR", "MISE_*", "ASDF_*", "PYENV_ROOT"],
  ...["VIRTUAL_ENV", "CONDA_PREFIX", "UV_CACHE_DIR", "UV_TOOL_DIR", "CARGO_HOME", "GOPATH", "JAVA_HOME", "SBCL_HOME"],
  // A browser, a keyring, and containers.
  ...["DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS"],
  ...["DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY"],
];

/** Secrets of Catenary itself, which no program gets unless its own `env` names them. */
const OWN_SECRET = /^CATENARY_(?:TOKEN$|INPUT_)/;

/** The variables of `env` with these names, in which `*` matches any characters; `true` names all. Never our secrets. */
export function namedEnvironment(
  names: true | readonly string[],
  env: Readonly<Record<string, string | undefined>> = process.env,
): Record<string, string> {
  const patterns = names === true ? [() => true] : names.map(nameMatcher);
  const isNamed = ([name, value]: readonly [string, string | undefined]): boolean =>
    value !== undefined && !OWN_SECRET.test(name) && patterns.some((matches) => matches(name));
  return Object.fromEntries(Object.entries(env).filter(isNamed)) as Record<string, string>;
}

/** The variables of `env` that a program gets. */
export function inheritedEnvironment(
  inherit: InheritEnv,
  env: Readonly<Record<string, string | undefined>> = process.env,
): Record<string, string | undefined> {
  const patterns = [...INHERITED, ...(typeof inherit === "boolean" ? [] : inherit)].map(nameMatcher);
  const isWanted = (name: string): boolean => inherit === true || patterns.some((matches) => matches(name));
  const inherited: Record<string, string | undefined> = {};
  for (const [name, value] of Object.entries(env)) {
    // The value of an exported function of bash begins so. Other shells have run such values as code.
    const isFunction = value?.startsWith("()") === true;
    if (isWanted(name) && !OWN_SECRET.test(name) && (inherit === true || !isFunction)) inherited[name] = value;
  }
  return inherited;
}

/** Whether a name fits a pattern with `*`. Names of variables ignore case on Windows. */
function nameMatcher(pattern: string): (name: string) => boolean {
  const normalize = (text: string): string => (process.platform === "win32" ? text.toUpperCase() : text);
  return (name) => matchesGlob(normalize(pattern), normalize(name));
}

// Explains why a program cannot be started and what to do about it. The system's own error names neither the cause
// (ENOENT may mean the command, its folder or the interpreter in its first line) nor the remedy. Nothing here starts
// a process: `findSpawnProblem` and `findProgram` look a program up the way the system would.

interface Program {
  readonly command: string;
  readonly cwd?: string | undefined;
  /** Added to our own environment. */
  readonly env?: Readonly<Record<string, string>> | undefined;
}

/** Why a program cannot be started. Its cause is the error of the system. */
export class SpawnError extends ConnectionError {
  /** What to do if the file is there and is only not executable. */
  readonly fix: string | undefined;

  constructor(command: string, { problem, hint, fix }: SpawnProblem, cause: unknown) {
    super("spawn", `cannot start ${JSON.stringify(command)}: ${problem}`, { cause, hint, mayHaveRun: false });
    this.fix = fix;
  }
}

interface SpawnProblem {
  readonly problem: string;
  readonly hint?: Hint;
  readonly fix?: string;
}

/** The error for a start that failed with `cause`. */
export async function spawnError(program: Program, cause: unknown): Promise<SpawnError> {
  return new SpawnError(program.command, await explain(program, cause), cause);
}

/** Returns the error that a start would give, with the system's code on its cause; undefined if it finds no problem. */
export async function findSpawnProblem(program: Program): Promise<SpawnError | undefined> {
  const found = (await findFiles(program)).map(({ kind }) => kind);
  if ((await typeOf(program.cwd ?? ".")) === "folder" && found.includes("executable")) return undefined;
  return spawnError(program, { code: found.includes("other") ? "EACCES" : "ENOENT" });
}

/** The file that the system would start; undefined if there is none. */
export async function findProgram(program: Program): Promise<string | undefined> {
  return (await findFiles(program)).find(({ kind }) => kind === "executable")?.file;
}

interface FoundFile {
  readonly file: string;
  readonly kind: "executable" | "other" | "nothing";
}

/** What is at each place where the system would look for the program. */
async function findFiles({ command, cwd = ".", env }: Program): Promise<FoundFile[]> {
  const path = env?.["PATH"] ?? process.env["PATH"] ?? "";
  const folders = command.includes("/") ? [cwd] : path.split(delimiter).map((entry) => resolve(cwd, entry));
  const files = folders.map((folder) => resolve(folder, command));
  return Promise.all(files.map(async (file) => ({ file, kind: await programAt(file) })));
}

async function explain(program: Program, cause: unknown): Promise<SpawnProblem> {
  const { command, cwd } = program;
  let code = (cause as NodeJS.ErrnoException | null)?.code;
  if (cwd !== undefined) {
    const folder = await typeOf(cwd);
    if (folder === "nothing")
      return because(`its folder ${cwd} does not exist`, 'create it or change "cwd"', "create it or change --cwd");
    if (folder === "file") return because(`${cwd} is not a folder`, 'change "cwd"', "change --cwd");
  }
  const isPath = command.includes("/");
  // The system also reports EACCES for a missing command if it may not read a folder of the PATH.
  if (code === "EACCES" && !isPath && !(await findFiles(program)).some(({ kind }) => kind === "other")) code = "ENOENT";
  const file = resolve(cwd ?? ".", command);
  const hasSpace = /\s/.test(command);
  if (code === "ENOENT" && !isPath) {
    const quoted = 'put the program alone into "command" and its arguments into "args"';
    if (hasSpace)
      return because("there is no command of that name", quoted, "do not quote it together with its arguments");
    const install = "install it, or give its full path";
    return because("there is no command of that name on the PATH", `${install} as "command"`, install);
  }
  if (code === "ENOENT") {
    if ((await typeOf(file)) === "nothing")
      return hasSpace
        ? because(`there is no file ${file}`, 'check "command", and put its arguments into "args"')
        : because(`there is no file ${file}`, 'check "command"', "");
    return because(
      `the interpreter that the first line of ${file} names does not exist`,
      'install it, or name it as "command"',
      "install it, or start the file by another one",
    );
  }
  if (code === "EACCES") {
    if (!isPath) return because("the command of that name on the PATH is not executable", "check its permissions");
    if ((await typeOf(file)) === "folder") return because(`${file} is a folder`, "name the program in it");
    const start = "run chmod +x on it, or start it with its interpreter";
    const problem = because(`${file} is not executable`, `${start}, with the file in "args"`, start);
    return { ...problem, fix: `make it executable: chmod +x ${file}` };
  }
  if (code === "ENOEXEC")
    return because("it is not a program for this machine", "if it is a script, start it with its interpreter");
  if (code === "E2BIG")
    return because("its arguments and environment are too long", 'shorten "args" or "env"', "shorten them");
  if (code === "EMFILE" || code === "ENFILE") return because("too many files are open", "raise the limit (ulimit -n)");
  if (code === "EAGAIN" || code === "ENOMEM")
    return because("the system has no resources for another process", "stop some other processes");
  return { problem: cause instanceof Error ? cause.message : String(cause) };
}

function because(problem: string, text: string, flags: string = text): SpawnProblem {
  return { problem, hint: { text, flags } };
}

async function typeOf(path: string): Promise<"folder" | "file" | "nothing"> {
  const found = await stat(path).catch(() => undefined);
  return found === undefined ? "nothing" : found.isDirectory() ? "folder" : "file";
}

async function programAt(file: string): Promise<FoundFile["kind"]> {
  const type = await typeOf(file);
  if (type !== "file") return type === "nothing" ? "nothing" : "other";
  return access(file, constants.X_OK).then(
    () => "executable",
    () => "other",
  );
}

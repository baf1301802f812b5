// The part of our own environment that a child process gets. A gateway starts many programs, and its environment may have
// the keys of all of them, so a program gets only what most programs need to run at all, and what the user names.

import { matchesGlob } from "../core/text.ts";

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

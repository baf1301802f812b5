// What to do about a server that does not start or answer, in the words that `catenary doctor` and the console share. What
// the system says about a command that cannot be started is in spawn-problem.ts.

/** What programs say on stderr if something usual is missing, and what to do about it. */
const STDERR_HINTS: readonly (readonly [pattern: RegExp, hint: string])[] = [
  [/E404|npm error 404/, "npm has no such package: check its name"],
  [/ETARGET|No matching version/, "npm has no such version of the package: check the version after @"],
  [/ENOTFOUND|EAI_AGAIN|ECONNREFUSED.*registry|network/i, "the package could not be downloaded: check the network"],
  [/could not determine executable/, "the package has no program to run: check its name"],
  [
    /Cannot find module|ERR_MODULE_NOT_FOUND|No such file|can't open file/i,
    "a file is missing: check the path in args",
  ],
  [/ERR_UNKNOWN_FILE_EXTENSION.*"\.[cm]?ts"/, "this version of Node does not load TypeScript: start it with npx tsx"],
  [
    /(?:api[ _-]?key|token|secret|credential|password|environment variable|env var)/i,
    "it needs a key: set the variable that it names in the environment (env in the config, or --env KEY=VALUE)",
  ],
  [
    /\b[A-Z][A-Z\d]*_[A-Z\d_]+\b[^\n]*\b(?:not set|unset|missing|required|undefined)\b/,
    "it needs a variable: set it in the environment (env in the config, or --env KEY=VALUE)",
  ],
  [
    /usage:|unknown (?:option|argument)|required argument/i,
    "it wants other arguments: see the documentation of the server",
  ],
  [/EACCES|permission denied/i, "it may not read or write a file: check the permissions"],
  [/EADDRINUSE/, "it listens on a port that is in use: it may be an HTTP server; start it and use its URL"],
];

/** What to do about a program that has ended, from what it said. */
export function adviceOnStart(message: string): string {
  const [, hint] = STDERR_HINTS.find(([pattern]) => pattern.test(message)) ?? [];
  return hint ?? "start the command by itself in a terminal and see what it says";
}

/** What to do about other failures. */
export const ADVICE = {
  refused: "start the server, or correct the port in the URL",
  network: "check the network: VPN, proxy, firewall",
  http: "check the path of the URL, such as /mcp; `catenary tools URL --verbose` shows more",
  hostRefused: "restart the server with this host allowed, or use a URL with a host that it accepts",
  protocol: "check that it is an MCP server, and its version",
} as const;

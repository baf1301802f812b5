// The MCP clients whose files we read and write: where each file is, where the servers are in it, and how an entry is
// written. `config/dialects.ts` reads such files as they are; the set-up commands write into them. To support another
// client, add it to TABLE.

import { basename, dirname, posix, win32 } from "node:path";
import { homeFolder } from "../core/files.ts";
import type { Environment } from "./variables.ts";

/** A server to write into a client's file. */
export type ClientServer =
  | { readonly command: string; readonly args?: readonly string[]; readonly env?: Readonly<Record<string, string>> }
  | { readonly url: string; readonly headers?: Readonly<Record<string, string>> };

/** A path, or one for each operating system; one that is not listed has the path of Linux. */
type ClientPath = string | ({ readonly linux: string } & { readonly [platform in NodeJS.Platform]?: string });

/** A file in which a client looks for servers. */
export interface ClientFile {
  /** `user`: for all projects. `project`: in the folder of a project. */
  readonly scope: "user" | "project";
  /**
   * The path, with slashes. `~` is the home folder, `%APPDATA%` the folder of Windows, and `%CONFIG%` the folder for
   * settings on Linux (`$XDG_CONFIG_HOME` or `~/.config`). The path of a project's file is relative to the project.
   */
  readonly path: ClientPath;
  /** The keys that lead to the object of servers by name. */
  readonly servers: readonly string[];
  /** The file has other settings of the client, which are not about servers and are ignored. */
  readonly isSettings?: boolean;
  /** The client still reads the file, but writes to another. */
  readonly isOld?: boolean;
}

/** A client, and the format of its files. */
export interface Client {
  /** The name in commands. */
  readonly name: string;
  readonly title: string;
  /** The file to write to by default is the first. */
  readonly files: readonly [ClientFile, ...ClientFile[]];
  readonly format: "json" | "toml";
  /** The client can only start commands. */
  readonly isStdioOnly?: true;
  /** The unit of `timeout` in an entry, if the client has this key. */
  readonly timeoutUnit?: "seconds" | "milliseconds";
  /** How its strings refer to variables, besides `${VAR}`: `$VAR` or `{env:VAR}`. */
  readonly variables?: "$VAR" | "{env:VAR}";
  /** How a header in its files refers to the variable VAR; absent if it cannot. */
  readonly headerVariable?: string;
  /** Keys of an entry that mean nothing to a gateway, such as lists of tools that need no approval. */
  readonly ignored?: readonly string[];
  /** Keys of an entry that the gateway cannot obey, and what that means. */
  readonly unsupported?: Readonly<Record<string, string>>;
  /** Keys beside the servers that mean nothing to a gateway. Needed only if the file is not one of settings. */
  readonly ignoredAtTop?: readonly string[];
  /** The value of a server in the file. */
  entry(server: ClientServer): Readonly<Record<string, unknown>>;
}

/** The places of a program that is built with Electron. */
function electron(path: string): ClientPath {
  return { linux: `%CONFIG%/${path}`, darwin: `~/Library/Application Support/${path}`, win32: `%APPDATA%/${path}` };
}

function inConfigFolder(path: string, windows = `~/.config/${path}`): ClientPath {
  return { linux: `%CONFIG%/${path}`, darwin: `~/.config/${path}`, win32: windows };
}

/** Files with the servers under the same keys. Only the path of a project's file is relative. */
function filesAt(
  { servers = ["mcpServers"], ...others }: Partial<ClientFile>,
  ...[first, ...rest]: readonly [ClientPath, ...ClientPath[]]
): Client["files"] {
  const fileAt = (path: ClientPath): ClientFile => {
    const isProject = typeof path === "string" && !path.startsWith("~");
    return { ...others, servers, path, scope: isProject ? "project" : "user" };
  };
  return [fileAt(first), ...rest.map(fileAt)];
}

function withType(local: string, remote: string): Client["entry"] {
  return (server) => ({ type: "command" in server ? local : remote, ...server });
}

function codexEntry(server: ClientServer): Readonly<Record<string, unknown>> {
  if ("command" in server) return server;
  const { url, headers: { Authorization = "", ...others } = {} } = server;
  const [, variable] = /^Bearer \$\{(\w+)\}$/.exec(Authorization) ?? [];
  const headers = { ...(variable === undefined && Authorization !== "" && { Authorization }), ...others };
  return {
    url,
    ...(variable !== undefined && { bearer_token_env_var: variable }),
    ...(Object.keys(headers).length > 0 && { http_headers: headers }),
  };
}

function opencodeEntry(server: ClientServer): Readonly<Record<string, unknown>> {
  if (!("command" in server)) return { type: "remote", ...server, enabled: true };
  const { command, args = [], env } = server;
  return { type: "local", command: [command, ...args], ...(env && { environment: env }), enabled: true };
}

/** `urlKey`: the key of a URL in this client. */
function withUrlKey(urlKey: string): Client["entry"] {
  return (server) => {
    if ("command" in server) return server;
    const { url, ...rest } = server;
    return { [urlKey]: url, ...rest };
  };
}

/** `format` is json, and `entry` writes what it gets, unless the client has another. */
const TABLE: readonly (Omit<Client, "format" | "entry"> & Partial<Client>)[] = [
  {
    name: "claude-code",
    title: "Claude Code",
    files: [...filesAt({ isSettings: true }, "~/.claude.json"), ...filesAt({}, ".mcp.json")],
    headerVariable: "${VAR}",
    timeoutUnit: "milliseconds",
    ignored: ["alwaysLoad"],
    unsupported: { headersHelper: 'its command is not run: write the headers in "headers"' },
    entry: withType("stdio", "http"),
  },
  {
    name: "claude-desktop",
    title: "Claude Desktop",
    files: filesAt({}, electron("Claude/claude_desktop_config.json")),
    isStdioOnly: true,
    ignoredAtTop: ["globalShortcut", "preferences", "isUsingBuiltInNodeForMcp", "isDxtAutoUpdatesEnabled"],
  },
  {
    name: "vscode",
    title: "VS Code",
    files: [
      ...filesAt({ servers: ["servers"] }, electron("Code/User/mcp.json"), ".vscode/mcp.json"),
      ...filesAt(
        { servers: ["mcp", "servers"], isSettings: true, isOld: true },
        electron("Code/User/settings.json"),
        ".vscode/settings.json",
      ),
    ],
    headerVariable: "${env:VAR}",
    ignored: ["dev", "gallery", "version"],
    unsupported: {
      sandboxEnabled: "the gateway starts the server without the sandbox of VS Code",
      sandbox: "the gateway starts the server without the sandbox of VS Code",
    },
    entry: withType("stdio", "http"),
  },
  {
    name: "cursor",
    title: "Cursor",
    files: filesAt({}, "~/.cursor/mcp.json", ".cursor/mcp.json"),
    headerVariable: "${env:VAR}",
  },
  {
    name: "codex",
    title: "Codex",
    files: filesAt({ servers: ["mcp_servers"], isSettings: true }, "~/.codex/config.toml", ".codex/config.toml"),
    format: "toml",
    headerVariable: "${VAR}",
    ignored: [
      ...["required", "scopes", "oauth_resource", "default_tools_approval_mode"],
      ...["supports_parallel_tool_calls", "experimental_environment", "environment_id"],
    ],
    entry: codexEntry,
  },
  {
    name: "gemini",
    title: "Gemini CLI",
    files: filesAt({ isSettings: true }, "~/.gemini/settings.json", ".gemini/settings.json"),
    headerVariable: "${VAR}",
    timeoutUnit: "milliseconds",
    variables: "$VAR",
    ignored: ["trust", "description", "extension", "extensionName"],
    unsupported: {
      authProviderType: 'the gateway does not use Google credentials: write a token in "headers"',
      targetAudience: 'the gateway does not use Google credentials: write a token in "headers"',
      targetServiceAccount: 'the gateway does not use Google credentials: write a token in "headers"',
    },
    entry: withUrlKey("httpUrl"),
  },
  {
    name: "windsurf",
    title: "Windsurf",
    files: filesAt({}, "~/.codeium/windsurf/mcp_config.json"),
    headerVariable: "${env:VAR}",
    ignored: ["registry"],
    entry: withUrlKey("serverUrl"),
  },
  {
    name: "zed",
    title: "Zed",
    files: filesAt(
      { servers: ["context_servers"], isSettings: true },
      inConfigFolder("zed/settings.json", "%APPDATA%/Zed/settings.json"),
      ".zed/settings.json",
    ),
    timeoutUnit: "milliseconds",
    ignored: ["source", "settings", "remote"],
  },
  {
    name: "opencode",
    title: "opencode",
    files: filesAt(
      { servers: ["mcp"], isSettings: true },
      inConfigFolder("opencode/opencode.json"),
      "opencode.json",
      "opencode.jsonc",
    ),
    headerVariable: "{env:VAR}",
    timeoutUnit: "milliseconds",
    variables: "{env:VAR}",
    entry: opencodeEntry,
  },
  {
    name: "amp",
    title: "Amp",
    files: filesAt(
      { servers: ["amp.mcpServers"], isSettings: true },
      inConfigFolder("amp/settings.json"),
      ".amp/settings.json",
    ),
    headerVariable: "${VAR}",
  },
  {
    name: "cline",
    title: "Cline",
    files: filesAt({}, electron("Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json")),
    timeoutUnit: "seconds",
    ignored: ["autoApprove", "alwaysAllow", "remoteConfigured"],
    entry: withType("stdio", "streamableHttp"),
  },
  {
    name: "roo",
    title: "Roo Code",
    files: filesAt(
      {},
      electron("Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"),
      ".roo/mcp.json",
    ),
    headerVariable: "${env:VAR}",
    timeoutUnit: "seconds",
    ignored: ["alwaysAllow", "watchPaths"],
    entry: withType("stdio", "streamable-http"),
  },
  {
    name: "copilot",
    title: "Copilot CLI",
    files: filesAt({}, "~/.copilot/mcp-config.json"),
    timeoutUnit: "milliseconds",
    ignored: ["isDefaultServer", "source", "sourcePath"],
    unsupported: { filterMapping: "the gateway does not change the content of results" },
    entry: (server) => ({ ...withType("local", "http")(server), tools: ["*"] }),
  },
  {
    name: "kiro",
    title: "Kiro",
    files: filesAt({}, "~/.kiro/settings/mcp.json", ".kiro/settings/mcp.json"),
    headerVariable: "${VAR}",
    timeoutUnit: "milliseconds",
    ignored: ["autoApprove"],
  },
  {
    name: "lm-studio",
    title: "LM Studio",
    files: filesAt({}, "~/.lmstudio/mcp.json"),
  },
];

export const CLIENTS: readonly Client[] = TABLE.map((client) => ({
  format: "json",
  entry: (server) => server,
  ...client,
}));

/** Where a client's file may be looked for. */
export interface ClientPlace {
  /** Default: the operating system of this process. One that is not listed is treated like Linux. */
  readonly platform?: NodeJS.Platform;
  readonly home?: string;
  readonly env?: Environment;
  /** The folder of the project. Default: the current folder. */
  readonly project?: string;
}

/** The absolute path of a client's file. */
export function clientFilePath({ scope, path }: ClientFile, place: ClientPlace = {}): string {
  const { platform = process.platform, home = homeFolder(), env = process.env, project = process.cwd() } = place;
  const paths = platform === "win32" ? win32 : posix;
  const template = typeof path === "string" ? path : (path[platform] ?? path.linux);
  if (scope === "project") return paths.join(project, template);
  const [root = "", ...rest] = template.split("/");
  const folders: Readonly<Record<string, string | undefined>> = {
    "~": home,
    "%CONFIG%": env["XDG_CONFIG_HOME"] || paths.join(home, ".config"),
    "%APPDATA%": env["APPDATA"] || paths.join(home, "AppData", "Roaming"),
  };
  return paths.join(folders[root] ?? root, ...rest);
}

/** The client that a file belongs to by its path, and which of the client's files it is. */
export function findClientFile(path: string): { readonly client: Client; readonly file: ClientFile } | undefined {
  const normalized = `/${path.replaceAll("\\", "/")}`;
  return CLIENTS.flatMap((client) => client.files.map((file) => ({ client, file }))).find(({ file }) => {
    const templates = typeof file.path === "string" ? [file.path] : Object.values(file.path);
    return templates.some((template) => normalized.endsWith(`/${ending(template)}`));
  });
}

/** The folder that relative paths in a file refer to: of a file in a folder of a client, the folder above that. */
export function baseFolder(path: string): string {
  const folder = dirname(path);
  const clientFolder = [folder, dirname(folder)].find((parent) => CLIENT_FOLDERS.has(basename(parent)));
  return clientFolder === undefined ? folder : dirname(clientFolder);
}

/** What identifies a file wherever the home folder is: the parts from a folder with a dot, or the last two. */
function ending(template: string): string {
  const parts = template.split("/").filter((part) => !/^[~%]/.test(part));
  const dot = parts.findIndex((part) => part.startsWith("."));
  return parts.slice(dot < 0 ? -2 : dot).join("/");
}

/** Folders such as `.vscode`, in a project or the home folder. */
const CLIENT_FOLDERS: ReadonlySet<string> = new Set(
  CLIENTS.flatMap(({ files }) => files.flatMap(({ path }) => (typeof path === "string" ? [ending(path)] : [])))
    .filter((path) => path.includes("/"))
    .map((path) => path.slice(0, path.indexOf("/"))),
);

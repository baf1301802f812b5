// The kinds of entries under `mcpServers`: a command, a URL or a module; live sessions are in live.ts, programs and
// APIs in tool-kinds.ts. Each kind has a key of its own, further fields, and a function that turns them into the arguments of
// `upstream()`. To add a kind, define it and list it in KINDS of upstreams.ts. Nothing is started here.

import { resolve } from "node:path";
import { parseEnv } from "node:util";
import { SERVER_RECOGNIZER } from "../chain/transform.ts";
import { isForwardable, UPSTREAM, type UpstreamOptions, type UpstreamTarget } from "../chain/upstream/options.ts";
import type { Command } from "../client/command.ts";
import type { Handler } from "../core/handler.ts";
import { defined, errorMessage } from "../core/values.ts";
import { findServer, loadUserModule } from "../modules/load-module.ts";
import { OPENAPI } from "../openapi/options.ts";
import { isInterpreter, isShell, SHELL_CODE } from "../process/runners.ts";
import type { Position, Problem } from "./document.ts";
import * as read from "./readers.ts";
import { SIGN_IN_FIELDS, type SignInSettings } from "./sign-in.ts";
import { readValueFile, resolvePath } from "./variables.ts";

/** The arguments of `upstream()`. */
export interface UpstreamArguments {
  readonly target: UpstreamTarget;
  readonly options?: UpstreamOptions;
  /** For a URL: how to sign in if the server asks for it. */
  readonly signIn?: SignInSettings;
}

/** A program that an upstream needs. */
export interface RequiredProgram {
  readonly command: Command;
  readonly position: Position;
  /** What to do if the program is missing. Default: general advice. */
  readonly hint?: string;
  /** The upstream can be used without it. */
  readonly isOptional?: true;
}

/** Where a setting is in the file, and its path for messages. */
export interface ConfigPlace {
  readonly path: string;
  readonly position: Position;
  /** How to do without it, if that is written elsewhere. */
  readonly off?: string;
}

/** An upstream as read from the config: what its kind says about it. Shared code asks these and never the kind. */
export interface UpstreamSource {
  /** The values of the entry, for display; they may contain secrets. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** What would be started, loaded or called. */
  describe(): string;
  /** Its name in a status before it was ever created. Default: the kind. */
  readonly target?: string;
  /** The URL of an MCP server. */
  readonly url?: string;
  /** The modules that it loads into this process. */
  readonly modules?: readonly string[];
  /** Other files that it reads when it is created. If one changes, it is another upstream. */
  readonly files?: readonly string[];
  /** Why it cannot be restarted alone. */
  readonly restartProblem?: string;
  /** The tool that evaluates code. */
  readonly evaluate?: string;
  /** The programs that the upstream starts. Absent if it starts none, or if an input has no answer yet. */
  readonly programs?: readonly RequiredProgram[];
  /** Where the entry asks for a sandbox, if it does. */
  readonly sandbox?: ConfigPlace;
  /** A reason why the upstream will not work on this machine. */
  readonly warning?: Problem;
  /** Rejects with an error that says what is missing. */
  resolve(): Promise<UpstreamArguments>;
}

export interface UpstreamKind {
  /** The key that every entry of this kind has, and that no other entry has. */
  readonly key: string;
  /** What the value of the key is, for hints. */
  readonly purpose: string;
  readonly fields: read.Fields;
  /** Whether there is a connection, which `defaults`, `limits` and all options of `upstream()` concern. */
  readonly isConnected?: true;
  /** What it makes, in the plural, for warnings about options of `upstream()` that are not among its fields. */
  readonly plural?: string;
  /** Hints for entries that also have the key of another kind. Each hint is stored under that other key. */
  readonly conflicts?: Readonly<Record<string, string>>;
  /** Hints for keys that are wrong in entries of this kind only. */
  readonly misplaced?: Readonly<Record<string, string>>;
  /** Checks the fields against each other; returns undefined if it reported a problem. */
  read(values: Readonly<Record<string, unknown>>, cursor: read.Cursor): UpstreamSource | undefined;
}

/** Infers the types of the values from the fields. */
export function defineKind<F extends read.Fields>(
  fields: F,
  kind: Omit<UpstreamKind, "fields" | "read"> & {
    readonly key: keyof F & string;
    read(values: read.FieldValues<F>, cursor: read.Cursor): UpstreamSource | undefined;
  },
): UpstreamKind {
  return { ...kind, fields, read: (values, cursor) => kind.read(values as read.FieldValues<F>, cursor) };
}

/** A string, with a warning if it looks like a placeholder or a variable of a shell. */
const filledIn: read.Reader<string> = read.reader(read.anyString.schema, (cursor) => {
  warnOfPlaceholder(cursor);
  return read.anyString(cursor);
});

/** Also accepts numbers and booleans, as clients do. In VS Code, null unsets a variable; we cannot do that here. */
const envValue: read.Reader<string> = read.reader({ type: ["string", "number", "boolean", "null"] }, (cursor) => {
  if (cursor.kind === "string") return filledIn(cursor);
  if (cursor.kind === "number" || cursor.kind === "boolean") return String(cursor.value);
  if (cursor.kind !== "null") return read.wrongType(cursor, "a string");
  const hint = "a variable cannot be unset for one command; unset it in the environment of the gateway";
  cursor.warn("null is ignored", hint);
  return undefined;
});

export const env: read.Reader<Readonly<Record<string, string>>> = read
  .recordOf(envValue, 'an object of strings, such as {"API_KEY": "${API_KEY}"}')
  .describe("Environment variables for the command, programs or live sessions, added to those that they inherit.");

export const cwd: read.Reader<string> = read
  .pathTo("folder", "warning")
  .describe("The folder to start the command, programs or live sessions in. Default: the folder of this file.");

const programString = read.stringThat(
  (text) => text.trim() !== "" && !text.includes("\0"),
  "not a valid command",
  "write the program to start, such as npx",
  "\\S",
);

/** A program by name or path. A name is looked up on the PATH; anything with a slash is a path. */
export const program: read.Reader<string> = read.reader(programString.schema, (cursor) => {
  const program = programString(cursor);
  if (program === undefined) return undefined;
  const [name = "", ...rest] = program.trim().split(/\s+/);
  // A path may contain spaces, but hardly the name of a program.
  if (rest.length > 0 && !/[/\\]/.test(name)) {
    // The arguments are not quoted, since one of them may be a secret.
    const isSecret = read.scanStrings(cursor).secrets.length > 0;
    const command = isSecret ? "..." : JSON.stringify(name);
    return cursor.error("has arguments", `write "command": ${command}, and each argument in "args": ["...", "..."]`);
  }
  return /[/\\]/.test(program) ? resolvePath(cursor.context.folder, program) : program;
});

/** Warns of what a shell would expand in arguments, except where a shell gets them as code. */
function checkArguments(cursor: read.Cursor, file: string, args: readonly string[]): void {
  for (const [at, arg] of (cursor.get("args")?.items() ?? []).entries()) {
    if (isShell(file) && SHELL_CODE.test(args[at - 1] ?? "")) continue;
    if (arg.kind === "string" && String(arg.value).startsWith("~/")) {
      arg.warn("~ is not expanded in an argument", "write ${userHome} instead of ~");
    }
    warnOfPlaceholder(arg);
  }
}

/** Checks that the file exists which an interpreter is to run. Only a first argument is sure to be one. */
function checkScript(cursor: read.Cursor, file: string, args: readonly string[], folder: string): void {
  const [first] = cursor.get("args")?.items() ?? [];
  const [script = ""] = args;
  if (first === undefined || !isInterpreter(file) || !/^[^-].*\.[a-z]{2,3}$/.test(script)) return;
  const { secrets, isPending } = read.scanStrings(first);
  if (isPending) return;
  const isSecret = secrets.length > 0;
  cursor.context.files.push({
    path: resolve(folder, script),
    kind: "file",
    severity: "warning",
    cursor: first,
    isSecret,
  });
}

/** The program, unless it depends on an input that has no answer yet. */
export function requiredProgram(
  cursor: read.Cursor,
  key: string,
  required: RequiredProgram,
): Pick<UpstreamSource, "programs"> {
  return read.isPending(cursor, key, "cwd") ? {} : { programs: [required] };
}

const LOCAL = ["stdio", "local"] as const;
const TRANSPORTS = [...LOCAL, "http", "streamable-http", "streamableHttp", "sse", "remote"] as const;
const transport = read.oneOf(TRANSPORTS);

/**
 * Reads `type`, which some clients call `transport`. The key `command` or `url` already determines the transport, and
 * the kind of HTTP transport is detected. So the value is only checked for contradictions.
 */
function transportFields(style: "stdio" | "http"): { type: read.Reader<string>; transport: read.Reader<string> } {
  const checked = read.reader(transport.schema, (cursor) => {
    const type = transport(cursor);
    if (type === undefined || LOCAL.some((local) => local === type) === (style === "stdio")) return type;
    const [has, needs] = style === "stdio" ? ["command", "url"] : ["url", "command"];
    return cursor.error(`does not fit an entry with "${has}"`, `remove it, or write "${needs}" instead of "${has}"`);
  });
  return {
    type: checked.describe("The transport. Optional, since command or url already says it."),
    transport: checked.describe("Same as type, by the name that some clients use."),
  };
}

export const command: UpstreamKind = defineKind(
  {
    command: program.describe(
      "A program to start, an MCP server on stdio. A name is looked up on the PATH; a path is relative to this file.",
    ),
    args: read
      .arrayOf(read.anyString, 'an array of strings, such as ["-y", "notes-mcp"]')
      .describe("The arguments of the command."),
    env,
    cwd,
    envFile: read
      .pathTo("file", "error")
      .describe("A file of NAME=value lines for the environment of the command; env overrides it."),
    ...transportFields("stdio"),
  },
  {
    key: "command",
    purpose: "a program to start",
    isConnected: true,
    read({ command: file, args = [], env: entryEnv = {}, cwd: folder, envFile }, cursor) {
      if (file === undefined) return undefined;
      checkArguments(cursor, file, args);
      checkScript(cursor, file, args, folder ?? cursor.context.folder);
      const target = { command: file, args, env: entryEnv, cwd: folder ?? cursor.context.folder };
      const settings = { ...target, ...defined({ envFile }) };
      const { position } = cursor.get("command") ?? cursor;
      return {
        settings,
        describe: () => [file, ...args].join(" "),
        target: file,
        files: envFile === undefined ? [] : [envFile],
        ...requiredProgram(cursor, "command", { command: settings, position }),
        async resolve() {
          const fromFile = envFile === undefined ? {} : readEnvFile(envFile);
          return { target: { ...target, env: { ...fromFile, ...entryEnv } } };
        },
      };
    },
  },
);

function readEnvFile(file: string): Record<string, string> {
  try {
    return parseEnv(readValueFile(file)) as Record<string, string>;
  } catch (error) {
    throw new Error(`Cannot read the envFile: ${errorMessage(error)}`, { cause: error });
  }
}

const headerValues: read.Reader<Readonly<Record<string, string>>> = read.recordOf(
  read.stringThat(
    (text) => /^[\t\x20-\x7e\x80-\xff]*$/.test(text),
    "not a valid header value",
    "write one line of Latin-1 characters",
  ),
  'an object of strings, such as {"Authorization": "Bearer ${TOKEN}"}',
);

const { description } = OPENAPI.headers;

export const headers: typeof headerValues = read.reader({ ...headerValues.schema, description }, (cursor) => {
  for (const member of cursor.members()) {
    const { name, keyOffset } = member;
    warnOfPlaceholder(member);
    if (/^[!#$%&'*+.^_`|~\w-]+$/.test(name)) continue;
    const hint = "use letters, digits and -, and no spaces";
    cursor.context.problems.error(keyOffset, `${JSON.stringify(name)} is not a valid header name`, hint);
  }
  return headerValues(cursor);
});

export const url: UpstreamKind = defineKind(
  {
    url: read
      .stringThat(
        isHttpUrl,
        "not a valid HTTP URL",
        "write one that begins with https:// or http://, without a user name or password",
        "^https?://|\\$\\{",
      )
      .describe("The URL of an MCP server over HTTP. The kind of HTTP transport is detected."),
    headers,
    forwardHeaders: read
      .arrayOf(
        read.stringThat(
          isForwardable,
          "this header cannot be passed on",
          "credentials and headers of the protocol stay with us; name others, such as X-Tenant",
        ),
        'an array of strings, such as ["X-Tenant"]',
      )
      .describe(UPSTREAM.forwardHeaders.description),
    ...SIGN_IN_FIELDS,
    ...transportFields("http"),
  },
  {
    key: "url",
    purpose: "an HTTP address",
    isConnected: true,
    read({ url: address, headers: entryHeaders, forwardHeaders, oauth, auth = oauth }, cursor) {
      if (address === undefined) return undefined;
      const options = defined({ headers: entryHeaders, forwardHeaders });
      const hasHeader = Object.keys(entryHeaders ?? {}).some((name) => name.toLowerCase() === "authorization");
      const key = cursor.get("auth") ?? cursor.get("oauth");
      if (hasHeader && auth !== undefined && auth !== false) {
        return key?.errorAtKey("the headers have an Authorization too", "keep one of them");
      }
      const signIn = auth === false || hasHeader ? undefined : (auth ?? {});
      return {
        settings: { url: address, ...options, ...defined({ auth }) },
        describe: () => `the server at ${URL.canParse(address) ? new URL(address).origin : "a URL"}`,
        url: address,
        resolve: async () => ({ target: address, options, ...defined({ signIn }) }),
      };
    },
  },
);

export function isHttpUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password } = new URL(text);
  return (protocol === "http:" || protocol === "https:") && username === "" && password === "";
}

/** A server in this process: what `catenary serve MODULE` would serve. */
export const module: UpstreamKind = defineKind(
  {
    module: read
      .pathTo("file", "error")
      .describe(
        "The path of a JavaScript or TypeScript module that exports a server as its default or as `server`; relative to this file.",
      ),
  },
  {
    key: "module",
    purpose: "a module that exports a server",
    read({ module: file }) {
      if (file === undefined) return undefined;
      return {
        settings: { module: file },
        describe: () => `the module ${file}`,
        modules: [file],
        restartProblem: "is a module, which is loaded once; restart the gateway to load it again",
        resolve: async () => ({ target: await serverFromModule(file) }),
      };
    },
  },
);

async function serverFromModule(file: string): Promise<Handler> {
  const module = await loadUserModule(file);
  try {
    return findServer(module, SERVER_RECOGNIZER);
  } catch (error) {
    throw new Error(`${file} ${errorMessage(error)}`, { cause: error });
  }
}

/** What a value that was meant to be replaced looks like, and what to write instead. */
const PLACEHOLDERS: readonly (readonly [RegExp, (match: RegExpExecArray) => readonly [string, string]])[] = [
  [/(?<![\w$])\$([A-Z_][A-Z0-9_]*)\b/, ([match, name]) => [`${match} is not expanded`, `write \${${name}}`]],
  [/%([A-Z_][A-Z0-9_]*)%/, ([match, name]) => [`${match} is not expanded`, `write \${${name}}`]],
  [
    /<[A-Za-z][\w .-]{2,40}>|\byour[-_ ](?:[\w-]*[-_ ])?(?:key|token|secret|password)\b/i,
    ([match]) => [`${match} looks like a placeholder`, "write the value, or ${NAME} to take it from the environment"],
  ],
];

/** Warns of a string that was probably meant to be something else: a variable of a shell, or a placeholder. */
function warnOfPlaceholder(cursor: read.Cursor): void {
  const text = cursor.kind === "string" ? String(cursor.value) : "";
  for (const [pattern, explain] of PLACEHOLDERS) {
    // The text between the braces of a reference is not looked at.
    const match = pattern.exec(text.replaceAll(/\$\{[^{}]*\}/g, " "));
    if (match === null) continue;
    cursor.warn(...explain(match));
    return;
  }
}

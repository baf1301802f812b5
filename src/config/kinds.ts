// The kinds of entries under `mcpServers`: a command, a URL or a module; live sessions are in live.ts. Each kind has a
// key of its own, further fields, and a function that turns them into the arguments of `upstream()`. To add a kind,
// define it and list it in KINDS of upstreams.ts. Nothing is started here.

import { readFile } from "node:fs/promises";
import { isAbsolute, resolve } from "node:path";
import { parseEnv } from "node:util";
import type { UpstreamTarget, UpstreamOptions } from "../chain/upstream/options.ts";
import type { Command } from "../client/command.ts";
import {
  type Cursor,
  anyString,
  arrayOf,
  isPending,
  oneOf,
  pathTo,
  recordOf,
  stringThat,
  wrongType,
  type Fields,
  type FieldValues,
  type Reader,
} from "./readers.ts";
import type { Position, Problem } from "./document.ts";
import { serverFromModule } from "./user-modules.ts";

/** The arguments of `upstream()`. */
export interface UpstreamArguments {
  readonly target: UpstreamTarget;
  readonly options?: UpstreamOptions;
}

export interface RequiredProgram {
  readonly command: Command;
  readonly position: Position;
  /** What to do if the program is missing. Default: general advice. */
  readonly hint?: string;
}

/** An upstream as read from the config. */
export interface UpstreamSource {
  readonly kind: string;
  /** The values of the entry, for display; they may contain secrets. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** The program that the upstream starts. Absent if it starts none, or if an input that it needs has no answer yet. */
  readonly program?: RequiredProgram;
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
  readonly fields: Fields;
  /** Hints for entries that also have the key of another kind. Each hint is stored under that other key. */
  readonly conflicts?: Readonly<Record<string, string>>;
  /** Checks the fields against each other; returns undefined if it reported a problem. */
  read(values: Readonly<Record<string, unknown>>, cursor: Cursor): UpstreamSource | undefined;
}

/** Infers the types of the values from the fields. */
export function defineKind<F extends Fields>(
  fields: F,
  kind: {
    readonly key: keyof F & string;
    readonly purpose: string;
    readonly conflicts?: Readonly<Record<string, string>>;
    read(values: FieldValues<F>, cursor: Cursor): UpstreamSource | undefined;
  },
): UpstreamKind {
  return { ...kind, fields, read: (values, cursor) => kind.read(values as FieldValues<F>, cursor) };
}

/** Also accepts numbers and booleans, as clients do. In VS Code, null unsets a variable; we cannot do that here. */
const envValue: Reader<string> = (cursor) => {
  const { value } = cursor;
  if (value.kind === "string") return anyString(cursor);
  if (value.kind === "number" || value.kind === "boolean") return String(value.scalar);
  if (value.kind !== "null") return wrongType(cursor, "a string");
  const hint = "a variable cannot be unset for one command; unset it in the environment of the gateway";
  cursor.warn("null is ignored", hint);
  return undefined;
};

export const environment: Reader<Readonly<Record<string, string>>> = recordOf(
  envValue,
  'an object of strings, such as {"API_KEY": "${API_KEY}"}',
);

/** A program by name or path. A name is looked up on the PATH; anything with a slash is a path. */
export const program: Reader<string> = (cursor) => {
  const command = stringThat(
    (given) => given.trim() !== "" && !given.includes("\0"),
    "not a valid command",
    "write the program to start, such as npx",
  )(cursor);
  if (command === undefined) return undefined;
  return /[/\\]/.test(command) && !isAbsolute(command) ? resolve(cursor.context.folder, command) : command;
};

const TRANSPORTS = ["stdio", "http", "streamable-http", "streamableHttp", "sse"] as const;
const transport = oneOf(TRANSPORTS);

/**
 * Reads `type`, which some clients call `transport`. The key `command` or `url` already determines the transport, and
 * the kind of HTTP transport is detected. So the value is only checked for contradictions.
 */
function transportOf(style: "stdio" | "http"): Reader<(typeof TRANSPORTS)[number]> {
  return (cursor) => {
    const type = transport(cursor);
    if (type === undefined || (type === "stdio") === (style === "stdio")) return type;
    const [has, needs] = style === "stdio" ? ["command", "url"] : ["url", "command"];
    return cursor.error(`does not fit an entry with "${has}"`, `remove it, or write "${needs}" instead of "${has}"`);
  };
}

export const command: UpstreamKind = defineKind(
  {
    command: program,
    args: arrayOf(anyString, 'an array of strings, such as ["-y", "notes-mcp"]'),
    env: environment,
    cwd: pathTo("folder", "warning"),
    envFile: pathTo("file", "error"),
    type: transportOf("stdio"),
    transport: transportOf("stdio"),
  },
  {
    key: "command",
    purpose: "a program to start",
    read({ command: file, args = [], env = {}, cwd, envFile }, cursor) {
      if (file === undefined) return undefined;
      const settings = { command: file, args, env, cwd: cwd ?? cursor.context.folder, ...(envFile && { envFile }) };
      const isUnknown = ["command", "cwd"].some((name) => isPending(cursor, name));
      const { position } = cursor.get("command") ?? cursor;
      return {
        kind: "command",
        settings,
        ...(!isUnknown && { program: { command: settings, position } }),
        async resolve() {
          const fromFile = envFile === undefined ? {} : await readEnvFile(envFile);
          const { envFile: _file, ...rest } = settings;
          return { target: { ...rest, env: { ...fromFile, ...env } } };
        },
      };
    },
  },
);

async function readEnvFile(file: string): Promise<Record<string, string>> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    throw new Error(`Cannot read the envFile: ${(error as NodeJS.ErrnoException).code ?? "not a file"}`, {
      cause: error,
    });
  }
  return parseEnv(text.replace(/^\uFEFF/, "")) as Record<string, string>;
}

const headerValues = recordOf(
  stringThat(
    (given) => /^[\t\x20-\x7e\x80-\xff]*$/.test(given),
    "not a valid header value",
    "write one line of Latin-1 characters",
  ),
  'an object of strings, such as {"Authorization": "Bearer ${TOKEN}"}',
);

const headers: typeof headerValues = (cursor) => {
  for (const { name, offset } of cursor.members()) {
    if (/^[!#$%&'*+.^_`|~\w-]+$/.test(name)) continue;
    const hint = "use letters, digits and -, and no spaces";
    cursor.context.problems.error(offset, `${JSON.stringify(name)} is not a valid header name`, hint);
  }
  return headerValues(cursor);
};

export const url: UpstreamKind = defineKind(
  {
    url: stringThat(
      isHttpUrl,
      "not a valid HTTP URL",
      "write one that begins with https:// or http://, without a user name or password",
    ),
    headers,
    type: transportOf("http"),
    transport: transportOf("http"),
  },
  {
    key: "url",
    purpose: "an HTTP address",
    read({ url: address, headers: given }) {
      if (address === undefined) return undefined;
      const options = given === undefined ? {} : { headers: given };
      return {
        kind: "url",
        settings: { url: address, ...options },
        resolve: async () => ({ target: address, options }),
      };
    },
  },
);

function isHttpUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password } = new URL(text);
  return (protocol === "http:" || protocol === "https:") && username === "" && password === "";
}

/** A server in this process: what `catenary serve MODULE` would serve. */
export const module: UpstreamKind = defineKind(
  { module: pathTo("file", "error") },
  {
    key: "module",
    purpose: "a module that exports a server",
    read({ module: file }) {
      if (file === undefined) return undefined;
      return {
        kind: "module",
        settings: { module: file },
        resolve: async () => ({ target: await serverFromModule(file) }),
      };
    },
  },
);

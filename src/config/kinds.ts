// An end that is a program: `command`, `args`, `env`, `cwd`, and VS Code's `envFile`. Nothing is started here.

import { readFile } from "node:fs/promises";
import { isAbsolute, resolve } from "node:path";
import { parseEnv } from "node:util";
import {
  anyText,
  contents,
  listOf,
  pathTo,
  recordOf,
  textThat,
  wrongKind,
  type Fields,
  type Reader,
} from "./readers.ts";
import { kindOf, type Kind } from "./upstream-kind.ts";
import { wireOf } from "./kinds/wire.ts";

/** Clients take numbers for texts here, and so do we; null, which takes a variable away in VS Code, is not for a child. */
const envValue: Reader<string> = (spot) => {
  const { value } = spot;
  if (value.kind === "text") return anyText(spot);
  if (value.kind === "number" || value.kind === "boolean") return String(value.plain);
  if (value.kind !== "null") return wrongKind(spot, "a text");
  spot.warn(
    " is null and passed over",
    "nothing is taken away from the environment of a command; unset it for the gateway itself",
  );
  return undefined;
};

/** A program by its name or its path. */
export const program: Reader<string> = (spot) => {
  const read = textThat(
    (given) => given.trim() !== "" && !given.includes("\0"),
    " is no command",
    "write the program to start, such as npx",
  )(spot);
  return read === undefined ? undefined : located(read, spot.reading.folder);
};

/** A name is looked for on the PATH; what has a slash in it is a path. */
function located(command: string, folder: string): string {
  return /[/\\]/.test(command) && !isAbsolute(command) ? resolve(folder, command) : command;
}

export const environment: Reader<Readonly<Record<string, string>>> = recordOf(
  envValue,
  'an object of texts, such as {"API_KEY": "${API_KEY}"}',
);

const FIELDS = {
  command: program,
  args: listOf(anyText, 'a list of texts, such as ["-y", "notes-mcp"]'),
  env: environment,
  cwd: pathTo("folder", "warning"),
  envFile: pathTo("file", "error"),
  type: wireOf("stdio"),
  transport: wireOf("stdio"),
} as const satisfies Fields;

export const command: Kind = kindOf(FIELDS, {
  key: "command",
  purpose: "a program to start",
  found({ command: file, args = [], env = {}, cwd, envFile }, spot) {
    if (file === undefined) return undefined;
    const { reading } = spot;
    const isOpen = ["command", "cwd"].some((name) => {
      const named = spot.named(name);
      return named !== undefined && contents(named).isOpen;
    });
    const about = { command: file, args, env, cwd: cwd ?? reading.folder, ...(envFile && { envFile }) };
    return {
      kind: "command",
      about,
      ...(!isOpen && { starts: { program: about, position: (spot.named("command") ?? spot).position } }),
      async reach() {
        const fromFile = envFile === undefined ? {} : await readEnv(envFile);
        const { envFile: _read, ...rest } = about;
        return { target: { ...rest, env: { ...fromFile, ...env } } };
      },
    };
  },
});

async function readEnv(file: string): Promise<Record<string, string>> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    throw new Error(`the envFile cannot be read: ${(error as NodeJS.ErrnoException).code ?? "it is no file"}`, {
      cause: error,
    });
  }
  return parseEnv(text.replace(/^\uFEFF/, "")) as Record<string, string>;
}

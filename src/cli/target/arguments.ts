// Arguments as a person writes them: `key=text`, `key:=json`, either from a file by `@`, and `--args` for a whole
// object. Here they are read, with the files and the stdin that they name; what they become is decided where it is
// known what the tool or the prompt takes. A dot in a key is part of its name: what is nested is written as JSON.

import { readFile } from "node:fs/promises";
import { buffer } from "node:stream/consumers";
import { isObject } from "../../core/objects.ts";
import { errorMessage } from "../../core/text.ts";
import { NotFoundError, UsageError } from "../exit-codes.ts";

export interface Given {
  readonly key: string;
  /** A text is still to be converted; a value is what it is. */
  readonly value: { readonly text: string } | { readonly json: unknown };
}

export const ARGUMENTS_HELP = `Arguments:
  key=value              a text; where the schema says number, integer, boolean, null, array
                         or object, it is converted. An array takes its items one by one
                         (tag=a tag=b) or as JSON (tag='["a","b"]')
  key:=json              a value as JSON: count:=3 filter:='{"open":true}'
  key=@file, key:=@file  the text, or the JSON, of a file; @- is stdin. A text that begins
                         with @ is written as JSON: key:='"@name"'
  --args JSON            all arguments as one JSON object; \`--args -\` reads it from stdin.
                         What is given by key comes on top of it
  A dot in a key is part of its name; what is nested is written as JSON.
`;

/** Throws a UsageError, or a NotFoundError where a file is not there. */
export async function readArguments(words: readonly string[], whole?: string): Promise<readonly Given[]> {
  const inputs = new Inputs();
  const given: Given[] = [];
  if (whole !== undefined) {
    const values = parsed("--args", whole === "-" ? await inputs.text("--args -", "-") : whole);
    if (!isObject(values)) throw new UsageError(`--args must be a JSON object, such as '{"text":"hi"}'`);
    for (const [key, json] of Object.entries(values)) given.push({ key, value: { json } });
  }
  const replaced = new Set<string>();
  for (const word of words) {
    const [, key = "", colon, value = ""] = /^([^=]+?)(:?)=([^]*)$/.exec(word) ?? [];
    if (key === "" || key === ":")
      throw new UsageError(`${word} is no argument: write key=value for a text, key:=json for JSON`);
    const text = value.startsWith("@") ? await inputs.text(word, value.slice(1)) : value;
    const one: Given = { key, value: colon === ":" ? { json: parsed(key, text) } : { text } };
    // What came by --args gives way; the same key twice on the line is for the schema to judge.
    if (whole !== undefined && !replaced.has(key)) {
      replaced.add(key);
      const at = given.findIndex((other) => other.key === key);
      if (at >= 0) given.splice(at, 1);
    }
    given.push(one);
  }
  return given;
}

function parsed(what: string, text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new UsageError(`${what} is not JSON: ${errorMessage(error)}`);
  }
}

/** The files that arguments name. Stdin can be read only once. */
class Inputs {
  #stdin: string | undefined;

  async text(what: string, path: string): Promise<string> {
    if (path === "") throw new UsageError(`${what} names no file behind the @`);
    if (path !== "-") return decoded(path, await contentOf(path, what));
    if (this.#stdin !== undefined) throw new UsageError(`${what}: stdin was read already by ${this.#stdin}`);
    this.#stdin = what;
    return decoded("stdin", await buffer(process.stdin));
  }
}

async function contentOf(path: string, what: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") {
      throw new NotFoundError(
        `There is no file ${path} for ${what}; a text that begins with @ is written key:='"@..."'`,
      );
    }
    throw new UsageError(`${path} cannot be read: ${errorMessage(error)}`);
  }
}

function decoded(what: string, bytes: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new UsageError(`${what} is no UTF-8 text; a tool takes bytes only in a form of its own, such as base64`);
  }
}

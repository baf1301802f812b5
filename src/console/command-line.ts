// A call as a command of a shell. What it quotes is inert there. The pages use it too, so it imports nothing of Node.

import { isObject } from "../core/values.ts";

/** The command that makes a call again. Undefined for what a command cannot make. */
export function catenaryCommand(
  method: string,
  params: { readonly [name: string]: unknown },
  url: string,
): string | undefined {
  const { name, uri, arguments: args } = params;
  const values = isObject(args) ? args : {};
  if (method === "resources/read" && typeof uri === "string") return shellWords(["catenary", "read", url, uri]);
  if ((method !== "tools/call" && method !== "prompts/get") || typeof name !== "string") return undefined;
  const command = method === "tools/call" ? "call" : "prompt";
  const isPlain = Object.keys(values).every((key) => /^[^-=:@\s][^=:\s]*$/.test(key) && !UNSEEN.test(key));
  // Whatever a key is, it can be written as JSON.
  const rest = isPlain
    ? Object.entries(values).map(([key, value]) => argument(key, value))
    : ["--args", visibleJson(values)];
  return shellWords(["catenary", command, url, name, ...rest]);
}

/** Characters that a terminal does not show as they are: they are written as escapes. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\u2028\u2029]/u;

function argument(key: string, value: unknown): string {
  const isText = typeof value === "string" && !value.startsWith("@") && !UNSEEN.test(value);
  return isText ? `${key}=${value}` : `${key}:=${visibleJson(value)}`;
}

/** JSON in which all characters are seen. */
export function visibleJson(value: unknown): string {
  const json = JSON.stringify(value) ?? "null";
  return json.replaceAll(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\u2028\u2029]/gu, (character) =>
    Array.from({ length: character.length }, (_, at) => {
      return `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`;
    }).join(""),
  );
}

/** Words of a POSIX shell. */
export function shellWords(all: readonly string[]): string {
  return all
    .map((word) =>
      /^[\w@%+=:,./-]+$/.test(word) && !word.startsWith("=") ? word : `'${word.replaceAll("'", `'\\''`)}'`,
    )
    .join(" ");
}

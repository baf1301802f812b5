// The languages that have live sessions, by the names that people write, in a config and on a command line. What runs
// them is in the live room, which is loaded by those who want a session and by nobody else.

import type { Handler } from "../core/handler.ts";
import { nearest } from "../core/options.ts";

/** What a JavaScript session may touch. */
interface Permission {
  readonly read?: readonly string[];
  readonly write?: readonly string[];
  readonly childProcess?: boolean;
  readonly net?: boolean;
}

/** As a config may say it. */
export interface LiveSettings {
  readonly timeout?: number;
  readonly memory?: number;
  readonly output?: number;
  readonly printLength?: number;
  readonly printDepth?: number;
  readonly sessions?: number;
  readonly idle?: number;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly program?: string;
  readonly permission?: boolean | Permission;
}

export type LanguageName = "js" | "javascript" | "lisp";

export const LANGUAGE_NAMES: readonly LanguageName[] = ["js", "javascript", "lisp"];

/** Names by which people may mean one of them. */
const ELSEWHERE: ReadonlyMap<string, LanguageName> = new Map([
  ["ecmascript", "js"],
  ["node", "js"],
  ["nodejs", "js"],
  ["ts", "js"],
  ["typescript", "js"],
  ["cl", "lisp"],
  ["clisp", "lisp"],
  ["common-lisp", "lisp"],
  ["commonlisp", "lisp"],
  ["sbcl", "lisp"],
]);

/** Letters that may be wrong in a name. */
const SLIP = 2;

function isLanguage(name: string): name is LanguageName {
  return LANGUAGE_NAMES.some((known) => known === name);
}

/** The one that this is a name of, however it is spelt; undefined: none. */
export function languageOf(name: string): LanguageName | undefined {
  const small = name.toLowerCase();
  return isLanguage(small) ? small : ELSEWHERE.get(small);
}

/** The one that was probably meant; undefined: none is near. */
export function nearLanguage(name: string): LanguageName | undefined {
  return languageOf(name) ?? nearest(name, LANGUAGE_NAMES, name.length < 4 ? 1 : SLIP).find(isLanguage);
}

/** The server of a language's sessions; the live room is loaded by it. */
export async function liveUpstream(name: LanguageName, settings: LiveSettings): Promise<Handler> {
  const { javascript, lisp } = await import("../live/index.ts");
  const { timeout, memory, output, printLength, printDepth, sessions, idle, cwd, env, program, permission } = settings;
  const options = {
    limits: {
      ...(timeout !== undefined && { timeoutMs: timeout }),
      ...(memory !== undefined && { memoryMb: memory }),
      ...(output !== undefined && { outputChars: output }),
      ...(printLength !== undefined && { printLength }),
      ...(printDepth !== undefined && { printDepth }),
    },
    ...(sessions !== undefined && { sessions }),
    ...(idle !== undefined && { idle }),
    ...(cwd !== undefined && { cwd }),
    ...(env !== undefined && { env }),
    ...(program !== undefined && { command: program }),
  };
  return name === "lisp" ? lisp(options) : javascript({ ...options, ...(permission !== undefined && { permission }) });
}

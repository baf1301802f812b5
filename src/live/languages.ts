// The registry of live languages. A language is its folder and one line here. Configs, commands and errors read from
// it, before any code of a language is loaded.

import { nearest } from "../core/options.ts";
import { js } from "./js/entry.ts";
import { lisp } from "./lisp/entry.ts";
import { smalltalk } from "./smalltalk/entry.ts";
import type { LanguageEntry, SettingSpec } from "./tool.ts";

export const LANGUAGES: readonly LanguageEntry[] = [js, lisp, smalltalk];

/** The setting `sandbox`, which all languages have; see `SandboxOptions`. */
export const SANDBOX_SETTING: SettingSpec = {
  type: "object",
  orFlag: true,
  description:
    "Runs live sessions in a sandbox (bubblewrap, Linux only): no network, no files but those of the system's programs, and a private folder in memory. true, or an object with what they may use. Default: false.",
  fields: {
    network: {
      type: "flag",
      description: "Whether the network may be used, with all services that listen on this machine. Default: false.",
    },
    read: { type: "paths", description: "Files and folders that may be read, relative to this file. Default: none." },
    write: {
      type: "paths",
      description: "Files and folders that may be changed, relative to this file. Default: none.",
    },
    processes: { type: "count", description: "Maximum processes and threads of a session at once. Default: 50." },
    diskMb: { type: "count", description: "Maximum megabytes of files in the private folder. Default: 256." },
  },
};

/** The names that a config accepts. */
export const LANGUAGE_NAMES: readonly string[] = LANGUAGES.flatMap(({ name, alternateName }) =>
  alternateName === undefined ? [name] : [name, alternateName],
);

/** The languages in words: "js (JavaScript and TypeScript) or lisp (Common Lisp, needs SBCL)". */
export const LANGUAGE_LIST: string = orList(LANGUAGES.map(({ name, description }) => `${name} (${description})`));

/** "a, b or c" */
export function orList(words: readonly string[]): string {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}

/** Finds a language by its name or an alias, ignoring case. */
export function findLanguage(given: string): LanguageEntry | undefined {
  const lower = given.toLowerCase();
  return LANGUAGES.find(
    ({ name, alternateName, aliases }) => name === lower || alternateName === lower || aliases.includes(lower),
  );
}

/** "did you mean js?", or undefined if no language is near. */
export function suggestLanguage(given: string): string | undefined {
  const [near] = nearest(given, LANGUAGE_NAMES, given.length < 4 ? 1 : 2);
  const found = findLanguage(given)?.name ?? near;
  return found && `did you mean ${found}?`;
}

/** Every setting that some language has, with the languages that have it. */
export function languageSettings(): ReadonlyMap<string, { readonly spec: SettingSpec; readonly titles: string[] }> {
  const found = new Map<string, { readonly spec: SettingSpec; readonly titles: string[] }>();
  for (const { title, settings } of LANGUAGES) {
    for (const [name, spec] of Object.entries(settings)) {
      const known = found.get(name);
      if (known === undefined) found.set(name, { spec, titles: [title] });
      else known.titles.push(title);
    }
  }
  return found;
}

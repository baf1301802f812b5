// The registry of live languages. A language is its folder and one line here. Configs, commands and errors read from
// it, before any code of a language is loaded.

import { nearest, type Field } from "../core/options.ts";
import { js } from "./js/entry.ts";
import { lisp } from "./lisp/entry.ts";
import { smalltalk } from "./smalltalk/entry.ts";
import type { LanguageEntry } from "./tool.ts";

export const LANGUAGES: readonly LanguageEntry[] = [js, lisp, smalltalk];

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
export function findLanguage(name: string): LanguageEntry | undefined {
  const lower = name.toLowerCase();
  return LANGUAGES.find(
    ({ name, alternateName, aliases }) => name === lower || alternateName === lower || aliases.includes(lower),
  );
}

/** "did you mean js?", or undefined if no language is near. */
export function suggestLanguage(name: string): string | undefined {
  const [near] = nearest(name, LANGUAGE_NAMES, name.length < 4 ? 1 : 2);
  const suggestion = findLanguage(name)?.name ?? near;
  return suggestion && `did you mean ${suggestion}?`;
}

/** Every setting that some language has, with the languages that have it. */
export function languageSettings(): ReadonlyMap<string, { readonly field: Field; readonly titles: string[] }> {
  const fields = new Map<string, { readonly field: Field; readonly titles: string[] }>();
  for (const { title, settings } of LANGUAGES) {
    for (const [name, field] of Object.entries(settings)) {
      const known = fields.get(name);
      if (known === undefined) fields.set(name, { field, titles: [title] });
      else known.titles.push(title);
    }
  }
  return fields;
}

// The LANGUAGE of `eval` and `repl`: the list for their help, and the flags that choose the program which runs it. Both
// come from the registry of languages.

import { defined } from "../../core/values.ts";
import { LANGUAGES, languageSettings } from "../../live/languages.ts";
import type { LanguageEntry } from "../../live/tool.ts";
import { UsageError } from "../command.ts";

/** The settings of a config that are a flag here too: those that are a string. */
const SETTINGS = [...languageSettings()].filter(([, { spec }]) => spec.type === "path" || spec.type === "string");

export const LANGUAGES_HELP: string = LANGUAGES.map(
  ({ name, description }) => `  ${name.padEnd(22)} ${description}`,
).join("\n");

/** Typed as the one that every language has; the others are only passed on. */
export const LANGUAGE_FLAGS = Object.fromEntries(
  ["program", ...SETTINGS.map(([name]) => name)].map((name) => [name, { type: "string" }]),
) as { readonly program: { readonly type: "string" } };

export const LANGUAGE_FLAGS_HELP: string = [
  `  ${"--program PATH".padEnd(22)} the program that runs the LANGUAGE, as in a config`,
  ...SETTINGS.map(([name, { spec, titles }]) => {
    const flag = `--${name} ${spec.type === "path" ? "PATH" : "URL"}`;
    return `  ${flag.padEnd(22)} for ${titles.join(" and ")}: the same as "${name}" in a config`;
  }),
].join("\n");

/** The settings that the flags give. Throws if the language does not have one of them, or cannot work with them. */
export function languageSettingsOf(
  language: LanguageEntry,
  values: Readonly<Record<string, unknown>>,
): { readonly program?: string; readonly [setting: string]: unknown } {
  const given = Object.keys(LANGUAGE_FLAGS).map((name) => [name, values[name]] as const);
  const settings = defined(Object.fromEntries(given)) as { readonly program?: string };
  for (const name of Object.keys(settings)) {
    if (name !== "program" && !Object.hasOwn(language.settings, name))
      throw new UsageError(`--${name} is not an option of ${language.title}`);
  }
  const problem = language.problem?.(settings);
  if (problem !== undefined) throw new UsageError(`--${problem.setting} ${problem.message}`);
  return settings;
}

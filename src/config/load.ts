// The doors to a config: to use it, or to hear what is wrong with it.

import { readFile } from "node:fs/promises";
import type { Config } from "./config.ts";
import { inputsFrom } from "./inputs.ts";
import { ConfigError, inOrder, type Problem } from "./problems.ts";
import { readConfig, type ConfigOptions } from "./read.ts";
import { unstartable } from "./unstartable.ts";

/**
 * A config that can be used. Throws a ConfigError with everything that is wrong; what reading the file fails with goes
 * on as it is.
 */
export async function loadConfig(path: string, options: ConfigOptions = {}): Promise<Config> {
  const text = await read(path);
  const ask = options.inputs ?? inputsFrom(options.env ?? process.env);
  const { config, problems } = await readConfig(text, path, options, ask);
  const isUsable = problems.every(({ severity }) => severity !== "error");
  if (config === undefined || !isUsable) throw new ConfigError(path, text, problems);
  return config;
}

/** Without a byte order mark, so that lines and columns are those of the problems. */
async function read(path: string): Promise<string> {
  return (await readFile(path, "utf8")).replace(/^\uFEFF/, "");
}

/** Everything that is wrong with a text, in its order. Nobody is asked for inputs; `path` is where it stands or would stand. */
export async function checkConfig(text: string, path: string, options: ConfigOptions = {}): Promise<Problem[]> {
  return [...(await readConfig(text, path, options)).problems];
}

export interface Examined {
  readonly text: string;
  readonly problems: readonly Problem[];
  /** Names of the ends that would be reached. */
  readonly servers: readonly string[];
  /** Names of the links, those of single ends too. */
  readonly links: readonly string[];
}

/** The same of a file, with what is in it, and of the programs that it names. */
export async function examineConfig(path: string, options: ConfigOptions = {}): Promise<Examined> {
  const text = await read(path);
  const { config, problems } = await readConfig(text, path, options);
  const ends = [...(config?.ends.values() ?? [])];
  const links = [...(config?.chain ?? []), ...ends.flatMap(({ use }) => use)];
  return {
    text,
    problems: inOrder([...problems, ...(await unstartable(ends))]),
    servers: ends.map(({ name }) => name),
    links: links.map((link) => link.name ?? (link.kind === "module" ? link.file : "")),
  };
}

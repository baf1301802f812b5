// A whole config, from its text: read once to find what is wrong and which inputs are used; and, where those are given,
// once more with the answers. Nothing is started, and of the user's modules nothing is loaded.

import { stat } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { LINKS } from "../chain/middleware/registry.ts";
import type { Config } from "./config.ts";
import { parseDocument, type Value } from "./document.ts";
import { readUpstreams } from "./upstreams.ts";
import { limits, listen } from "./listen-options.ts";
import { Answers, readInputs, type AskInput } from "./inputs.ts";
import { middlewareList, type MiddlewareFactories } from "./middleware.ts";
import { Problems, type Problem } from "./problems.ts";
import { anyText, oneOf, readFields, text as someText, warnOfStray, type Fields } from "./readers.ts";
import { Spot, type FileCheck, type Reading } from "./cursor.ts";
import { Variables } from "./variables.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

export interface ConfigOptions {
  /** Where variables come from; the environment of the process. */
  readonly env?: Environment;
  /** Answers for the inputs of a config; by default the environment does, by `CATENARY_INPUT_ID`. What it throws goes on. */
  readonly inputs?: AskInput;
  /** Links that a config may name; those of the house. */
  readonly links?: MiddlewareFactories;
}

/** Read by others, each in its turn: inputs before all, because texts hold them. */
const elsewhere = (): true => true;

const TOP = {
  $schema: elsewhere,
  name: someText,
  instructions: anyText,
  names: oneOf(["when-needed", "always"]),
  mcpServers: elsewhere,
  servers: elsewhere,
  inputs: elsewhere,
  chain: middlewareList,
  listen,
  limits,
} as const satisfies Fields;

export const TOP_FIELDS: Fields = TOP;

/** Folders in which editors keep such a file; what it says is meant from the folder above. */
const EDITORS = new Set([".vscode", ".cursor"]);

export interface Outcome {
  readonly problems: readonly Problem[];
  /** What could be made of it; of use only where there are no errors. */
  readonly config?: Config;
}

/** `ask` where the config is to be used; otherwise nobody is asked, and what depends on inputs is not looked at. */
export async function readConfig(
  given: string,
  path: string,
  { env = process.env, links = LINKS }: ConfigOptions,
  ask?: AskInput,
): Promise<Outcome> {
  const text = given.replace(/^\uFEFF/, "");
  const problems = new Problems(text);
  const root = await parseDocument(text, problems);
  if (root === undefined) return { problems: problems.sorted() };
  const file = resolve(path);
  const folder = folderOf(file);
  const answers = new Answers();
  const variables = new Variables({ env, folder, inputs: answers }, problems);
  const read = async (): Promise<Config | undefined> => {
    const reading: Reading = { problems, variables, folder, links, files: [] };
    const config = readRoot(new Spot(reading, root, ""), answers, { path: file, text });
    await Promise.all(reading.files.map(look));
    return config;
  };
  let config = await read();
  if (ask !== undefined && answers.used.size > 0 && problems.errors === 0) {
    await answers.ask(ask, problems);
    if (problems.errors === 0) config = await read();
  }
  const sorted = problems.sorted();
  const warnings = sorted.filter(({ severity }) => severity === "warning");
  return { problems: sorted, ...(config && { config: { ...config, warnings } }) };
}

function folderOf(file: string): string {
  const folder = dirname(file);
  return EDITORS.has(basename(folder)) ? dirname(folder) : folder;
}

function readRoot(root: Spot, answers: Answers, source: { path: string; text: string }): Config | undefined {
  if (!isObject(root.value)) {
    root.reading.problems.error(root.value.offset, "A config is an object", 'write {"mcpServers": {...}}');
    return undefined;
  }
  answers.declare(readInputs(root.named("inputs")));
  const {
    name,
    instructions,
    names,
    chain = [],
    listen: where = {},
    limits: bounds = {},
  } = readFields(root, TOP, (stray, key, known) => {
    if (key !== "use") return warnOfStray(stray, key, known);
    stray.reading.problems.warn(stray.nameOffset, "use is passed over", "links for all servers stand under chain");
  });
  return {
    ...source,
    ...(name !== undefined && { name }),
    ...(instructions !== undefined && { instructions }),
    ...(names !== undefined && { names }),
    ...readUpstreams(root),
    chain,
    listen: where,
    limits: bounds,
    warnings: [],
  };
}

function isObject(value: Value): boolean {
  return value.kind === "object";
}

/** Whether what a path leads to is there. */
async function look({ path, kind, severity, spot, isHidden }: FileCheck): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (kind === "file" ? found?.isFile() : found?.isDirectory()) return;
  const what = found === undefined ? `names a ${kind} that is not there` : `is no ${kind}`;
  const hint = isHidden
    ? "look at the variables in it"
    : /(^|\/)~\//.test(path)
      ? "write ${userHome} for ~, which only a shell understands"
      : `looked for at ${path}`;
  if (severity === "error") spot.error(` ${what}`, hint);
  else spot.warn(` ${what}`, hint);
}

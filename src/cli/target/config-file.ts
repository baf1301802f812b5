// A config, read for a command that serves what it describes. What is wrong with it is told in full, each mistake with
// its place, before the command gives up; nothing is started by then.

import { ConfigError, inputVariable, loadConfig, type Config, type Problem } from "../../config/index.ts";
import { UsageError } from "../exit-codes.ts";
import { inputsFrom } from "../terminal/inputs.ts";
import { say } from "../terminal/output.ts";
import { problemLines, tally } from "../show/problems.ts";

/** Throws a UsageError when all that is wrong has been told. `isWire` where stdin is a client's. */
export async function openConfig(path: string, isWire: boolean): Promise<Config> {
  const env = { ...process.env };
  // What answers an input was meant for one end, and every end inherits our environment.
  for (const name of Object.keys(env).filter((key) => key.startsWith(inputVariable("")))) delete process.env[name];
  const config = await telling(path, () => loadConfig(path, { env, inputs: inputsFrom(env, isWire) }));
  tell(path, config.text, config.warnings);
  return config;
}

/** Does something with a config; what turns out to be wrong with it is told. */
export async function telling<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ConfigError) || error.problems.length === 0) throw error;
    tell(path, error.text, error.problems);
    throw new UsageError(`${path} has ${tally(error.problems)}; nothing was started`, { cause: error });
  }
}

function tell(path: string, text: string, problems: readonly Problem[]): void {
  problemLines(path, text, problems, process.stderr).forEach(say);
}

// Which of the running gateways of this user a command means: the only one, the one of the config in this folder, or the
// one that --gateway names.

import { resolve } from "node:path";
import { UnreachableError, UsageError } from "../command.ts";
import { flag } from "../flags.ts";
import { findGateways, type RunningGateway } from "../serve/control.ts";
import { oneLine } from "../terminal/text.ts";
import { CONFIG } from "./target.ts";

export const GATEWAY_FLAG = {
  gateway: flag("WHICH", "The gateway, if several run: its config, its URL or its process id.", {
    expected: "a config, a URL or a process id",
  }),
};

/** For the help of commands that take one gateway. */
export const CHOICE = `By default, the only gateway that runs, or the one of ./${CONFIG}.`;

/** Throws an UnreachableError if none runs, or not the one that is meant. */
export async function runningGateways(which: string | undefined): Promise<readonly RunningGateway[]> {
  const all = await findGateways();
  if (all.length === 0) throw new UnreachableError("No gateway runs; start one with catenary up");
  if (which === undefined) return all;
  const matching = all.filter(
    ({ pid, url, config }) => which === String(pid) || which === url || resolve(which) === config,
  );
  if (matching.length > 0) return matching;
  throw new UnreachableError(`No gateway runs for ${which}; ${running(all)}`);
}

/** Throws an error that says how to choose one if several run. */
export async function theGateway(which: string | undefined): Promise<RunningGateway> {
  const all = await runningGateways(which);
  const here = all.filter(({ config }) => config === resolve(CONFIG));
  const [first, ...others] = all.length > 1 && here.length > 0 ? here : all;
  if (first !== undefined && others.length === 0) return first;
  throw new UsageError(`Several gateways run: choose one with --gateway URL; ${running(all)}`);
}

function running(all: readonly RunningGateway[]): string {
  return `there are ${all.map(({ url, source }) => `${oneLine(url)} (${oneLine(source)})`).join(", ")}`;
}

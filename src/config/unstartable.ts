// What of a config cannot be started on this machine, as far as one can see, for whoever checks a config: what is not on
// the PATH here and now may be there when it is used, so these are warnings. Nothing is started.

import { startProblem } from "../process/start-problem.ts";
import { concealing } from "./redaction.ts";
import type { UpstreamEntry } from "./upstreams.ts";
import type { Problem } from "./problems.ts";

export async function unstartable(ends: readonly UpstreamEntry[]): Promise<Problem[]> {
  const problems = await Promise.all(ends.map(problemOf));
  return [...ends.map(({ unfit }) => unfit), ...problems].filter((problem) => problem !== undefined);
}

async function problemOf({ starts, hidden }: UpstreamEntry): Promise<Problem | undefined> {
  const found = starts && (await startProblem(starts.program));
  if (starts === undefined || found === undefined) return undefined;
  const [what = "", ...advice] = concealing(hidden)(found.message).split("; ");
  const message = `${what.charAt(0).toUpperCase()}${what.slice(1)}`;
  const { position, hint = advice.join("; ") } = starts;
  return { ...position, severity: "warning", message, ...(hint !== "" && { hint }) };
}

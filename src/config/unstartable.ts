// The programs of a config that cannot be started, as far as one can see, for whoever checks a config: what is not on the
// PATH here and now may be there when it is used, so these are warnings. Nothing is started.

import type { Command } from "../client/command.ts";
import { startProblem } from "../process/start-problem.ts";
import { concealing } from "./concealed-end.ts";
import type { EndEntry } from "./ends.ts";
import type { Problem } from "./problems.ts";

export async function unstartable(ends: readonly EndEntry[]): Promise<Problem[]> {
  const problems = await Promise.all(ends.map(problemOf));
  return problems.filter((problem) => problem !== undefined);
}

async function problemOf({ kind, about, programAt, hidden }: EndEntry): Promise<Problem | undefined> {
  if (kind !== "command" || programAt === undefined) return undefined;
  const found = await startProblem(about as unknown as Command);
  if (found === undefined) return undefined;
  const [what = "", ...advice] = concealing(hidden)(found.message).split("; ");
  const message = `${what.charAt(0).toUpperCase()}${what.slice(1)}`;
  return { ...programAt, severity: "warning", message, ...(advice.length > 0 && { hint: advice.join("; ") }) };
}

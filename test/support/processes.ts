// What runs, as Linux tells it: the children of a process with what they are, those that nobody has waited for, and all
// that bear a mark in their environment.

import { readdirSync, readFileSync } from "node:fs";

export interface Seen {
  readonly pid: number;
  readonly parent: number;
  /** One letter; Z is a zombie. */
  readonly state: string;
  /** Ticks from the machine's start: with the number, this is one process and no other. */
  readonly began: number;
}

export const canSee: boolean = process.platform === "linux";

export function processes(): Seen[] {
  return numbers().flatMap((pid) => {
    const stat = read(`/proc/${pid}/stat`);
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return stat === "" ? [] : [{ pid, state: fields[0] ?? "", parent: Number(fields[1]), began: Number(fields[19]) }];
  });
}

export function commandLine(pid: number): string {
  return read(`/proc/${pid}/cmdline`).replaceAll("\0", " ");
}

/** By the value of a variable in their environment. */
export function bearing(variable: string, value: string): number[] {
  return numbers().filter((pid) => `\0${read(`/proc/${pid}/environ`)}`.includes(`\0${variable}=${value}\0`));
}

function numbers(): number[] {
  return readdirSync("/proc").map(Number).filter(Number.isInteger);
}

/** Empty when it is gone meanwhile. */
function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

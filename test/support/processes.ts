// Lists the running processes on Linux, including zombies, and finds those with a variable in their environment.

import { readdirSync, readFileSync } from "node:fs";

export interface ProcessInfo {
  readonly pid: number;
  readonly parent: number;
  /** One character; Z is a zombie. */
  readonly state: string;
  /** In ticks since boot. Together with the pid it identifies one process. */
  readonly startTime: number;
}

export const canListProcesses: boolean = process.platform === "linux";

export function processes(): ProcessInfo[] {
  return pids().flatMap((pid) => {
    const stat = read(`/proc/${pid}/stat`);
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return stat === ""
      ? []
      : [{ pid, state: fields[0] ?? "", parent: Number(fields[1]), startTime: Number(fields[19]) }];
  });
}

export function commandLine(pid: number): string {
  return read(`/proc/${pid}/cmdline`).replaceAll("\0", " ");
}

/** The processes whose environment has this variable with this value. */
export function withEnvironment(variable: string, value: string): number[] {
  return pids().filter((pid) => `\0${read(`/proc/${pid}/environ`)}`.includes(`\0${variable}=${value}\0`));
}

function pids(): number[] {
  return readdirSync("/proc").map(Number).filter(Number.isInteger);
}

/** Empty if the process has exited meanwhile. */
function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

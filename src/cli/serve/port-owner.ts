// Which program listens on a port of this machine, for the error of a port that is taken. Linux shows it in /proc, for the
// programs of the same user; elsewhere it is unknown.

import { readdir, readFile, readlink } from "node:fs/promises";

export interface PortOwner {
  readonly pid: number;
  /** The command line, or the name of the program. */
  readonly command: string;
}

const LISTENING = "0A";

/** Undefined if nothing listens there, or if it is unknown what does. */
export async function portOwner(port: number): Promise<PortOwner | undefined> {
  const tables = await Promise.all(
    ["tcp", "tcp6"].map((name) => readFile(`/proc/net/${name}`, "utf8").catch(() => "")),
  );
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const rows = tables.flatMap((table) => table.split("\n")).map((row) => row.trim().split(/\s+/));
  const listening = rows.filter(([, local, , state]) => local?.endsWith(suffix) === true && state === LISTENING);
  const sockets = new Set(listening.map((row) => `socket:[${row[9]}]`));
  if (sockets.size === 0) return undefined;
  const names = await readdir("/proc").catch(() => []);
  for (const pid of names.filter((name) => /^\d+$/.test(name))) {
    const files = await readdir(`/proc/${pid}/fd`).catch(() => []);
    for (const file of files) {
      const target = await readlink(`/proc/${pid}/fd/${file}`).catch(() => "");
      if (!sockets.has(target)) continue;
      const command = (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).split("\0").join(" ").trim();
      return { pid: Number(pid), command };
    }
  }
  return undefined;
}

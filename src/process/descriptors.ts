// Keeps the descriptors that this process inherited from its own children. Node closes in children what it has opened
// itself, and at its start marks inherited descriptors up to the first gap after number 15. A launcher may have left
// others open, such as number 200, and every child, even one in a sandbox, could use the file or folder behind it.

import { closeSync, existsSync, openSync, readdirSync, readFileSync } from "node:fs";

/** O_CLOEXEC as /proc shows it, the same on all processors. */
const CLOSED_IN_CHILDREN = 0o2000000;
/** The list for spawn() has an entry for each number up to the highest, and a long list takes long: 0.2 s at this one. */
const MAX_DESCRIPTOR = 16_384;

let inherited: readonly number[] | undefined;
let empty: number | undefined;

/**
 * The `stdio` of spawn(), with /dev/null in the place of each inherited descriptor that the child would get besides.
 * ("ignore" alone would leave it open.)
 */
export function onlyThese<Entry>(stdio: readonly Entry[]): (Entry | "ignore" | number)[] {
  inherited ??= listInherited();
  // One may have been closed since, and Node may use its number.
  const open = inherited.filter((descriptor) => descriptor >= stdio.length && reachesChildren(descriptor));
  const all: (Entry | "ignore" | number)[] = [...stdio];
  while (all.length <= Math.max(...open)) all.push("ignore");
  for (const descriptor of open) all[descriptor] = empty ??= openSync("/dev/null", "r");
  return all;
}

/** Empty on macOS and in Bun, where a child gets only what is named, and without /proc. */
function listInherited(): number[] {
  if (process.platform !== "linux" || "bun" in process.versions || !existsSync("/proc/self/fd")) return [];
  const [, limit = ""] = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
  // spawn() needs free numbers above those that it replaces.
  const highest = Math.min(Number(limit) - 64, MAX_DESCRIPTOR);
  const open = readdirSync("/proc/self/fd").map(Number).filter(reachesChildren);
  // A higher one, perhaps opened before the limit was lowered, cannot be replaced, only closed here too.
  for (const descriptor of open) if (descriptor > highest) closeSync(descriptor);
  return open.filter((descriptor) => descriptor <= highest);
}

function reachesChildren(descriptor: number): boolean {
  try {
    const [, flags = ""] = /^flags:\s*(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, "utf8")) ?? [];
    return (Number.parseInt(flags, 8) & CLOSED_IN_CHILDREN) === 0;
  } catch (error) {
    // The one that lists the folder is closed by now.
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}

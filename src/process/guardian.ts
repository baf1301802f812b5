// The guardian: a small process beside ours that outlives us by a moment and kills our children, however we die. It
// reads a pipe from us, which the kernel closes even after kill -9. Then it kills our children's process groups and, if
// there is a /proc, all processes with our children's marks in their environment (see process-tree.ts). It is a shell
// script, since a shell takes 1 MB and starts in 2 ms. It must run in dash, which can kill a group only with the form
// `kill -s KILL -- -GROUP`. Without /bin/sh there is no guardian; orphans then only see the end of their input.

import { spawn, type ChildProcess } from "node:child_process";
import type { Socket } from "node:net";
import { onlyThese } from "./descriptors.ts";

/**
 * Reads lines: `mark M` before a child is started, `add GROUP M` after that, `del GROUP M` when its group is gone. The
 * search for marks is repeated, since a process that was being forked when we died gets its mark a moment later. Groups
 * are killed only once, at the beginning: a second later their ids may have been reused.
 */
const SCRIPT = `
trap '' HUP INT TERM
groups= marks=
without() { kept=; gone=$1; shift; for one; do [ "$one" = "$gone" ] || kept="$kept $one"; done; }
while read -r verb first second; do
  case $verb in
    mark) marks="$marks $first" ;;
    add) groups="$groups $first" ;;
    del) without "$first" $groups; groups=$kept; without "$second" $marks; marks=$kept ;;
  esac
done
[ "$groups$marks" ] || exit 0
for group in $groups; do kill -s KILL -- "-$group"; done
[ -r /proc/self/environ ] || exit 0
set --
for mark in $marks; do set -- "$@" -e "$mark"; done
for look in 1 2 3 4 5; do
  found=$(grep -lsF "$@" /proc/[0-9]*/environ)
  for file in $found; do file=\${file#/proc/}; kill -s KILL "\${file%/environ}"; done
  [ "$look" -gt 1 ] && [ -z "$found" ] && exit 0
  sleep 1
done
`;

/** A child that the guardian kills when we die. */
interface GuardedChild {
  started(group: number): void;
  forget(): void;
}

/** A guardian that exits sooner than this cannot run here; starting another would loop. */
const MIN_UPTIME_MS = 1_000;

const groups = new Map<string, number>();
let guardian: ChildProcess | undefined;

/**
 * Must be called before the child is started, so that our death never leaves it unguarded.
 *
 * @public A test calls it in a process of its own.
 */
export function guard(mark: string): GuardedChild {
  groups.set(mark, 0);
  if (guardian === undefined) startGuardian();
  else send(`mark ${mark}`);
  return {
    started(group) {
      groups.set(mark, group);
      send(`add ${group} ${mark}`);
    },
    forget() {
      const group = groups.get(mark);
      if (group === undefined) return;
      groups.delete(mark);
      send(`del ${group} ${mark}`);
      if (groups.size === 0) stopGuardian();
    },
  };
}

/** The pid of the guardian, while it runs. */
export function guardianPid(): number | undefined {
  return guardian?.pid;
}

function startGuardian(): void {
  const startedAt = performance.now();
  let spawned: ChildProcess;
  try {
    spawned = spawn("/bin/sh", ["-c", SCRIPT, "catenary-guardian"], {
      detached: true,
      stdio: onlyThese(["pipe", "ignore", "ignore"]),
      // The guardian must keep no folder busy. It must inherit no mark: if an outer Catenary ends all processes with
      // its mark, including us, the guardian must survive.
      cwd: "/",
      env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin" },
    });
  } catch {
    return;
  }
  const forget = (): void => {
    if (guardian !== spawned) return;
    guardian = undefined;
    if (groups.size > 0 && performance.now() - startedAt > MIN_UPTIME_MS) startGuardian();
  };
  spawned.on("error", forget);
  spawned.on("exit", forget);
  spawned.unref();
  const pipe = spawned.stdin as Socket | null;
  if (spawned.pid === undefined || pipe === null) return;
  pipe.on("error", () => {});
  // In Bun, the pipe is not a socket, and does not keep the process alive.
  (pipe as Partial<Socket>).unref?.();
  guardian = spawned;
  for (const [mark, group] of groups) {
    send(`mark ${mark}`);
    if (group !== 0) send(`add ${group} ${mark}`);
  }
}

/** A line this short is already in the pipe when write() returns. */
function send(line: string): void {
  guardian?.stdin?.write(`${line}\n`);
}

function stopGuardian(): void {
  guardian?.stdin?.end();
  guardian = undefined;
}

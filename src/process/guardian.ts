// The guardian: one small process beside ours that outlives us by a moment. It holds the reading end of a
// pipe from us, and the kernel ends that pipe however we die, by kill -9 too; it then kills the groups
// that it was told of and, where there is a /proc, whoever bears their marks. A shell script, since a
// shell costs a megabyte and two milliseconds; it must run in dash, whose `kill` knows `-s KILL --` only.
// It lives while there are children. Without /bin/sh there is no guardian: children then see no more
// than the end of their input. Ending children while we live is the ladder's affair.

import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import type { Socket } from "node:net";

/**
 * Lines: `mark M` before a start, `add GROUP M` after it, `del GROUP M` when all are gone. A process that
 * was only just forked when we died bears its mark a moment later, hence more than one look. The groups
 * are killed once, at the first: a second later their numbers may have been given to others.
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

/** One child in the guardian's care. */
export interface Ward {
  started(group: number): void;
  gone(): void;
}

/** A guardian that ends sooner than this could not run at all; hiring another would be a loop. */
const LEAST_SERVICE_MS = 1_000;

const groups = new Map<string, number>();
let guardian: ChildProcess | undefined;

/** To be called before the child is started: then there is no moment in which our death would miss it. */
export function guard(mark: string): Ward {
  groups.set(mark, 0);
  if (guardian === undefined) hire();
  else tell(`mark ${mark}`);
  return {
    started(group) {
      groups.set(mark, group);
      tell(`add ${group} ${mark}`);
    },
    gone() {
      const group = groups.get(mark);
      if (group === undefined) return;
      groups.delete(mark);
      tell(`del ${group} ${mark}`);
      if (groups.size === 0) dismiss();
    },
  };
}

/** The guardian's own process, while there is one. */
export function guardianPid(): number | undefined {
  return guardian?.pid;
}

function hire(): void {
  const begun = performance.now();
  let hired: ChildProcess;
  try {
    hired = spawn("/bin/sh", ["-c", SCRIPT, "catenary-guardian"], {
      detached: true,
      stdio: ["pipe", "ignore", "ignore"],
      // It holds no folder and no mark: the guardian of a nested process of ours must survive our ladder.
      cwd: "/",
      env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin" },
    });
  } catch {
    return;
  }
  const forget = (): void => {
    if (guardian !== hired) return;
    guardian = undefined;
    if (groups.size > 0 && performance.now() - begun > LEAST_SERVICE_MS) hire();
  };
  hired.on("error", forget);
  hired.on("exit", forget);
  hired.unref();
  const pipe = hired.stdin as Socket | null;
  if (hired.pid === undefined || pipe === null) return;
  pipe.on("error", () => {});
  pipe.unref();
  guardian = hired;
  for (const [mark, group] of groups) {
    tell(`mark ${mark}`);
    if (group !== 0) tell(`add ${group} ${mark}`);
  }
}

/** A line this short is in the pipe when write() returns. */
function tell(line: string): void {
  guardian?.stdin?.write(`${line}\n`);
}

function dismiss(): void {
  guardian?.stdin?.end();
  guardian = undefined;
}

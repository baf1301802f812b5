// An end that is a language: live sessions that evaluate what callers send, each in a process of its own. Here is what a
// config may say of them; the live room is loaded when the config is used, by the configs that have such an end.

import { resolve } from "node:path";
import { LANGUAGE_NAMES, liveUpstream, nearLanguage } from "./languages.ts";
import {
  contents,
  flag,
  listOf,
  milliseconds,
  numberThat,
  objectOf,
  oneOf,
  pathTo,
  text,
  warnOfSeconds,
  wrongKind,
  type Fields,
  type Read,
  type Reader,
} from "./readers.ts";
import type { Spot } from "./cursor.ts";
import { environment, program } from "./kinds.ts";
import { kindOf, type Found, type Kind } from "./upstream-kind.ts";

const language = oneOf(LANGUAGE_NAMES, (given) => {
  const near = nearLanguage(given);
  return near && `did you mean ${near}?`;
});

/** What each may be set to: as the live room has it, which is not loaded for this. */
export const LIVE_BOUNDS = {
  timeout: [0, 86_400_000],
  memory: [64, 16_384],
  output: [1, 1_000_000],
  printLength: [1, 100_000],
  printDepth: [1, 1_000],
} as const;

const bounded = (name: keyof typeof LIVE_BOUNDS, what: string): Reader<number> => {
  const [least, most] = LIVE_BOUNDS[name];
  return numberThat(
    (given) => given >= least && given <= most && (name === "timeout" || Number.isInteger(given)),
    `${what} from ${least} to ${most}`,
  );
};

const evaluationMs: Reader<number> = (spot) => {
  const given = bounded("timeout", "a number of milliseconds")(spot);
  warnOfSeconds(spot, given);
  return given;
};

const paths = listOf((spot) => {
  const path = text(spot);
  return path === undefined ? undefined : resolve(spot.reading.folder, path);
}, 'a list of paths, such as ["./data"]');

const PERMISSION = { read: paths, write: paths, childProcess: flag, net: flag } as const satisfies Fields;
export const PERMISSION_FIELDS: Fields = PERMISSION;

const permissions = objectOf(PERMISSION, "an object");
const permission: Reader<boolean | Read<typeof PERMISSION>> = (spot) => {
  if (spot.value.kind === "object") return permissions(spot);
  return spot.value.kind === "boolean"
    ? flag(spot)
    : wrongKind(spot, "true, false, or {read, write, childProcess, net}");
};

const FIELDS = {
  live: language,
  timeout: evaluationMs,
  memory: bounded("memory", "whole megabytes"),
  output: bounded("output", "a whole number of characters"),
  printLength: bounded("printLength", "a whole number"),
  printDepth: bounded("printDepth", "a whole number"),
  sessions: numberThat((given) => Number.isSafeInteger(given) && given > 0, "a whole number above 0"),
  idle: milliseconds,
  cwd: pathTo("folder", "warning"),
  env: environment,
  program,
  permission,
} as const satisfies Fields;

/** What a link to another program may be told: sessions are started and ended otherwise. */
const OF_WIRES = ["share", "revision", "startTimeout", "restart"];

/** The first Node that has what `permission` wants; the session itself refuses an older one. */
export const FIRST_PERMITTING = 24;

const ADVICE = {
  lisp: 'install it, by apt-get install sbcl or brew install sbcl, or give its path as "program"',
  js: 'give the path of a node as "program", or leave it out',
} as const;

export const live: Kind = kindOf(FIELDS, {
  key: "live",
  purpose: "a language whose sessions evaluate code",
  // A client that reads the same file would start the command, and speak with it.
  beside: { command: "the program that a live session runs is named by program" },
  found({ live: name, ...read }, spot) {
    if (name === undefined) return undefined;
    const isLisp = name === "lisp";
    tellOfWires(spot);
    tellOfLimits(spot);
    const fence = spot.named("permission");
    if (isLisp && fence !== undefined) {
      const { problems } = spot.reading;
      problems.warn(fence.nameOffset, `${fence.way} is passed over`, "only JavaScript sessions have it");
    }
    const isFenced = !isLisp && read.permission !== undefined && read.permission !== false;
    const settings = { ...read, cwd: read.cwd ?? spot.reading.folder };
    const file = read.program ?? (isLisp ? "sbcl" : undefined);
    const at = spot.named("program") ?? spot.named("live") ?? spot;
    const isOpen = ["program", "cwd"].some((key) => {
      const named = spot.named(key);
      return named !== undefined && contents(named).isOpen;
    });
    return {
      kind: "live",
      about: { live: name, ...settings },
      ...(isFenced && read.program === undefined && withoutFence(spot)),
      ...(file !== undefined &&
        !isOpen && {
          starts: {
            program: { command: file, cwd: settings.cwd },
            position: at.position,
            hint: ADVICE[isLisp ? "lisp" : "js"],
          },
        }),
      reach: async () => ({ target: await liveUpstream(name, settings) }),
    };
  },
});

function tellOfWires(spot: Spot): void {
  for (const key of OF_WIRES) {
    const named = spot.named(key);
    const hint = "it is for servers that are reached by a wire, and means nothing to live sessions";
    if (named !== undefined) spot.reading.problems.warn(named.nameOffset, `${named.way} is passed over`, hint);
  }
}

/** In code they stand together, under a name of their own. */
function tellOfLimits(spot: Spot): void {
  const named = spot.named("limits");
  const hint = `here each stands by itself: ${Object.keys(LIVE_BOUNDS).join(", ")}`;
  if (named !== undefined) spot.reading.problems.warn(named.nameOffset, `${named.way} is passed over`, hint);
}

/** What no evaluation will get past, as far as one can see here and now. */
function withoutFence(spot: Spot): Pick<Found, "unfit"> {
  const fence = spot.named("permission");
  const [ours = ""] = process.versions.node.split(".");
  if (fence === undefined || Number(ours) >= FIRST_PERMITTING) return {};
  const needs = `${fence.way} needs Node ${FIRST_PERMITTING} or later, and this is Node ${ours}`;
  const hint = 'name a later Node by "program", or leave it out: nothing could be evaluated';
  const position = spot.reading.problems.position(fence.nameOffset);
  return { unfit: { ...position, severity: "warning", message: needs, hint } };
}

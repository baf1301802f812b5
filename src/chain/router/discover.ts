// What the merged server says of itself: the union of what its ends offer and merge relays, and nothing else. An end
// that fails to answer is left out, and the result says so. Of one that only takes its time nobody knows yet what it
// can do, so room is kept for its lists: a session asks once, and must hear of them when they come.

import type { Context } from "../../core/handler.ts";
import type { Result } from "../../core/handler.ts";
import { isObject } from "../../core/objects.ts";
import { type Implementation, META } from "../../protocol/model/index.ts";
import type { Json } from "../../protocol/revision.ts";
import { allFailed, isTimeout, nested, UNAVAILABLE, type Unavailable, unavailable } from "./failures.ts";
import { FAMILIES, type Family } from "./kinds.ts";
import type { Member, RoutedUpstream } from "./member.ts";

/** What the merged server says that no end says. */
export interface Introduction {
  readonly info: Implementation;
  readonly instructions?: string | undefined;
}

interface Said {
  readonly end: RoutedUpstream;
  readonly result?: Result;
  readonly failure?: Unavailable;
  readonly isLate?: boolean;
}

export async function discover(members: readonly Member[], context: Context, ours: Introduction): Promise<Result> {
  const said = await Promise.all(members.map((member) => asked(member, context)));
  context.signal.throwIfAborted();
  const answers = said.map(({ result }) => result).filter((result) => result !== undefined);
  const failures = said.flatMap(({ end, result, failure }) => failure ?? nested(end.name, result));
  const isLate = said.some((one) => one.isLate);
  if (members.length > 0 && answers.length === 0 && !isLate) throw allFailed("server/discover", failures);
  const offered = answers.map(({ capabilities }) => (isObject(capabilities) ? capabilities : {}));
  const instructions = instructionsOf(said, ours);
  const ttls = answers.map(({ ttlMs }) => (typeof ttlMs === "number" && ttlMs > 0 ? ttlMs : 0));
  const isWhole = failures.length === 0 && answers.length > 0;
  return {
    capabilities: union(offered, failures.length > 0, isLate),
    ...(instructions === "" ? undefined : { instructions }),
    ttlMs: isWhole ? Math.min(...ttls) : 0,
    cacheScope: isWhole && answers.every(({ cacheScope }) => cacheScope === "public") ? "public" : "private",
    resultType: "complete",
    _meta: {
      [META.serverInfo]: ours.info,
      ...(failures.length === 0 ? undefined : { [UNAVAILABLE]: failures }),
    },
  };
}

async function asked(member: Member, context: Context): Promise<Said> {
  const { end } = member;
  try {
    return { end, result: await member.discover(context) };
  } catch (error) {
    return { end, failure: unavailable(end.name, error), isLate: isTimeout(error) };
  }
}

function union(offered: readonly Json[], isPart: boolean, isLate: boolean): Json {
  const has = (name: string): boolean => offered.some((one) => isObject(one[name]));
  const families = FAMILIES.filter((family) => isLate || has(family));
  const extensions = offered.map((one) => one["extensions"]).filter(isObject);
  return {
    ...(has("logging") ? { logging: {} } : undefined),
    ...(has("completions") ? { completions: {} } : undefined),
    // That an end which is away now has come back is such a change.
    ...Object.fromEntries(families.map((family) => [family, lists(family, offered, isPart)])),
    ...(extensions.length === 0 ? undefined : { extensions: first(extensions) }),
  };
}

function lists(family: Family, offered: readonly Json[], isPart: boolean): Json {
  const all = offered.map((one) => one[family]).filter(isObject);
  const canSubscribe = all.some(({ subscribe }) => subscribe === true);
  const canChange = isPart || all.some(({ listChanged }) => listChanged === true);
  return { ...(canSubscribe ? { subscribe: true } : undefined), ...(canChange ? { listChanged: true } : undefined) };
}

/** Where several say something of one name, the first of them is heard. */
function first(all: readonly Json[]): Json {
  return all.reduceRight<Json>((later, one) => ({ ...later, ...one }), {});
}

function instructionsOf(said: readonly Said[], { instructions }: Introduction): string {
  const parts = said.flatMap(({ end, result }) => {
    const text = result?.["instructions"];
    return typeof text === "string" && text !== "" ? [`# ${end.name}\n\n${text}`] : [];
  });
  return [...(instructions === undefined || instructions === "" ? [] : [instructions]), ...parts].join("\n\n");
}

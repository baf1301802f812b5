// What does an end speak? It is asked with `server/discover`: an answer that names a revision of ours, or an
// error that only an exchange-style end gives, settles it. Anything else, and silence, speaks for a session; but
// an end may only be slow, so the question stays open and a late answer still counts (see open).

import type { Context } from "../core/context.ts";
import { ConnectionError } from "../core/errors.ts";
import type { Result } from "../core/handler.ts";
import { codeOf, McpError } from "../protocol/errors.ts";
import type { Json, Revision } from "../protocol/revision.ts";
import { NEWEST, REVISIONS } from "../protocol/revisions/index.ts";
import { StatelessBack } from "./stateless/back.ts";
import type { Wire } from "./calls/wire.ts";

export interface ProbeOptions {
  readonly info: Json;
  readonly home: Context;
}

/** It speaks exchanges. */
export interface Found {
  readonly back: StatelessBack;
  readonly discovered: Result;
}

/** It does not, as far as we know: `final` where there is nothing more to try with it. */
export interface NotFound {
  readonly back: undefined;
  readonly error: Error;
  readonly final: boolean;
  /** The answer that may still come from an end that was silent. */
  readonly late?: Promise<Probe>;
}

export type Probe = Found | NotFound;

/** Without a patience of ours, that of the request itself counts. */
export async function probe(
  wire: Wire,
  options: ProbeOptions,
  revision: Revision,
  patienceMs?: number,
): Promise<Probe> {
  const asking = ask(wire, options, revision);
  if (patienceMs === undefined) return asking;
  let timer: NodeJS.Timeout | undefined;
  const silence = new Promise<NotFound>((resolve) => {
    timer = setTimeout(() => {
      const error = new ConnectionError("timeout", `The end did not answer server/discover in ${patienceMs} ms`);
      resolve({ back: undefined, error, final: false, late: asking });
    }, patienceMs);
  });
  const first = await Promise.race([asking, silence]);
  clearTimeout(timer);
  return first;
}

/** Whether the question is still unanswered. */
export function isProbing(wire: Wire): boolean {
  return [...wire.calls.values()].some(({ method }) => method === "server/discover");
}

async function ask(wire: Wire, options: ProbeOptions, revision: Revision, again = true): Promise<Probe> {
  const back = new StatelessBack(wire, { revision, info: options.info, home: options.home });
  let names: readonly string[] | undefined;
  let problem: Error | undefined;
  try {
    const discovered = await back.handler({ method: "server/discover", params: {} }, options.home);
    const offered: unknown = discovered["supportedVersions"];
    names = namesIn(offered);
    if (names?.includes(revision.name) === true) {
      back.isFound = true;
      return { back, discovered };
    }
  } catch (error) {
    problem = error as Error;
    names = supportedBy(error, revision);
    // An end that is gone cannot be spoken to in any style; one that answers, however strangely, may know another.
    if (error instanceof ConnectionError)
      return { back: undefined, error, final: error.kind !== "http" && error.kind !== "protocol" };
  }
  // Only an end that knows exchanges says so.
  if (problem instanceof McpError && MODERN.has(problem.code)) return { back: undefined, error: problem, final: true };
  const common = REVISIONS.findLast(({ style, name }) => style === "stateless" && names?.includes(name) === true);
  // Also the one that was refused: some ends refuse the first request whatever it says.
  if (common !== undefined && again) return ask(wire, options, common, false);
  // Some session-style ends answer anything with something. One that names revisions means them.
  const final = names !== undefined && !names.some((name) => isSession(name));
  if (!final)
    return { back: undefined, error: problem ?? new ConnectionError("protocol", "The end speaks no exchanges"), final };
  const message = `The end speaks only ${names?.join(", ") ?? ""}; we speak ${REVISIONS.map(({ name }) => name).join(", ")}`;
  return { back: undefined, error: new ConnectionError("protocol", message, { cause: problem }), final };
}

const MODERN: ReadonlySet<number> = new Set(
  (["header_mismatch", "missing_capability"] as const).map((kind) => codeOf(kind, NEWEST)),
);

function isSession(name: string): boolean {
  return REVISIONS.some((revision) => revision.style === "session" && revision.name === name);
}

/** The revisions that an "unsupported revision" error names; undefined for any other error. */
function supportedBy(error: unknown, revision: Revision): readonly string[] | undefined {
  if (!(error instanceof McpError) || error.code !== codeOf("unsupported_revision", revision)) return undefined;
  return namesIn((error.data as Json | undefined)?.["supported"]);
}

function namesIn(list: unknown): readonly string[] | undefined {
  return Array.isArray(list) ? list.filter((name) => typeof name === "string") : undefined;
}

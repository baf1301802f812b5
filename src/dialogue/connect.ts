// Opens a dialogue with an end, in the revision that was asked for or in the one that it turns out to speak (see
// negotiate). An end that says it speaks no exchanges, or says nothing for a while, is shaken hands with; one
// that the probe has ended is started once more, without a probe. Where a session is preferred the order is the other
// one: hands first, and the probe for an end that takes none.

import type { Context, Handler, Result } from "../core/handler.ts";
import { ConnectionError } from "../core/errors.ts";
import { McpError, codeOf } from "../protocol/errors.ts";
import type { Json, Revision } from "../protocol/revision.ts";
import { knownRevision, NEWEST, REVISIONS } from "../protocol/revisions/index.ts";
import type { Transport } from "../transport/transport.ts";
import type { Timeouts } from "./calls/pending.ts";
import { SessionBack } from "./session/back.ts";
import { Wire, type Role } from "./calls/peer.ts";
import { StatelessBack } from "./stateless/back.ts";

export interface OpenOptions {
  readonly info: Json;
  /** Client capabilities, in the newest shape. */
  readonly capabilities: Json;
  /** Who is asked, and told, what belongs to no call. */
  readonly home: Context;
  /** Speaks this revision and no other. */
  readonly revision?: string;
  /** The style for an end that speaks both; exchanges, unless it is said. Without meaning beside a revision. */
  readonly style?: Revision["style"];
  readonly timeouts?: Partial<Timeouts>;
  /** Silence after which the probe counts as unanswered. */
  readonly probeMs?: number;
  /** For the end's first answer, once it is clear in which style. */
  readonly startMs?: number;
}

/** A connected end. */
export interface Opened {
  readonly handler: Handler;
  readonly revision: Revision;
  /** What the end said of itself, as an answer to `server/discover`. */
  readonly discovered: Result;
  /** Whether it is always clear to which call a question of the end belongs. */
  readonly saysWhose: boolean;
  /** Rejects when the connection ends by itself; never resolves before `signal` is aborted. */
  ended(signal: AbortSignal): Promise<void>;
  close(budgetMs?: number): Promise<void>;
}

const PROBE_MS = 1_000;
export const START_MS = 10_000;

/** `connect` makes the transport; where the first one failed us, it is called once more with the reason. */
export async function open(connect: (failure?: ConnectionError) => Transport, options: OpenOptions): Promise<Opened> {
  const wanted = options.revision === undefined ? undefined : knownRevision(options.revision);
  const { probeMs = PROBE_MS, startMs = START_MS } = options;
  if (wanted === undefined && options.style === "session") return openSessionFirst(connect, options);
  let failure: ConnectionError;
  const wire = await start(connect(), options);
  try {
    if (wanted?.style === "session") return await openSession(wire, options, wanted);
    const found = await probe(wire, options, wanted ?? NEWEST, wanted === undefined ? probeMs : startMs);
    if (found.back !== undefined) return opened(wire, found.back, () => found.discovered);
    if (wanted !== undefined) throw lacks(wanted, found.error);
    if (found.final) throw found.error;
    return await openSession(wire, options, undefined, found.late);
  } catch (error) {
    await wire.close().catch(() => undefined);
    if (wanted !== undefined || !(error instanceof ConnectionError) || error.kind !== "closed") throw error;
    failure = error;
  }
  // It may be the probe that it did not survive: once more, without one.
  const again = await start(connect(failure), options);
  try {
    return await openSession(again, options, undefined);
  } catch (error) {
    await again.close().catch(() => undefined);
    throw error;
  }
}

/** The probe comes on the same wire; where the handshake has ended that, on another. */
async function openSessionFirst(
  connect: (failure?: ConnectionError) => Transport,
  options: OpenOptions,
): Promise<Opened> {
  let wire = await start(connect(), options);
  try {
    try {
      return await openSession(wire, options, undefined);
    } catch (error) {
      if (!(error instanceof ConnectionError) || !MAY_SPEAK_OTHERWISE.has(error.kind)) throw error;
      if (error.kind === "closed") {
        await wire.close().catch(() => undefined);
        wire = await start(connect(error), options);
      }
      // Whoever was silent until now is not waited for as long again.
      const patienceMs = error.kind === "timeout" ? (options.probeMs ?? PROBE_MS) : (options.startMs ?? START_MS);
      const found = await probe(wire, options, NEWEST, patienceMs);
      if (found.back !== undefined) return opened(wire, found.back, () => found.discovered);
      const message = `${error.message}; and it speaks no exchanges either: ${found.error.message}`;
      throw found.final ? found.error : new ConnectionError(error.kind, message, { cause: error });
    }
  } catch (error) {
    await wire.close().catch(() => undefined);
    throw error;
  }
}

/** How a handshake fails with an end that has none. */
const MAY_SPEAK_OTHERWISE: ReadonlySet<string> = new Set(["protocol", "timeout", "closed"]);

export async function start(transport: Transport, options: OpenOptions): Promise<Wire> {
  const wire = new Wire(transport, options.timeouts);
  await wire.start();
  return wire;
}

/** An end that was given no choice and answered with an error; what it said would not tell what we wanted of it. */
export function lacks(revision: Revision, error: Error): Error {
  if (!(error instanceof McpError)) return error;
  const message = `The end does not speak ${revision.name}: ${error.message} (${error.code})`;
  return new ConnectionError("protocol", message, { cause: error });
}

/** Shakes hands over a wire that has been started. */
export async function openSession(
  wire: Wire,
  options: OpenOptions,
  wanted: Revision | undefined,
  late?: Promise<Probe>,
): Promise<Opened> {
  const overtaken = new AbortController();
  const session = shakeHands(wire, options, wanted, overtaken.signal);
  // Looked at below, but perhaps not before it fails.
  session.catch(() => undefined);
  try {
    const first = await Promise.race([session, ...(late === undefined ? [] : [onceFound(late)])]);
    const found = "handler" in first ? await overtaking(wire, late) : first;
    if (found !== undefined) {
      overtaken.abort(new Error("The end speaks exchanges"));
      return opened(wire, found.back, () => found.discovered);
    }
    const back = await session;
    return opened(wire, back, () => back.discovered);
  } catch (error) {
    if (!(error instanceof McpError)) throw error;
    // A slow end that speaks exchanges only may refuse the handshake before it has answered the probe.
    const found = late && (await Promise.race([onceFound(late), after(options.probeMs ?? PROBE_MS)]));
    if (found !== undefined) return opened(wire, found.back, () => found.discovered);
    throw new ConnectionError("protocol", `The end refused initialize: ${error.message} (${error.code})`, {
      cause: error,
    });
  }
}

async function shakeHands(
  wire: Wire,
  options: OpenOptions,
  wanted: Revision | undefined,
  overtaken: AbortSignal,
): Promise<SessionBack> {
  const sessions = REVISIONS.filter(({ style }) => style === "session");
  const offers = wanted ?? sessions.at(-1);
  if (offers === undefined) throw new TypeError("No session-style revision is known");
  const accepts = wanted === undefined ? sessions : [wanted];
  const { info, capabilities, home, startMs = START_MS } = options;
  const starting: Context = { ...home, signal: AbortSignal.any([home.signal, overtaken]) };
  try {
    return await SessionBack.initialize(wire, { info, capabilities, offers, accepts, home }, starting, startMs);
  } catch (error) {
    if (!(error instanceof ConnectionError) || error.kind !== "timeout") throw error;
    const advice = "an end that starts slowly needs a longer `startTimeout`";
    throw new ConnectionError("timeout", `The end did not answer initialize in ${startMs} ms; ${advice}`, {
      cause: error,
    });
  }
}

/** Both answers may have come in one breath, that to the probe first: then it counts. */
async function overtaking(wire: Wire, late: Promise<Probe> | undefined): Promise<Found | undefined> {
  if (late === undefined || isProbing(wire)) return undefined;
  const found = await late;
  return found.back === undefined ? undefined : found;
}

/** Settles only if the probe finds something: otherwise it is for the handshake to decide. */
function onceFound(late: Promise<Probe>): Promise<Found> {
  return new Promise((resolve) => {
    late.then(
      (found) => {
        if (found.back !== undefined) resolve(found);
      },
      () => undefined,
    );
  });
}

async function after(ms: number): Promise<undefined> {
  return new Promise((resolve) => {
    setTimeout(() => resolve(undefined), ms);
  });
}

/** The end as it is known now: a session that is begun anew may be on other terms. */
export function opened(
  wire: Wire,
  back: Role & { readonly handler: Handler; readonly revision: Revision },
  discovered: () => Result,
): Opened {
  const { handler } = back;
  wire.role = back;
  return {
    handler,
    get revision() {
      return back.revision;
    },
    get discovered() {
      return discovered();
    },
    // A pipe carries what belongs to a call and what does not side by side; only an exchange tells by itself.
    saysWhose: back.revision.style === "stateless",
    ended: (signal) => wire.untilEnd(signal),
    close: (budgetMs) => wire.close(budgetMs),
  };
}

// What does an end speak? It is asked with `server/discover`: an answer that names a revision of ours, or an
// error that only an exchange-style end gives, settles it. Anything else, and silence, speaks for a session; but
// an end may only be slow, so the question stays open and a late answer still counts (see open).


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

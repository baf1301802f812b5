// Opens a dialogue with an end, in the revision that was asked for or in the one that it turns out to speak (see
// negotiate). An end that says it speaks no exchanges, or says nothing for a while, is shaken hands with; one
// that the probe has ended is started once more, without a probe. Where a session is preferred the order is the other
// one: hands first, and the probe for an end that takes none.

import type { Context } from "../core/context.ts";
import { ConnectionError } from "../core/errors.ts";
import type { Handler, Result } from "../core/handler.ts";
import { McpError } from "../protocol/errors.ts";
import type { Json, Revision } from "../protocol/revision.ts";
import { knownRevision, NEWEST, REVISIONS } from "../protocol/revisions/index.ts";
import type { Transport } from "../transport/transport.ts";
import { isProbing, probe, type Found, type Probe } from "./negotiate.ts";
import type { Timeouts } from "./calls/pending.ts";
import { SessionBack } from "./session/back.ts";
import { Wire, type Role } from "./calls/wire.ts";

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

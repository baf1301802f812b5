// Opens a dialogue with an end and finds out what it speaks. Without a revision given, the end is probed
// with `server/discover`: an answer, or an error that only an exchange-style end gives, settles it; any
// other error, silence or an exit means session style. An end that the probe upset is started once more.

import type { Context } from "../core/context.ts";
import { LinkError } from "../core/errors.ts";
import type { Handler, Result } from "../core/handler.ts";
import { codeOf, McpError } from "../protocol/errors.ts";
import type { Json, Revision } from "../protocol/revision.ts";
import { NEWEST, REVISIONS, revisionNamed } from "../protocol/revisions/index.ts";
import type { Transport } from "../transport/transport.ts";
import { ExchangeBack } from "./exchange-back.ts";
import type { Timeouts } from "./pending.ts";
import { SessionBack } from "./session-back.ts";
import { Wire, type Role } from "./wire.ts";

export interface OpenOptions {
  readonly info: Json;
  /** Client capabilities, in the newest shape. */
  readonly capabilities: Json;
  /** Who is asked, and told, what belongs to no call. */
  readonly home: Context;
  /** Speaks this revision and no other. */
  readonly revision?: string;
  readonly timeouts?: Partial<Timeouts>;
  /** Silence after which the probe counts as unanswered. */
  readonly probeMs?: number;
  /** For the answer to `initialize`. */
  readonly startMs?: number;
}

/** A connected end. */
export interface Opened {
  readonly handler: Handler;
  readonly revision: Revision;
  /** What the end said of itself, as an answer to `server/discover`. */
  readonly discovered: Result;
  /** Rejects when the connection ends by itself; never resolves before `signal` is aborted. */
  ended(signal: AbortSignal): Promise<void>;
  close(budgetMs?: number): Promise<void>;
}

const PROBE_MS = 1_000;
const START_MS = 10_000;

/** `connect` makes the transport; where the first one failed us, it is called once more with the reason. */
export async function open(connect: (failure?: LinkError) => Transport, options: OpenOptions): Promise<Opened> {
  const wanted = options.revision === undefined ? undefined : revisionNamed(options.revision);
  if (options.revision !== undefined && wanted === undefined) {
    throw new TypeError(
      `Unknown revision ${options.revision}; known are ${REVISIONS.map(({ name }) => name).join(", ")}`,
    );
  }
  let failure: LinkError;
  const wire = await start(connect(), options);
  try {
    if (wanted?.style === "session") return await openSession(wire, options, wanted);
    const probe = await discover(
      wire,
      options,
      wanted ?? NEWEST,
      wanted === undefined ? (options.probeMs ?? PROBE_MS) : (options.startMs ?? START_MS),
    );
    if (probe.found !== undefined)
      return opened(wire, new ExchangeBack(wire, backOptions(options, probe.found)), probe.discovered);
    if (wanted !== undefined) throw lacks(wanted, probe.error);
    return await openSession(wire, options, undefined, probe.late);
  } catch (error) {
    await wire.close().catch(() => undefined);
    if (wanted !== undefined || !(error instanceof LinkError) || (error.kind !== "closed" && error.kind !== "timeout"))
      throw error;
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

async function start(transport: Transport, options: OpenOptions): Promise<Wire> {
  const wire = new Wire(transport, options.timeouts);
  await wire.start();
  return wire;
}

type Probe =
  | { readonly found: Revision; readonly discovered: Result }
  | { readonly found: undefined; readonly error: Error; readonly late: Promise<Probe> | undefined };

/** Asks what the end speaks. A silent end may answer late: `late` is that answer, whenever it comes. */
async function discover(wire: Wire, options: OpenOptions, revision: Revision, patienceMs: number): Promise<Probe> {
  const asking = ask(wire, options, revision);
  let timer: NodeJS.Timeout | undefined;
  const silence = new Promise<Probe>((resolve) => {
    timer = setTimeout(() => {
      const error = new LinkError("timeout", `The end did not answer server/discover in ${patienceMs} ms`);
      resolve({ found: undefined, error, late: asking });
    }, patienceMs);
  });
  const probe = await Promise.race([asking, silence]);
  clearTimeout(timer);
  // An end that is gone cannot be spoken to in any style.
  if (probe.found === undefined && probe.error instanceof LinkError && probe.error.kind !== "timeout")
    throw probe.error;
  return probe;
}

async function ask(wire: Wire, options: OpenOptions, revision: Revision, again = true): Promise<Probe> {
  const back = new ExchangeBack(wire, backOptions(options, revision));
  try {
    const discovered = await back.handler({ method: "server/discover", params: {} }, options.home);
    if (!Array.isArray(discovered["supportedVersions"])) {
      return {
        found: undefined,
        error: new LinkError("protocol", "The end does not speak an exchange-style revision"),
        late: undefined,
      };
    }
    return { found: revision, discovered };
  } catch (error) {
    const supported = supportedBy(error, revision);
    const common = REVISIONS.findLast(({ style, name }) => style === "exchange" && supported?.includes(name) === true);
    if (common !== undefined && again) return ask(wire, options, common, false);
    // An end of both styles may name its session revisions too; initialize is the way to those.
    if (supported !== undefined && !supported.some((name) => revisionNamed(name)?.style === "session")) {
      const message = `The end speaks only ${supported.join(", ")}; we speak ${REVISIONS.map(({ name }) => name).join(", ")}`;
      return { found: undefined, error: new LinkError("protocol", message, { cause: error }), late: undefined };
    }
    return { found: undefined, error: error as Error, late: undefined };
  }
}

/** An end that was given no choice and answered with an error; what it said would not tell what we wanted of it. */
function lacks(revision: Revision, error: Error): Error {
  if (!(error instanceof McpError)) return error;
  const message = `The end does not speak ${revision.name}: ${error.message} (${error.code})`;
  return new LinkError("protocol", message, { cause: error });
}

/** The revisions that an "unsupported revision" error names; undefined for any other error. */
function supportedBy(error: unknown, revision: Revision): readonly string[] | undefined {
  if (!(error instanceof McpError) || error.code !== codeOf("unsupported_revision", revision)) return undefined;
  const supported = (error.data as Json | undefined)?.["supported"];
  return Array.isArray(supported) ? supported.map(String) : undefined;
}

async function openSession(
  wire: Wire,
  options: OpenOptions,
  wanted: Revision | undefined,
  late?: Promise<Probe>,
): Promise<Opened> {
  const sessions = REVISIONS.filter(({ style }) => style === "session");
  const offers = wanted ?? sessions.at(-1);
  if (offers === undefined) throw new TypeError("No session-style revision is known");
  const accepts = wanted === undefined ? sessions : [wanted];
  const { info, capabilities, home } = options;
  try {
    const back = await SessionBack.initialize(
      wire,
      { info, capabilities, offers, accepts, home },
      options.startMs ?? START_MS,
    );
    return opened(wire, back, back.discovered);
  } catch (error) {
    // A slow exchange-style end: it refuses initialize, and has answered the probe by now.
    const probe = error instanceof McpError ? await late : undefined;
    if (probe?.found !== undefined)
      return opened(wire, new ExchangeBack(wire, backOptions(options, probe.found)), probe.discovered);
    if (!(error instanceof McpError)) throw error;
    throw new LinkError("protocol", `The end refused initialize: ${error.message} (${error.code})`, { cause: error });
  }
}

function backOptions(
  { info, home }: OpenOptions,
  revision: Revision,
): { revision: Revision; info: Json; home: Context } {
  return { revision, info, home };
}

function opened(
  wire: Wire,
  back: Role & { readonly handler: Handler; readonly revision: Revision },
  discovered: Result,
): Opened {
  const { handler, revision } = back;
  wire.role = back;
  return {
    handler,
    revision,
    discovered,
    ended: (signal) => wire.untilEnd(signal),
    close: (budgetMs) => wire.close(budgetMs),
  };
}

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
  /** For the end's first answer, once it is clear in which style. */
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
    if (wanted !== undefined || !(error instanceof LinkError) || error.kind !== "closed") throw error;
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
  /** `final`: there is nothing more to try with this end. */
  | { readonly found: undefined; readonly error: Error; readonly final: boolean; readonly late?: Promise<Probe> };

/** Asks what the end speaks. A silent end may answer late: `late` is that answer, whenever it comes. */
async function discover(wire: Wire, options: OpenOptions, revision: Revision, patienceMs: number): Promise<Probe> {
  const asking = ask(wire, options, revision);
  let timer: NodeJS.Timeout | undefined;
  const silence = new Promise<Probe>((resolve) => {
    timer = setTimeout(() => {
      const error = new LinkError("timeout", `The end did not answer server/discover in ${patienceMs} ms`);
      resolve({ found: undefined, error, final: false, late: asking });
    }, patienceMs);
  });
  const probe = await Promise.race([asking, silence]);
  clearTimeout(timer);
  if (probe.found === undefined && probe.final) throw probe.error;
  return probe;
}

async function ask(wire: Wire, options: OpenOptions, revision: Revision, again = true): Promise<Probe> {
  const back = new ExchangeBack(wire, backOptions(options, revision));
  try {
    const discovered = await back.handler({ method: "server/discover", params: {} }, options.home);
    const offered = discovered["supportedVersions"];
    const better = Array.isArray(offered) && !offered.includes(revision.name) ? exchangeAmong(offered) : revision;
    if (better !== undefined && better !== revision && again) return await ask(wire, options, better, false);
    if (Array.isArray(offered) && better !== undefined) return { found: revision, discovered };
    // Some session-style ends answer anything with something; one that names revisions means them.
    const error = new LinkError("protocol", "The end speaks no exchange-style revision that we speak");
    return { found: undefined, error, final: Array.isArray(offered) && !hasSession(offered) };
  } catch (error) {
    const supported = supportedBy(error, revision);
    const common = supported && exchangeAmong(supported);
    if (common !== undefined && again) return ask(wire, options, common, false);
    if (supported === undefined || hasSession(supported)) {
      // An end that is gone cannot be spoken to in any style.
      return { found: undefined, error: error as Error, final: error instanceof LinkError };
    }
    const message = `The end speaks only ${supported.join(", ")}; we speak ${REVISIONS.map(({ name }) => name).join(", ")}`;
    return { found: undefined, error: new LinkError("protocol", message, { cause: error }), final: true };
  }
}

/** An end of both styles may name its session revisions too; initialize is the way to those. */
function hasSession(names: readonly unknown[]): boolean {
  return REVISIONS.some(({ style, name }) => style === "session" && names.includes(name));
}

/** An end that was given no choice and answered with an error; what it said would not tell what we wanted of it. */
function lacks(revision: Revision, error: Error): Error {
  if (!(error instanceof McpError)) return error;
  const message = `The end does not speak ${revision.name}: ${error.message} (${error.code})`;
  return new LinkError("protocol", message, { cause: error });
}

/** The newest exchange-style revision of a list that we know too. */
function exchangeAmong(names: readonly unknown[]): Revision | undefined {
  return REVISIONS.findLast(({ style, name }) => style === "exchange" && names.includes(name));
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
  const { info, capabilities } = options;
  const overtaken = new AbortController();
  const home: Context = { ...options.home, signal: AbortSignal.any([options.home.signal, overtaken.signal]) };
  const startMs = options.startMs ?? START_MS;
  const session = SessionBack.initialize(
    wire,
    { info, capabilities, offers, accepts, home: options.home },
    home,
    startMs,
  );
  try {
    const first = await Promise.race([session, ...(late === undefined ? [] : [onceFound(late)])]);
    // Both may have come in one breath, the answer to the probe first.
    const probe = first instanceof SessionBack && late !== undefined && !isProbing(wire) ? await late : undefined;
    if (probe?.found !== undefined)
      return opened(wire, new ExchangeBack(wire, backOptions(options, probe.found)), probe.discovered);
    if (first instanceof SessionBack) return opened(wire, first, first.discovered);
    overtaken.abort(new Error("The end speaks an exchange-style revision"));
    session.catch(() => undefined);
    return opened(wire, new ExchangeBack(wire, backOptions(options, first.found)), first.discovered);
  } catch (error) {
    if (error instanceof LinkError && error.kind === "timeout") {
      const advice = "an end that starts slowly needs a longer `startTimeout`";
      throw new LinkError("timeout", `The end did not answer initialize in ${startMs} ms; ${advice}`, { cause: error });
    }
    if (!(error instanceof McpError)) throw error;
    throw new LinkError("protocol", `The end refused initialize: ${error.message} (${error.code})`, { cause: error });
  }
}

function isProbing(wire: Wire): boolean {
  return [...wire.calls.values()].some(({ method }) => method === "server/discover");
}

type Found = Extract<Probe, { readonly found: Revision }>;

/** Settles only if the probe finds something: otherwise it is for initialize to decide. */
function onceFound(late: Promise<Probe>): Promise<Found> {
  return new Promise((resolve) => {
    void late.then((probe) => {
      if (probe.found !== undefined) resolve(probe);
    });
  });
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

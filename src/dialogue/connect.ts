// Connects to a server over a duplex transport, in the requested revision or in one that the server supports. A
// `server/discover` request probes for the stateless style. If the server does not know the request, or stays silent,
// the handshake of a session follows. A server that answers the handshake is in a session, whatever else it answers. If
// it closes the connection because of the probe, we connect once more, without the probe.

import { attempt, ignoreRejection, MAX_DELAY_MS, within, withTimeout } from "../core/async.ts";
import type { Context, Handler, Result } from "../core/handler.ts";
import { ConnectionError, type Hint, THE_SERVER } from "../core/errors.ts";
import { asError, fieldsOf } from "../core/values.ts";
import { McpError, codeOf, withoutDiagnostics } from "../protocol/errors.ts";
import type { Revision } from "../protocol/revision.ts";
import { knownRevision, NEWEST, REVISIONS } from "../protocol/revisions/index.ts";
import { type Tap, tapTransport } from "../transport/tap.ts";
import type { LateParts, Transport } from "../transport/transport.ts";
import { Peer, type PeerListener } from "./calls/peer.ts";
import type { Timeouts } from "./calls/pending-calls.ts";
import { SessionBack } from "./session/back.ts";
import type { SessionOptions } from "./session/handshake.ts";
import type { StatelessBack, StatelessBackOptions } from "./stateless/back.ts";
import { DuplexBack } from "./stateless/duplex-back.ts";

export interface ServerConnectionOptions extends SessionOptions {
  /** Uses this revision and no other. */
  readonly revision?: string;
  /** The revision to offer in a handshake, if it is session-style; the newest by default. */
  readonly offers?: string;
  /** The style for a server that speaks both; stateless by default. Ignored if there is a `revision`. */
  readonly style?: Revision["style"];
  readonly timeouts?: Partial<Timeouts>;
  /** How long a server that runs may take to answer the probe. */
  readonly probeTimeoutMs?: number;
  /** Resolves when a program has written something, so it has started. Without it, the server runs already. */
  readonly firstOutput?: () => Promise<void> | undefined;
  /** How long a transport may take to open and start, and then the first answer once the style is clear; 0: no limit. */
  readonly startTimeoutMs?: number;
  /** For a transport that may never close: how long to wait for it if `close` gets no budget. */
  readonly closeTimeoutMs?: number;
  /** What errors say of a transport that does not open or start in time. */
  readonly lateParts?: LateParts;
  /** Called with every message of the connection, as it is on the wire. */
  readonly tap?: Tap | undefined;
}

/** A connected server. */
export interface ServerConnection {
  readonly handler: Handler;
  readonly revision: Revision;
  /** The server's self-description, as an answer to `server/discover`. */
  readonly discovered: Result;
  /** Whether it is always known which call a request of the server belongs to. */
  readonly attributesRequests: boolean;
  /** Rejects when the connection closes by itself; resolves only when `signal` is aborted. */
  ended(signal: AbortSignal): Promise<void>;
  close(budgetMs?: number): Promise<void>;
}

const PROBE_TIMEOUT_MS = 1_000;
/** A program that has written nothing is taken to be starting for this long. Many write nothing before they are asked. */
const SILENT_START_MS = 4_000;
/** A server that answers the probe late has this many times the probe's timeout to answer the handshake as well. */
const LATE_HANDSHAKE_FACTOR = 10;
/** A command may have to download its program first. */
export const START_TIMEOUT_MS = 60_000;

/** `connect` creates a transport. If the server closes the first one, `connect` is called again with that failure. */
export async function openConnection(
  connect: (failure?: ConnectionError) => Transport | Promise<Transport>,
  options: ServerConnectionOptions,
): Promise<ServerConnection> {
  const wantedRevision = options.revision === undefined ? undefined : knownRevision(options.revision);
  const { probeTimeoutMs = PROBE_TIMEOUT_MS } = options;
  const startTimeoutMs = startLimitMs(options);
  const isSessionFirst = (wantedRevision?.style ?? options.style) === "session";
  let peer = await openPeer(connect, options);
  const reopenIfClosed = async (failure: ConnectionError): Promise<void> => {
    if (failure.kind !== "closed") return;
    await peer.close().catch(() => undefined);
    peer = await openPeer(() => connect(failure), options);
  };
  const tryStateless = (ms: number): Promise<ProbeResult> => probe(peer, options, wantedRevision ?? NEWEST, ms);
  try {
    let failure: ConnectionError;
    try {
      if (isSessionFirst) return await openSession(peer, options, wantedRevision);
      const probed = await tryStateless(wantedRevision === undefined ? probeTimeoutMs : startTimeoutMs);
      if (probed.back !== undefined) return serverConnection(peer, probed.back, () => probed.discovered);
      if (wantedRevision !== undefined) throw revisionRefused(wantedRevision, probed.error);
      if (probed.final) throw probed.error;
      return await openSession(peer, options, undefined, probed.late);
    } catch (error) {
      const mayRetry = isSessionFirst ? NO_HANDSHAKE : PROBE_REFUSED;
      if (wantedRevision !== undefined || !(error instanceof ConnectionError) || !mayRetry.has(error.kind)) throw error;
      failure = error;
    }
    await reopenIfClosed(failure);
    if (!isSessionFirst) return await openSession(peer, options, undefined);
    // A server that was silent until now does not get the full start timeout again.
    const probed = await tryStateless(failure.kind === "timeout" ? probeTimeoutMs : startTimeoutMs);
    if (probed.back !== undefined) return serverConnection(peer, probed.back, () => probed.discovered);
    const problem = `${failure.problem}; it does not speak a stateless revision either: ${withoutDiagnostics(probed.error)}`;
    throw probed.final ? probed.error : failure.with({ problem, subject: failure.subject });
  } catch (error) {
    await peer.close().catch(() => undefined);
    throw error;
  }
}

/** The kind of error with which a server that cannot bear the probe ends the connection. */
const PROBE_REFUSED: ReadonlySet<string> = new Set(["closed"]);

/** The kinds of errors with which the handshake fails if the server does not support sessions. */
const NO_HANDSHAKE: ReadonlySet<string> = new Set(["protocol", "timeout", "closed"]);

/** setTimeout fires at once if the delay is infinite. */
function startLimitMs({ startTimeoutMs = START_TIMEOUT_MS }: ServerConnectionOptions): number {
  return startTimeoutMs === 0 ? MAX_DELAY_MS : startTimeoutMs;
}

const LATE_PARTS: LateParts = { opening: "The transport was not opened", starting: "The server was not started" };

export function slowStart(server: string): Hint {
  const needs = `${server} needs a longer`;
  return { text: `${needs} \`startTimeoutMs\``, flags: `${needs} --timeout` };
}

/** Opens and starts a transport, within the start timeout. A transport that opens or starts later than that is closed. */
async function openPeer(
  connect: () => Transport | Promise<Transport>,
  options: ServerConnectionOptions,
): Promise<Peer> {
  const { lateParts = LATE_PARTS, defaultContext, timeouts, closeTimeoutMs } = options;
  const { signal } = defaultContext;
  const limitMs = startLimitMs(options);
  const begin = performance.now();
  const inTime = <T>(work: () => Promise<T>, late: string): Promise<T> => {
    const leftMs = Math.max(0, limitMs - (performance.now() - begin));
    return withTimeout(leftMs, signal, work, `${late} in ${limitMs} ms`, { hint: slowStart("a slow one") });
  };
  const opening = attempt(async () => connect());
  let transport: Transport;
  try {
    transport = await inTime(() => opening, lateParts.opening);
  } catch (error) {
    void ignoreRejection(opening.then((late) => late.close(0)));
    throw error;
  }
  const peer = new Peer(tapped(transport, options), timeouts, closeTimeoutMs);
  const starting = attempt(() => peer.start());
  try {
    await inTime(() => starting, lateParts.starting);
  } catch (error) {
    void ignoreRejection(starting.then(() => peer.close(0)));
    // Only who closes the connection waits until it is closed.
    const closing = ignoreRejection(peer.close(signal.aborted ? undefined : 0));
    if (signal.aborted) await closing.catch(() => undefined);
    throw error;
  }
  return peer;
}

export async function startPeer(transport: Transport, options: ServerConnectionOptions): Promise<Peer> {
  const peer = new Peer(tapped(transport, options), options.timeouts);
  await peer.start();
  return peer;
}

function tapped(transport: Transport, { tap }: ServerConnectionOptions): Transport {
  return tap === undefined ? transport : tapTransport(transport, tap, "client");
}

/** The error if a specific revision is required and the server answered with an error. */
export function revisionRefused(revision: Revision, error: Error): Error {
  if (!(error instanceof McpError)) return error;
  const message = `The server does not speak ${revision.name}: ${error.message} (${error.code})`;
  return new ConnectionError("protocol", message, { ...THE_SERVER, cause: error });
}

/**
 * Does the handshake on a started connection. `late` is the answer to an earlier probe, which may still arrive. A server
 * that speaks both styles is in a session once it has answered `initialize`, so that answer decides.
 */
export async function openSession(
  peer: Peer,
  options: ServerConnectionOptions,
  wantedRevision: Revision | undefined,
  late?: Promise<ProbeResult>,
): Promise<ServerConnection> {
  const overtaken = new AbortController();
  const session = ignoreRejection(initializeSession(peer, options, wantedRevision, overtaken.signal));
  const server = late && (await lateStateless(session, late, options.probeTimeoutMs));
  if (server !== undefined) {
    overtaken.abort(new Error("The server speaks a stateless revision"));
    return serverConnection(peer, server.back, () => server.discovered);
  }
  try {
    const back = await session;
    return serverConnection(peer, back, () => back.discovered);
  } catch (error) {
    if (!(error instanceof McpError)) throw error;
    const message = `The server refused initialize: ${error.message} (${error.code})`;
    throw new ConnectionError("protocol", message, { ...THE_SERVER, cause: error });
  }
}

/** The late answer to the probe, if the server turns out to be stateless. */
async function lateStateless(
  session: Promise<unknown>,
  late: Promise<ProbeResult>,
  probeTimeoutMs = PROBE_TIMEOUT_MS,
): Promise<StatelessServer | undefined> {
  const stateless = late.then((probed) => (probed.back === undefined ? undefined : probed));
  const handshake = session.then(
    () => "session",
    (error: unknown) => (error instanceof McpError ? "refused" : "failed"),
  );
  const limitMs = LATE_HANDSHAKE_FACTOR * probeTimeoutMs;
  const limited = stateless.then((server) => (server === undefined ? handshake : within(limitMs, handshake)));
  const outcome = await Promise.race([handshake, limited]);
  if (outcome === "session" || outcome === "failed") return undefined;
  // A slow server that is only stateless may refuse the handshake before it answers the probe.
  return within(probeTimeoutMs, stateless);
}

async function initializeSession(
  peer: Peer,
  options: ServerConnectionOptions,
  wantedRevision: Revision | undefined,
  overtaken: AbortSignal,
): Promise<SessionBack> {
  const sessions = REVISIONS.filter(({ style }) => style === "session");
  const offers = wantedRevision ?? sessions.find(({ name }) => name === options.offers) ?? sessions.at(-1);
  if (offers === undefined) throw new TypeError("No session-style revision is known");
  const accepts = wantedRevision === undefined ? sessions : [wantedRevision];
  const { defaultContext, startTimeoutMs = START_TIMEOUT_MS } = options;
  const startContext: Context = { ...defaultContext, signal: AbortSignal.any([defaultContext.signal, overtaken]) };
  try {
    return await SessionBack.initialize(peer, { ...options, offers, accepts }, startContext, startTimeoutMs);
  } catch (error) {
    if (!(error instanceof ConnectionError) || error.kind !== "timeout") throw error;
    const problem = `The server did not answer initialize in ${startTimeoutMs} ms`;
    throw error.with({ ...THE_SERVER, problem, hint: slowStart("a server that starts slowly") });
  }
}

/** `revision` and `discovered` are getters, because they may change when a session is renewed. */
function serverConnection(
  peer: Peer,
  back: PeerListener & { readonly handler: Handler; readonly revision: Revision },
  discovered: () => Result,
): ServerConnection {
  const { handler } = back;
  peer.listener = back;
  return {
    handler,
    get revision() {
      return back.revision;
    },
    get discovered() {
      return discovered();
    },
    // On stdio the messages of all calls share one stream, so it is unknown which call a session-style server's request
    // belongs to. A stateless server makes no requests.
    attributesRequests: back.revision.style === "stateless",
    ended: (signal) => peer.calls.ended(signal),
    close: (budgetMs) => peer.close(budgetMs),
  };
}

interface StatelessServer<Back = DuplexBack> {
  readonly back: Back;
  readonly discovered: Result;
}

/** The probe has not found a stateless server. `final` means that there is nothing else to try. */
interface ProbeFailure {
  readonly back: undefined;
  readonly error: Error;
  readonly final: boolean;
  /** The answer to the probe that a silent server may still send. */
  readonly late?: Promise<ProbeResult>;
}

type ProbeResult<Back = DuplexBack> = StatelessServer<Back> | ProbeFailure;

/** Asks a server that may be silent because it is still starting, or because it does not know the request. */
async function probe(
  peer: Peer,
  options: ServerConnectionOptions,
  revision: Revision,
  timeoutMs: number,
): Promise<ProbeResult> {
  const answer = discover((backOptions) => new DuplexBack(peer, backOptions), options, revision);
  const started = options.firstOutput?.();
  if (started !== undefined) await within(SILENT_START_MS, Promise.race([answer, started]));
  const probed = await within(timeoutMs, answer);
  if (probed !== undefined) return probed;
  const error = new ConnectionError(
    "timeout",
    `The server did not answer server/discover in ${timeoutMs} ms`,
    THE_SERVER,
  );
  return { back: undefined, error, final: false, late: answer };
}

/**
 * Asks with `server/discover` whether the server is stateless. The server is stateless if its answer names a stateless
 * revision that we know. An error that only stateless servers send is final. Any other answer suggests a session.
 */
export async function discover<Back extends StatelessBack>(
  createBack: (options: StatelessBackOptions) => Back,
  options: Pick<ServerConnectionOptions, "info" | "defaultContext">,
  revision: Revision,
  mayRetry = true,
): Promise<ProbeResult<Back>> {
  const { info, defaultContext } = options;
  const back = createBack({ revision, info, defaultContext });
  let names: readonly string[] | undefined;
  let problem: Error | undefined;
  try {
    const discovered = await back.handler({ method: "server/discover", params: {} }, defaultContext);
    names = stringsIn(discovered["supportedVersions"]);
    if (names?.includes(revision.name) === true) {
      back.isConfirmed = true;
      return { back, discovered };
    }
  } catch (error) {
    problem = asError(error);
    names = supportedBy(error, revision);
    // An unexpected answer may come from a server of the other style. Without an answer, there is nothing else
    // to try on this connection.
    if (error instanceof ConnectionError)
      return { back: undefined, error, final: error.kind !== "http" && error.kind !== "protocol" };
  }
  if (problem instanceof McpError && STATELESS_CODES.has(problem.code))
    return { back: undefined, error: problem, final: true };
  const common = REVISIONS.findLast(({ style, name }) => style === "stateless" && names?.includes(name) === true);
  // Even the revision that was refused is tried again, since some servers refuse any first request.
  if (common !== undefined && mayRetry) return discover(createBack, options, common, false);
  // Some session-style servers answer even unknown requests. So an answer is final only if it names revisions, and none
  // of them is session-style.
  const final = names !== undefined && !names.some((name) => isSession(name));
  if (!final) {
    const error = problem ?? new ConnectionError("protocol", "The server does not speak a stateless revision");
    return { back: undefined, error, final };
  }
  const message = `The server speaks only ${names?.join(", ") ?? ""}; we speak ${REVISIONS.map(({ name }) => name).join(", ")}`;
  return { back: undefined, error: new ConnectionError("protocol", message, { ...THE_SERVER, cause: problem }), final };
}

/** Codes of errors that only stateless servers send. */
const STATELESS_CODES: ReadonlySet<number> = new Set(
  (["header_mismatch", "missing_capability"] as const).map((kind) => codeOf(kind, NEWEST)),
);

function isSession(name: string): boolean {
  return REVISIONS.some((revision) => revision.style === "session" && revision.name === name);
}

/** The revisions that an "unsupported revision" error names; undefined for any other error. */
function supportedBy(error: unknown, revision: Revision): readonly string[] | undefined {
  if (!(error instanceof McpError) || error.code !== codeOf("unsupported_revision", revision)) return undefined;
  return stringsIn(fieldsOf(error.data)["supported"]);
}

function stringsIn(list: unknown): readonly string[] | undefined {
  return Array.isArray(list) ? list.filter((name) => typeof name === "string") : undefined;
}

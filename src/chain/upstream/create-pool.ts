// Creates the session pool of an upstream that is a command, a URL or a transport. Also remembers the revision that a
// program speaks.

import type { Command } from "../../client/command.ts";
import { openTarget, ownInfo, type TargetOptions } from "../../client/connect.ts";
import { MAX_DELAY_MS } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Context, Handler } from "../../core/handler.ts";
import { defaultsOf } from "../../core/options.ts";
import { defined } from "../../core/values.ts";
import { INTERNAL_CALLER } from "../../protocol/caller.ts";
import { knownRevision, NEWEST } from "../../protocol/revisions/index.ts";
import { backgroundContext } from "../router/pages.ts";
import { ListsFile, readStoredLists } from "./stored-lists.ts";
import { ALL_REQUESTS } from "./sharing.ts";
import { forwardedHeaders, isCommand, isTransport, UPSTREAM } from "./options.ts";
import type { UpstreamOptions, UpstreamTarget } from "./options.ts";
import { UpstreamPool } from "./pool.ts";
import { RestartPolicy } from "./recovery.ts";
import type { UpstreamConnection } from "./supervisor.ts";
import type { UpstreamSessionHost } from "./session.ts";

/**
 * How long a request waits for the first answer of the upstream, unless `startTimeoutMs` is set. The start itself goes on
 * for longer, since a package manager may have to download the program first.
 */
const START_WAIT_MS = 60_000;

export interface PoolContext {
  /** The command or URL, without secrets. */
  readonly description: string;
  readonly name: string;
  readonly onState: () => void;
}

export function createPool(
  target: Exclude<UpstreamTarget, Handler>,
  options: UpstreamOptions,
  { description, name, onState }: PoolContext,
): UpstreamPool {
  if (options.revision !== undefined) knownRevision(options.revision);
  const { auth, fetch, headers, limits, onNoise, onStderr, restart, idleMs, maxSessions } = options;
  const isProgram = isCommand(target);
  const revisions = new RevisionMemory(options.revision, isProgram);
  const targetOptions: TargetOptions = {
    ...defined({ auth, fetch, headers, limits, onNoise, onStderr }),
    hidesPath: true,
  };
  // The caller sets its own limit and cancels, so by default a call has none here.
  const { timeoutMs, maxTimeoutMs, startTimeoutMs } = { ...defaultsOf(UPSTREAM), ...defined(options) };
  const open = (host: UpstreamSessionHost, background: Context): Promise<UpstreamConnection> => {
    const { isOwn, revision: offers } = host;
    const { style } = host.client;
    const { info = ownInfo(), capabilities } = background.caller;
    return revisions.open(offers ?? style, async (revision) => {
      const forwarded = forwardedHeaders(options.forwardHeaders, host.client.headers);
      const { opened, program } = await openTarget(
        target,
        { ...targetOptions, headers: { ...headers, ...forwarded } },
        {
          info,
          capabilities,
          style,
          isShared: !isOwn,
          defaultContext: background,
          timeouts: { idleMs: timeoutMs, totalMs: maxTimeoutMs },
          startTimeoutMs,
          onAsked: () => host.onAsked?.(),
          ...defined({ revision, offers }),
        },
      );
      return { connection: opened, ...defined({ program }) };
    });
  };
  return new UpstreamPool({
    name,
    target: description,
    open,
    onState,
    idleMs,
    maxSessions,
    restart: isProgram ? (restart ?? {}) : undefined,
    startFailures: isProgram ? new RestartPolicy(restart) : undefined,
    startWaitMs: startTimeoutMs === 0 ? MAX_DELAY_MS : (options.startTimeoutMs ?? START_WAIT_MS),
    forwardHeaders: options.forwardHeaders,
    // A transport can be started only once, so all callers must share it.
    share: isTransport(target) ? "shared" : options.share,
    listsFile: listsFilesOf(target, options),
  });
}

/** The file of each principal. Undefined if nothing is stored. */
function listsFilesOf(
  target: Exclude<UpstreamTarget, Handler>,
  { remember, revision }: UpstreamOptions,
): ((principal?: string) => ListsFile) | undefined {
  if (!isCommand(target) || remember === false) return undefined;
  return (principal) => new ListsFile([target, revision], principal);
}

/**
 * Stores what a program lists over a connection that was opened elsewhere, so that a gateway with the same program knows
 * it from the start. `target` is the command as `commandWith` makes it, and the connection declares ALL_REQUESTS.
 */
export async function rememberLists(target: Command, options: UpstreamOptions, handler: Handler): Promise<void> {
  const file = listsFilesOf(target, options)?.();
  if (file === undefined) return;
  const caller = { ...INTERNAL_CALLER, capabilities: ALL_REQUESTS };
  const context = backgroundContext({ revision: NEWEST.name, caller });
  const discovered = await handler({ method: "server/discover", params: {} }, context);
  const lists = await readStoredLists(handler, discovered, context);
  await (lists === undefined ? file.delete() : file.write(lists));
}

/**
 * Remembers the negotiated revision so that a restart skips the probe (a first `server/discover`). Otherwise, a program
 * that crashes during the probe would look like one that does not support the probe. If the program rejects the
 * remembered revision, the revision is negotiated again.
 */
export class RevisionMemory {
  readonly #required: string | undefined;
  readonly #isProgram: boolean;
  /** Revisions by what was preferred: the style of the callers, or the revision of one. */
  readonly #known = new Map<string, string>();

  /**
   * `required`: the revision in the options. `isProgram`: revisions are remembered only for programs. For URLs,
   * http/client/connect.ts remembers the style.
   */
  constructor(required: string | undefined, isProgram: boolean) {
    this.#required = required;
    this.#isProgram = isProgram;
  }

  async open(
    preferred: string,
    open: (revision: string | undefined) => Promise<UpstreamConnection>,
  ): Promise<UpstreamConnection> {
    const known = this.#required ?? this.#known.get(preferred);
    try {
      return this.#remember(preferred, await open(known));
    } catch (error) {
      if (known === this.#required || !isWrongRevision(error)) throw error;
      this.#known.delete(preferred);
      return this.#remember(preferred, await open(undefined));
    }
  }

  #remember(preferred: string, opened: UpstreamConnection): UpstreamConnection {
    if (this.#isProgram) this.#known.set(preferred, opened.connection.revision.name);
    return opened;
  }
}

/** Whether the program runs, but does not speak the revision. */
function isWrongRevision(error: unknown): boolean {
  return error instanceof ConnectionError && (error.kind === "protocol" || error.kind === "timeout");
}

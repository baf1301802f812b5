// An end that is reached by sessions: how one is begun with a command, an address or a transport, for callers of a kind.

import { openTarget, ourselves, type ConnectOptions } from "../../client/connect.ts";
import type { Context } from "../../core/handler.ts";
import type { Handler } from "../../core/handler.ts";
import type { OpenOptions } from "../../dialogue/connect.ts";
import { knownRevision } from "../../protocol/revisions/index.ts";
import { fingerprint } from "./caller-key.ts";
import { CatalogueFile } from "./catalogue-file.ts";
import { UpstreamPool, type MakeSession } from "./pool.ts";
import { UpstreamSession } from "./session.ts";
import { isCommand, isTransport, MESSAGE_BYTES, type UpstreamOptions, type UpstreamTarget } from "./upstream.ts";
import { Ownership } from "./ownership.ts";
import { Restarts } from "./restarts.ts";
import { Spoken } from "./spoken.ts";
import type { Life } from "./supervisor.ts";

/** A package manager may have to fetch the program first. */
const START_MS = 60_000;

/** What stands in for another session rests no longer than this. */
const EXTRA_MS = 60_000;

export interface Shown {
  /** How it is reached, fit to be shown. */
  readonly shown: string;
  readonly name: () => string;
  readonly onState: () => void;
}

/** An end as its callers reach it. */
export interface Reached extends Pick<UpstreamPool, "status" | "close"> {
  readonly handle: Handler;
}

export function poolOf(
  target: Exclude<UpstreamTarget, Handler>,
  options: UpstreamOptions,
  { shown, name, onState }: Shown,
): Reached {
  if (options.revision !== undefined) knownRevision(options.revision);
  const isProgram = isCommand(target);
  const spoken = new Spoken(options.revision, isProgram);
  const stillbirths = isProgram ? new Restarts(options.restart) : undefined;
  const make: MakeSession = (caller, { style, isForAll, isOwn, isExtra, mayBegin, onLeave }) => {
    const file =
      isProgram && options.remember !== false
        ? new CatalogueFile([target, options.revision, style, fingerprint(caller.capabilities), caller.principal])
        : undefined;
    const open = (home: Context): Promise<Life> =>
      spoken.opening(style, (revision) => openTarget(target, connecting(options), how(options, home, style, revision)));
    return new UpstreamSession({
      name: name(),
      caller,
      isForAll,
      isOwn,
      stillbirths,
      mayBegin,
      open,
      file,
      restart: isProgram ? (options.restart ?? {}) : undefined,
      idleMs: isExtra ? Math.min(options.idle ?? EXTRA_MS, EXTRA_MS) : options.idle,
      onState,
      ...(onLeave === undefined ? undefined : { onLeave }),
    });
  };
  const pool = new UpstreamPool({
    name,
    target: shown,
    // A transport can be started once: all must share what it leads to.
    share: isTransport(target) ? "shared" : options.share,
    saysWhose: !isProgram,
    make,
    ...(options.sessions === undefined ? undefined : { mostSessions: options.sessions }),
  });
  const owners = new Ownership();
  const handle: Handler = (request, context) => pool.handle(request, context);
  return {
    handle: (request, context) => owners.handle(request, context, handle),
    status: () => pool.status(),
    close: (budgetMs) => pool.close(budgetMs),
  };
}

function connecting({ auth, fetch, headers, limits, onNoise, onStderr }: UpstreamOptions): ConnectOptions {
  return {
    ...(auth && { auth }),
    ...(fetch && { fetch }),
    ...(headers && { headers }),
    limits: { messageBytes: MESSAGE_BYTES, ...limits },
    ...(onNoise && { onNoise }),
    ...(onStderr && { onStderr }),
  };
}

function how(
  options: UpstreamOptions,
  home: Context,
  style: OpenOptions["style"],
  revision: string | undefined,
): OpenOptions {
  const { timeout = {}, startTimeout = START_MS } = options;
  return {
    info: home.caller.info ?? ourselves(),
    capabilities: home.caller.capabilities,
    home,
    timeouts: typeof timeout === "number" ? { idleMs: timeout } : timeout,
    startMs: startTimeout,
    ...(revision === undefined ? undefined : { revision }),
    ...(style === undefined ? undefined : { style }),
  };
}

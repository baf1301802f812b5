// The handshake with a session-style end: what we offer, what the end makes of it, and the terms on which the session
// stands from then on. A session that is begun anew shakes hands again, and may come to other terms.

import type { Context } from "../../core/context.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Result } from "../../core/handler.ts";
import { isObject } from "../../core/objects.ts";
import { META } from "../../protocol/model/index.ts";
import type { Json, Revision } from "../../protocol/revision.ts";
import { revisionNamed } from "../../protocol/revisions/index.ts";
import type { Wire } from "../calls/wire.ts";

export interface HandshakeOptions {
  readonly info: Json;
  /** Client capabilities, in the newest shape. */
  readonly capabilities: Json;
  /** The revision to offer; the end may answer with any that `accepts` holds. */
  readonly offers: Revision;
  readonly accepts: readonly Revision[];
  /** Who is asked, and told, where no call of ours stands behind it. */
  readonly home: Context;
}

/** What a handshake came to. */
export interface Terms {
  readonly revision: Revision;
  readonly capabilities: Json;
  /** The same in the end's own words. */
  readonly offered: Json;
  /** The end's answer, as an answer to `server/discover`. */
  readonly discovered: Result;
}

export async function shakeHands(
  wire: Wire,
  options: HandshakeOptions,
  starting: Context,
  timeoutMs: number,
): Promise<Terms> {
  const { offers } = options;
  const context: Context = { ...starting, timeouts: { idleMs: timeoutMs, totalMs: 0 } };
  const params = {
    protocolVersion: offers.name,
    capabilities: offers.lower.clientCapabilities(options.capabilities),
    clientInfo: offers.lower.implementation(options.info),
  };
  const answer: Result = await wire.call("initialize", () => params, context);
  const name = answer["protocolVersion"];
  const revision = typeof name === "string" ? revisionNamed(name) : undefined;
  if (revision === undefined || !options.accepts.includes(revision)) {
    const known = options.accepts.map((accepted) => accepted.name).join(", ");
    throw new ConnectionError(
      "protocol",
      `The end answered initialize with revision ${String(name)}; we speak ${known}`,
    );
  }
  const offered = (answer["capabilities"] as Json | undefined) ?? {};
  const capabilities = revision.lift.serverCapabilities(offered);
  const serverInfo = isObject(answer["serverInfo"]) ? revision.lift.implementation(answer["serverInfo"]) : undefined;
  const discovered: Result = {
    resultType: "complete",
    capabilities,
    ...(answer["instructions"] === undefined ? undefined : { instructions: answer["instructions"] }),
    ttlMs: 0,
    cacheScope: "private",
    ...(serverInfo === undefined ? undefined : { _meta: { [META.serverInfo]: serverInfo } }),
  };
  return { revision, capabilities, offered, discovered };
}

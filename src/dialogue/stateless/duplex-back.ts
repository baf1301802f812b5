// The side that faces a stateless server over a duplex connection, such as stdio. The messages of all calls share one
// stream, so notifications are matched to their calls.

import { type Context, levelRank, type Notification, type Params, type Result } from "../../core/handler.ts";
import type { Id, NotificationMessage } from "../../jsonrpc/message.ts";
import { INTERNAL_CALLER, isSameClient } from "../../protocol/caller.ts";
import { META } from "../../protocol/model/base.ts";
import { isVendorMethod } from "../../protocol/revisions/index.ts";
import type { OutgoingCall, Peer, PeerListener } from "../calls/peer.ts";
import { StatelessBack, type StatelessBackOptions, withoutTag } from "./back.ts";

export class DuplexBack extends StatelessBack implements PeerListener {
  readonly #peer: Peer;

  constructor(peer: Peer, options: StatelessBackOptions) {
    super(options);
    this.#peer = peer;
  }

  protected call(method: string, params: Params, context: Context): Promise<Result> {
    return this.#peer.call(method, (id) => this.withEnvelope(params, context, id), context);
  }

  protected notify(method: string, params: Params): void {
    this.#peer.notify(method, params);
  }

  onRequest(): void {
    // Stateless servers send no requests. If one does, the request is ignored, since no client could answer it.
  }

  onNotification(message: NotificationMessage, requestId: Id | undefined): void {
    const lifted = this.revision.lift.notification(message);
    if (lifted === undefined) return;
    const { method, params } = lifted;
    const tag = params?._meta?.[META.subscriptionId];
    if (tag !== undefined) this.#peer.findCall(tag)?.context.notify({ method, params: withoutTag(params ?? {}) });
    else if (method === "notifications/progress") {
      const call = this.#peer.findCall(params?.["progressToken"]);
      if (call === undefined) return;
      call.touch?.();
      this.#peer.report(call.context, "server", message);
      call.context.notify(lifted);
    } else if (method === "notifications/cancelled") this.#peer.endSubscription(params?.["requestId"]);
    else if (method === "notifications/message") this.#log(lifted, message, requestId);
    else if (isVendorMethod(method)) this.#deliver(params === undefined ? { method } : { method, params }, requestId);
  }

  /** Delivers a vendor's notification to its call. If that is unknown, each caller gets it once. */
  #deliver(notification: Notification, requestId: Id | undefined): void {
    const named = this.#peer.findCall(requestId);
    const calls = named === undefined ? [...this.#peer.calls.values()] : [named];
    const subscriptions = calls.filter(({ method }) => method === "subscriptions/listen");
    const receivers = new Map([...calls, ...subscriptions].map(({ context }) => [context.caller.key, context]));
    receivers.delete(INTERNAL_CALLER.key);
    if (receivers.size === 0) this.options.defaultContext.notify(notification);
    for (const context of receivers.values()) context.notify(notification);
  }

  /**
   * Delivers a log message to the call that it belongs to. On stdio that call is unknown. There the message goes to a
   * call that asked for logs, since no other call may get it (specification, server/utilities/logging). If no call
   * asked for logs, it goes to the client's subscriptions. If it could belong to more than one client, no call gets it.
   */
  #log(notification: Notification, message: NotificationMessage, requestId: Id | undefined): void {
    const named = this.#peer.findCall(requestId);
    const receivers = named === undefined ? this.#logReceivers(notification.params?.["level"]) : [named];
    if (receivers.length === 0) this.options.defaultContext.notify(notification);
    for (const { context } of receivers) {
      this.#peer.report(context, "server", message);
      context.notify(notification);
    }
  }

  #logReceivers(level: unknown): readonly OutgoingCall[] {
    const calls = this.#peer.calls.values().filter(({ context }) => context.caller.key !== INTERNAL_CALLER.key);
    const subscriptions = calls.filter(({ method }) => method === "subscriptions/listen");
    const wanting = calls.filter((call) => call.context.logLevel !== undefined && !subscriptions.includes(call));
    const isWanted = ({ context: { logLevel } }: OutgoingCall): boolean => levelRank(level) >= levelRank(logLevel);
    const best = wanting.findLast(isWanted) ?? wanting.at(-1);
    const receivers = best === undefined ? subscriptions : [best];
    const [first, ...others] = (wanting.length > 0 ? wanting : calls).map(({ context }) => context.caller);
    return first !== undefined && others.every((other) => isSameClient(first, other)) ? receivers : [];
  }
}

// Listens at an end that may sleep, fail and come back: each is acknowledged once and stands until its caller ends it.
// One that wants only to hear of changed lists wakes nobody: while the end sleeps it is granted what the catalogue
// says, and it is joined to the end when somebody else has started it. One that wants resources or tasks starts the
// end, again and again if need be. After a loss nobody knows what was missed: the caller is told of all of it.

import type { Context } from "../../core/handler.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Handler, Notification, Request, Result } from "../../core/handler.ts";
import type { Json } from "../../protocol/revision.ts";
import { styleOf } from "./caller-key.ts";
import { grantedBy, type Catalogue } from "./catalogue.ts";
import type { Life, Supervisor } from "./supervisor.ts";

const ACKNOWLEDGED = "notifications/subscriptions/acknowledged";
/** The least pause before an end that could not be started is tried again. */
const PAUSE_MS = 1_000;
/** The same for one that is taken to live, and to which nothing can be said. */
const BROKEN_MS = 100;

interface Standing {
  readonly context: Context;
  /** Whether the end must run for it. */
  readonly isWaking: boolean;
  /** What was granted, once it is. */
  granted: Json | undefined;
}

export class StandingListens {
  readonly #supervisor: Supervisor;
  readonly #catalogue: () => Promise<Catalogue | undefined>;
  /** How a request gets to the end. */
  readonly #way: (life: Life, context: Context) => Handler;
  /** Told when a listen is over. */
  readonly #onLeave: () => void;
  readonly #standing = new Set<Standing>();

  constructor(
    supervisor: Supervisor,
    catalogue: () => Promise<Catalogue | undefined>,
    way: (life: Life, context: Context) => Handler,
    onLeave: () => void,
  ) {
    this.#supervisor = supervisor;
    this.#catalogue = catalogue;
    this.#way = way;
    this.#onLeave = onLeave;
  }

  /** Whether the end must run for somebody who listens. */
  get isWaking(): boolean {
    return [...this.#standing].some(({ isWaking }) => isWaking);
  }

  /** Whether a caller that has a session is there. */
  get hasSessions(): boolean {
    return [...this.#standing].some(({ context }) => styleOf(context) === "session");
  }

  /** Lists are others than callers were shown. */
  tell(methods: readonly string[]): void {
    for (const { context, granted } of this.#standing) {
      for (const method of methods) if (granted?.[flagOf(method)] === true) context.notify({ method });
    }
  }

  async listen(request: Request, context: Context): Promise<Result> {
    const wanted = request.params["notifications"] as Json;
    const standing: Standing = { context, isWaking: isWaking(wanted), granted: undefined };
    this.#standing.add(standing);
    try {
      if (this.#supervisor.life === undefined && !standing.isWaking) await this.#grantAsleep(standing, wanted);
      return await this.#stand(request, standing);
    } finally {
      this.#standing.delete(standing);
      this.#onLeave();
    }
  }

  async #grantAsleep(standing: Standing, wanted: Json): Promise<void> {
    const catalogue = await this.#catalogue();
    if (catalogue === undefined || standing.context.signal.aborted) return;
    const notifications = grantedBy(catalogue, wanted);
    standing.granted = notifications;
    standing.context.notify({ method: ACKNOWLEDGED, params: { notifications } });
  }

  async #stand(request: Request, standing: Standing): Promise<Result> {
    const { signal } = standing.context;
    for (let isLost = false; ; isLost = true) {
      let life: Life | undefined;
      try {
        life = await this.#life(standing);
        const context = joined(standing, isLost);
        return await this.#way(life, context)(request, context);
      } catch (error) {
        const isLoss = error instanceof ConnectionError && error.kind === "closed";
        if (!isLoss || standing.granted === undefined || signal.aborted) throw error;
      }
      if (this.#supervisor.state === "closed") return { resultType: "complete" };
      // Its pipe may be broken before its end is known: to ask it again at once would leave no time to hear of that.
      if (this.#supervisor.life === life) await this.#supervisor.pause(BROKEN_MS, signal).catch(() => undefined);
    }
  }

  async #life({ context: { signal }, isWaking, granted }: Standing): Promise<Life> {
    if (granted === undefined) return this.#supervisor.running(signal);
    if (!isWaking) return this.#supervisor.nextLife(signal);
    for (;;) {
      try {
        return await this.#supervisor.running(signal);
      } catch (error) {
        if (signal.aborted || this.#supervisor.state === "closed") throw error;
        await this.#supervisor.pause(PAUSE_MS, signal);
      }
    }
  }
}

/** The listen's own context, which hears of one acknowledgement only. */
function joined(standing: Standing, isLost: boolean): Context {
  const { context } = standing;
  const notify = (notification: Notification): void => {
    if (notification.method !== ACKNOWLEDGED) {
      context.notify(notification);
      return;
    }
    const isFirst = standing.granted === undefined;
    const granted = (notification.params?.["notifications"] as Json | undefined) ?? {};
    // What an end grants after it has come back counts from then on.
    standing.granted = granted;
    if (isFirst) context.notify(notification);
    else if (isLost) for (const event of missed(granted)) context.notify(event);
  };
  return { ...context, notify };
}

function missed(granted: Json): Notification[] {
  const uris = (granted["resourceSubscriptions"] as readonly string[] | undefined) ?? [];
  const lists = ["tools", "prompts", "resources"]
    .map((family) => `notifications/${family}/list_changed`)
    .filter((method) => granted[flagOf(method)] === true);
  return [
    ...lists.map((method) => ({ method })),
    ...uris.map((uri) => ({ method: "notifications/resources/updated", params: { uri } })),
  ];
}

function flagOf(method: string): string {
  return `${method.split("/")[1] ?? ""}ListChanged`;
}

function isWaking(wanted: Json): boolean {
  return ["resourceSubscriptions", "taskIds"].some((key) => {
    const names = wanted[key];
    return Array.isArray(names) && names.length > 0;
  });
}

// What a faulty end keeps of a session: what it was told, and its streams with the events that can be asked for again,
// which stay when the connection that carried them is gone.

import type { Visit } from "./raw-server.ts";

/** Events under one name: they stay when the connection that carries them is gone. */
export class Stream {
  readonly events: { readonly id: string; readonly text: string }[] = [];
  visit: Visit | undefined;
  isDone = false;

  say(text: string, id: string): void {
    this.events.push({ id, text });
    this.visit?.chunk(text);
  }

  done(): void {
    this.isDone = true;
    this.visit?.end();
  }

  take(visit: Visit, after = this.events.length): void {
    this.visit = visit;
    for (const { text } of this.events.slice(after)) visit.chunk(text);
    if (this.isDone) visit.end();
  }
}

export class Session {
  readonly id: string;
  readonly subscriptions = new Set<string>();
  readonly streams = new Map<string, Stream>();
  /** The level of logs that it was told. */
  level: string | undefined;

  constructor(id: string) {
    this.id = id;
  }

  stream(name: string): Stream {
    const found = this.streams.get(name) ?? new Stream();
    this.streams.set(name, found);
    return found;
  }
}

// Links that may be replaced while requests run through them: each request goes on with the links with which it began,
// listens move to the new ones, and a link that was taken out is closed when nothing runs through it any more. Loaded
// with the first request through links, since it is of no use before.

import type { Context } from "../core/handler.ts";
import type { Handler, Link, Middleware, Request, Result } from "../core/handler.ts";
import { Line } from "./line.ts";
import { hold, letGo, missing, place, type Place } from "./link-places.ts";
import { MovingListen } from "./moving-listen.ts";

export class Replaceable {
  readonly #end: Handler;
  readonly #listens = new Set<MovingListen>();
  /** Lines through which something still runs, with when that is over. */
  readonly #retired = new Map<Line, Promise<void>>();
  /** Taken out, and not closed yet. */
  readonly #leaving = new Set<Place>();
  #places: readonly Place[];
  #line: Line;

  constructor(places: readonly Place[], end: Handler) {
    this.#end = end;
    this.#places = places;
    this.#line = new Line(places, end);
  }

  get places(): readonly Link[] {
    return this.#places;
  }

  run(request: Request, context: Context): Promise<Result> {
    return request.method === "subscriptions/listen"
      ? this.#listen(request, context)
      : this.#line.run(request, context);
  }

  replace(name: string, given: Link | Middleware): void {
    const at = this.#places.findIndex((one) => one.name === name);
    const old = this.#places[at];
    if (old === undefined) throw missing(name, this.#places);
    const added = place(name, given);
    hold(added);
    const before = this.#line;
    this.#places = this.#places.with(at, added);
    this.#line = new Line(this.#places, this.#end);
    this.#retired.set(
      before,
      before.retire().then(() => void this.#retired.delete(before)),
    );
    for (const listen of this.#listens) listen.moveTo(this.#line);
    this.#leaving.add(old);
    const passing = [...this.#retired].filter(([line]) => line.links.includes(old)).map(([, drained]) => drained);
    void Promise.all(passing).then(() => this.#closeOnce(old).catch(() => undefined));
  }

  /** Ends the listens; closes all links, whoever still runs through them. */
  close(): Promise<void>[] {
    for (const listen of this.#listens) listen.end();
    return [...[...this.#leaving].map((one) => this.#closeOnce(one)), ...this.#places.map((one) => letGo(one))];
  }

  async #closeOnce(old: Place): Promise<void> {
    if (this.#leaving.delete(old)) await letGo(old);
  }

  async #listen(request: Request, context: Context): Promise<Result> {
    const listen = new MovingListen(this.#line, request, context);
    this.#listens.add(listen);
    try {
      return await listen.outcome;
    } finally {
      this.#listens.delete(listen);
    }
  }
}

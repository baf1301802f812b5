// The picture of the chain: clients, transforms, middleware, router and upstreams in the order in which a call passes
// them, with what happened at each. Counters are kept from the end of each call on; what a step changed is compared only
// when someone asks for it.

import type { ObservedCall } from "../chain/observe.ts";
import type { LayeredMiddleware } from "../chain/layer.ts";
import type { Step } from "../chain/steps.ts";
import type { Result } from "../core/handler.ts";
import { defined } from "../core/values.ts";
import type { ChainEntry } from "../protocol/compose.ts";
import type { ConsoleHost } from "./host.ts";
import { healthOf } from "./needs.ts";
import type { CallRow, ChainNode, ChainPicture, StepView, ValueChange } from "./types.ts";

export interface ChainPictureOptions {
  readonly host: ConsoleHost;
  /** The steps of a row; undefined if they are no longer kept. */
  readonly stepsOf: (row: number) => readonly StepView[] | undefined;
}

/** The median is that of so many last calls. */
const TIMES = 256;
const MAX_LAST = 6;
const MAX_CLIENTS = 30;
const NOBODY = "unknown client";

type EndedRow = Pick<CallRow, "id" | "at" | "method" | "name" | "status">;

/** What happened at one place. */
class Tally {
  calls = 0;
  errors = 0;
  changed = 0;
  /** How many calls ended here with a result, without those behind it. */
  answered = 0;
  readonly #rows: EndedRow[] = [];
  #added = 0;
  #times: Float64Array | undefined;
  #timed = 0;

  time(ms: number): void {
    this.#times ??= new Float64Array(TIMES);
    this.#times[this.#timed % TIMES] = ms;
    this.#timed += 1;
  }

  get p50(): number | undefined {
    return this.#times === undefined ? undefined : median(this.#times.subarray(0, Math.min(this.#timed, TIMES)));
  }

  add(row: EndedRow): void {
    if (this.#added > 0 && this.#rows[(this.#added - 1) % MAX_LAST] === row) return;
    this.#rows[this.#added % MAX_LAST] = row;
    this.#added += 1;
  }

  /** The last rows, newest first. */
  get last(): readonly EndedRow[] {
    return this.#rows.toSorted((one, other) => other.id - one.id);
  }
}

/** The places of a chain, or of the middleware in front of one upstream, by name. */
type Tallies = Map<string, Tally>;

/** An upstream, and the middleware in front of it alone. */
interface Lane {
  readonly upstream: Tally;
  readonly middleware: Tallies;
}

export class ChainCounters {
  readonly #options: ChainPictureOptions;
  readonly #clients: Tallies = new Map();
  readonly #chain: Tallies = new Map();
  readonly #router = new Tally();
  readonly #lanes = new Map<string, Lane>();

  constructor(options: ChainPictureOptions) {
    this.#options = options;
  }

  /** A call has ended. */
  ended(row: EndedRow & Pick<CallRow, "client" | "principal">, call: ObservedCall): void {
    // It lasts as long as its client listens.
    if (call.request.method === "subscriptions/listen") return;
    const name = clientOf(row);
    const client = this.#clients.get(name) ?? this.#addClient(name);
    client.calls += 1;
    if (call.status === "failed" || isFailed(call.result)) client.errors += 1;
    client.time(call.ms);
    client.add(row);
    this.#count(call.steps, row, undefined);
  }

  /** With the changes of the last calls at one node. */
  read(node?: string): ChainPicture {
    const { running } = this.#options.host;
    const { gateway, config, signIns } = running;
    const nodes: ChainNode[] = [];
    const edges: (readonly [string, string])[] = [];
    const add = (
      id: string,
      kind: ChainNode["kind"],
      name: string,
      tally: Tally | undefined,
      more: Partial<ChainNode> = {},
    ): string => {
      nodes.push(this.#node({ id, kind, name }, tally, id === node, more));
      return id;
    };
    const clients = this.#lastClients().map(([name, tally]) => add(`client ${name}`, "client", name, tally));
    let ends: readonly string[] = clients;
    const pass = (id: string): void => {
      for (const from of ends) edges.push([from, id]);
      ends = [id];
    };
    for (const { name, middleware } of gateway.middleware) {
      pass(add(`chain ${name}`, kindOf(middleware), name, this.#chain.get(name)));
    }
    const statuses = Object.entries(gateway.status());
    if (statuses.length > 1) {
      pass(add("router", "router", "router", this.#router, { note: `${statuses.length} servers` }));
    }
    const before = ends;
    for (const [name, status] of statuses) {
      const lane = this.#lanes.get(name) ?? (statuses.length === 1 ? this.#lanes.get(ONLY) : undefined);
      const own = middlewareOf(gateway.upstreams.get(name));
      ends = before;
      for (const entry of own) {
        const id = `upstream ${name} ${entry.name}`;
        pass(add(id, kindOf(entry.middleware), entry.name, lane?.middleware.get(entry.name), { server: name }));
      }
      const health = healthOf(status, signIns.page(name) !== undefined);
      pass(add(`upstream ${name}`, "upstream", name, lane?.upstream, { health, server: name }));
    }
    for (const name of config.disabled) {
      nodes.push({ id: `upstream ${name}`, kind: "upstream", name, calls: 0, errors: 0, health: "disabled", last: [] });
    }
    return { nodes, edges };
  }

  #node(
    place: Pick<ChainNode, "id" | "kind" | "name">,
    tally: Tally | undefined,
    hasChanges: boolean,
    more: Partial<ChainNode>,
  ): ChainNode {
    const { calls = 0, errors = 0, changed = 0, answered = 0, last = [], p50 } = tally ?? {};
    const isActing = place.kind === "transform" || place.kind === "middleware";
    return {
      ...place,
      calls,
      errors,
      ...defined({ p50 }),
      ...(isActing && { changed }),
      ...(isActing && answered > 0 && { note: `${answered} answered without a server` }),
      ...more,
      last: last.map(({ id: row, at, method, name }) => {
        const { request, result, note, error } =
          (hasChanges ? this.#changesAt(row, place, more.server) : undefined) ?? NOTHING;
        return { row, at, call: name ?? method, request, result, ...defined({ note, error }) };
      }),
    };
  }

  /** What the step did in a call, as the log still has it. */
  #changesAt(
    row: number,
    { kind, name }: Pick<ChainNode, "kind" | "name">,
    server: string | undefined,
  ): Changes | undefined {
    const steps = this.#options.stepsOf(row);
    if (steps === undefined || kind === "client") return undefined;
    const inLane = server === undefined ? steps : laneSteps(steps, server);
    if (kind === "upstream") return inLane[0] && { ...inLane[0], ...NOTHING };
    const found = findStep(inLane, kind, name);
    const isOneOf = found !== undefined && found.name !== name;
    return isOneOf ? { ...found, note: `of ${found.name} together` } : found;
  }

  #addClient(name: string): Tally {
    const client = new Tally();
    const unused = this.#clients.size < MAX_CLIENTS ? undefined : this.#lastClients().at(-1);
    if (unused !== undefined) this.#clients.delete(unused[0]);
    this.#clients.set(name, client);
    return client;
  }

  /** The one that called last comes first. */
  #lastClients(): readonly (readonly [string, Tally])[] {
    return [...this.#clients].toSorted(([, one], [, other]) => (other.last[0]?.id ?? 0) - (one.last[0]?.id ?? 0));
  }

  #count(steps: readonly Step[], row: EndedRow, lane: Lane | undefined): void {
    for (const step of steps) {
      const { kind, name } = step;
      if (kind === "upstream") {
        // Behind the middleware of its entry, it has no name of its own.
        const own = lane ?? this.#lane(name);
        if (lane !== undefined || step.steps.length === 0) this.#countStep(own.upstream, step, row);
        this.#count(step.steps, row, own);
        continue;
      }
      if (kind === "router") this.#countStep(this.#router, step, row);
      else {
        const tallies = lane?.middleware ?? this.#chain;
        const tally = tallies.get(name);
        if (tally !== undefined) this.#countStep(tally, step, row);
        else for (const part of name.split(TOGETHER)) this.#countStep(added(tallies, part), step, row);
      }
      this.#count(step.steps, row, lane);
    }
  }

  #countStep(tally: Tally, { kind, request, result, error, startedAt, endedAt, steps }: Step, row: EndedRow): void {
    const [first] = steps;
    const last = steps.at(-1);
    tally.calls += 1;
    // An error counts where it began. A call that was cancelled has not failed.
    const isError = (error !== undefined && error !== last?.error) || (isFailed(result) && !isFailed(last?.result));
    const hasFailed = isError && row.status !== "cancelled";
    if (hasFailed) tally.errors += 1;
    // The time of a router alone is known only if those that it asked are steps.
    if (endedAt !== undefined && (kind !== "router" || first !== undefined)) {
      tally.time(endedAt - startedAt - timeIn(steps, endedAt));
    }
    if (kind === "upstream" || kind === "router") return tally.add(row);
    const hasAnswered = last === undefined && result !== undefined;
    if (hasAnswered) tally.answered += 1;
    const hasChanged =
      first !== undefined && (first.request !== request || (result !== undefined && last?.result !== result));
    if (hasChanged) tally.changed += 1;
    if (hasFailed || hasAnswered || hasChanged) tally.add(row);
  }

  #lane(name: string): Lane {
    let lane = this.#lanes.get(name);
    if (lane === undefined)
      this.#lanes.set(name, (lane = { upstream: new Tally(), middleware: new Map<string, Tally>() }));
    return lane;
  }
}

function added(tallies: Tallies, name: string): Tally {
  const tally = tallies.get(name) ?? new Tally();
  tallies.set(name, tally);
  return tally;
}

/** The median of times that are not sorted. */
function median(times: Float64Array): number | undefined {
  return times.toSorted()[Math.floor(times.length / 2)];
}

/** How long at least one of the steps ran. They are in the order in which they began. */
function timeIn(steps: readonly Step[], end: number): number {
  let ms = 0;
  let until = 0;
  for (const { startedAt, endedAt = end } of steps) {
    ms += Math.max(0, endedAt - Math.max(until, startedAt));
    until = Math.max(until, endedAt);
  }
  return ms;
}

/** How a step is called in which transforms act together. */
const TOGETHER = " + ";
/** The name of the step of an upstream without a name. */
const ONLY = "upstream";

type Changes = Pick<StepView, "request" | "result" | "note" | "error">;
const NONE: readonly ValueChange[] = [];
const NOTHING: Changes = { request: NONE, result: NONE };

function clientOf({ client, principal }: Pick<CallRow, "client" | "principal">): string {
  return client ?? principal ?? NOBODY;
}

function isFailed(result: Result | undefined): boolean {
  return result?.["isError"] === true;
}

function kindOf(middleware: ChainEntry["middleware"]): "transform" | "middleware" {
  const { layer } = middleware as LayeredMiddleware;
  return layer?.transform !== undefined && layer.middleware === undefined ? "transform" : "middleware";
}

/** The middleware of an upstream that is a gateway, as those are whose entry has `use`. */
function middlewareOf(upstream: unknown): readonly ChainEntry[] {
  return (upstream as { readonly middleware?: readonly ChainEntry[] } | undefined)?.middleware ?? [];
}

/** The steps at an upstream, outermost first. */
function laneSteps(steps: readonly StepView[], server: string): readonly StepView[] {
  return steps.flatMap((step) => {
    const isHere = step.kind === "upstream" && (step.name === server || step.name === ONLY);
    return isHere ? [step] : laneSteps(step.steps, server);
  });
}

function findStep(steps: readonly StepView[], kind: StepView["kind"], name: string): StepView | undefined {
  for (const step of steps) {
    const isMeant = step.kind === kind && step.name.split(TOGETHER).includes(name);
    const found = isMeant ? step : findStep(step.steps, kind, name);
    if (found !== undefined) return found;
  }
  return undefined;
}

// The steps of an observed call: what each transform, middleware and upstream got and returned, as references. Apart from
// observe.ts, which follows the call as a whole. A step records itself, since a call has many.

import { copyContext } from "../core/cancel.ts";
import type { Observer, Request, Result, StepKind, StepRecorder, WireObserver } from "../core/handler.ts";

/** A call in one part of a gateway: what it got, what it returned, and the steps that its own requests took. */
export interface Step {
  readonly kind: StepKind;
  /** Of the transform, middleware or upstream. Transforms that act on a list together are one step, named by all. */
  readonly name: string;
  readonly request: Request;
  readonly result?: Result | undefined;
  readonly error?: unknown;
  /** By the clock of `performance.now()`. */
  readonly startedAt: number;
  readonly endedAt?: number | undefined;
  readonly steps: readonly Step[];
}

/** So many steps of one middleware are recorded. One that sends a request again and again would fill the memory. */
const MAX_STEPS = 100;

export const NO_STEPS: Step[] = [];

/** Records the steps at one place of a call. */
export class Recorder implements StepRecorder {
  steps: Step[] = NO_STEPS;

  record(...[kind, name, request, context, handler]: Parameters<StepRecorder["record"]>): Promise<Result> | undefined {
    if (this.steps.length >= MAX_STEPS) return undefined;
    const step = new RecordedStep(kind, name, request, context.observer);
    if (this.steps === NO_STEPS) this.steps = [step];
    else this.steps.push(step);
    let running: Promise<Result>;
    try {
      running = handler(request, copyContext(context, { observer: step }));
    } catch (error) {
      running = Promise.reject(error);
    }
    return running.then(
      (result) => {
        step.result = result;
        step.end();
        if (kind === "router") this.#dropIfUnchanged(step);
        return result;
      },
      (error: unknown) => {
        step.error = error;
        step.end();
        if (kind === "router") this.#dropIfUnchanged(step);
        throw error;
      },
    );
  }

  /** A router that changes nothing is no step. Whether it does is known only when it has answered. */
  #dropIfUnchanged(step: RecordedStep): void {
    const [only, ...others] = step.steps;
    const isUnchanged = only?.request === step.request && only.result === step.result && others.length === 0;
    if (isUnchanged) this.steps = this.steps.map((kept) => (kept === step ? only : kept));
  }
}

/** One object is the step, what observes it, and what records the steps inside of it. */
class RecordedStep extends Recorder implements Step, Observer {
  readonly kind: StepKind;
  readonly name: string;
  readonly request: Request;
  readonly startedAt: number = performance.now();
  endedAt: number | undefined = undefined;
  result: Result | undefined = undefined;
  error: unknown = undefined;
  /** Until it ends: who keeps steps must not keep the whole call, and its connection, with them. */
  #outer: Observer | undefined;

  constructor(kind: StepKind, name: string, request: Request, outer: Observer | undefined) {
    super();
    this.kind = kind;
    this.name = name;
    this.request = request;
    this.#outer = outer;
  }

  get recorder(): StepRecorder {
    return this;
  }

  get wire(): WireObserver | undefined {
    return this.#outer?.wire;
  }

  end(): void {
    this.endedAt = performance.now();
    this.#outer = undefined;
  }

  routed(upstream: string | undefined, request: Request): void {
    this.#outer?.routed(upstream, request);
  }

  ran(run: string): void {
    this.#outer?.ran?.(run);
  }
}

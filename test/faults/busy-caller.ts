// A caller that makes call after call, several at a time. Some of them elicit, report progress, or run until they are
// released. The outcome of each call is recorded for evaluate-calls.ts.

import { setTimeout as after } from "node:timers/promises";
import { connect, type Client, type ConnectOptions, type Target } from "../../src/client/index.ts";
import { McpError } from "../../src/protocol/errors.ts";
import type { Random } from "./random.ts";

export interface CallerOptions {
  readonly name: string;
  /** Only callers of the same style may share a process of an upstream. */
  readonly style: "session" | "stateless";
  readonly revision: string;
  readonly transport: "stdio" | "http" | "legacy sse";
  /** Whether it can answer elicitations. */
  readonly elicits?: true;
  /** Whether one of its calls runs until its process is killed. */
  readonly holds?: true;
}

export interface RecordedCall {
  readonly caller: string;
  readonly style: string;
  readonly upstream: string;
  /** Identifies the call. */
  readonly text: string;
  readonly sentAt: number;
  answeredAt: number;
  /** When its caller answered the elicitation; 0 without one. */
  repliedAt: number;
  outcome: "result" | "error" | "open";
  /** The result, which is the process id and the text, or the error. */
  answer: string;
}

/** Concurrent calls of each caller. */
const CONCURRENCY = 3;
const PAUSE_MS = 40;
const WORK_MS = 60;
/** For a call that can be answered. */
const CALL_TIMEOUT_MS = 60_000;

export class BusyCaller {
  readonly options: CallerOptions;
  readonly calls: RecordedCall[] = [];
  readonly faults: string[] = [];
  readonly #upstreams: readonly string[];
  readonly #random: Random;
  readonly #elicited = new Set<string>();
  readonly #updates = new Map<string, number>();
  #client: Client | undefined;
  #isStopped = false;
  #workers: Promise<void>[] = [];
  #count = 0;

  constructor(options: CallerOptions, upstreams: readonly string[], random: Random) {
    this.options = options;
    this.#upstreams = upstreams;
    this.#random = random;
  }

  async open(target: Target, connectOptions: ConnectOptions): Promise<void> {
    const { revision, style, elicits } = this.options;
    const elicit: ConnectOptions["elicit"] = async ({ message }) => {
      if (!message.startsWith(`${this.options.name}-`))
        this.faults.push(`${this.options.name} received the elicitation ${message}`);
      // In a session a request may be cancelled and sent again, when the call it was assigned to is answered.
      const isRepeated = this.#elicited.has(message) && style === "stateless";
      if (isRepeated) this.faults.push(`${message} was elicited twice`);
      this.#elicited.add(message);
      await after(this.#random.next() * 20);
      const call = this.calls.find(({ text }) => text === message);
      if (call !== undefined) call.repliedAt = performance.now();
      return { action: "accept", content: { answer: message } };
    };
    this.#client = await connect(target, {
      ...connectOptions,
      revision,
      info: { name: style, version: "1" },
      ...(elicits && { elicit }),
    });
    const resourceSubscriptions = this.#upstreams.map((upstream) => `board://${upstream}`);
    const subscription = await this.#client.listen({ toolsListChanged: true, resourceSubscriptions }, (event) => {
      if (event.method !== "notifications/resources/updated") return;
      this.#updates.set(event.params.uri, (this.#updates.get(event.params.uri) ?? 0) + 1);
    });
    void subscription.ended.then(
      () => this.#onSubscriptionEnd("it ended"),
      (error: unknown) => this.#onSubscriptionEnd(String(error)),
    );
  }

  begin(): void {
    this.#workers = Array.from({ length: CONCURRENCY }, (_, worker) =>
      this.#work(worker === 0 && this.options.holds === true),
    );
  }

  /** Makes one call to each upstream, which must succeed. */
  async probe(): Promise<void> {
    await Promise.all(
      this.#upstreams.map(async (upstream) => {
        const call = await this.#call(upstream, { ms: 0, ...(this.options.elicits && { ask: true }) });
        if (call.outcome !== "result") this.faults.push(`${this.options.name}: the next call failed: ${call.answer}`);
      }),
    );
  }

  /** Checks that its subscription receives a change of each upstream. */
  async checkSubscription(timeoutMs: number): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    for (const upstream of this.#upstreams) {
      const before = this.#updates.get(`board://${upstream}`) ?? 0;
      await this.#mustCall(upstream, "write");
      while ((this.#updates.get(`board://${upstream}`) ?? 0) === before && performance.now() < deadline) await after(5);
      if (this.#updates.get(`board://${upstream}`) === before)
        this.faults.push(`${this.options.name} receives no updates of ${upstream}`);
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    let isDone = false;
    const done = Promise.all(this.#workers).then(() => {
      isDone = true;
    });
    const deadline = performance.now() + CALL_TIMEOUT_MS;
    while (!isDone && performance.now() < deadline) {
      if (this.options.holds === true)
        await Promise.all(this.#upstreams.map((upstream) => this.#mustCall(upstream, "release")));
      await Promise.race([done, after(50)]);
    }
    if (isDone) return;
    const unanswered = this.calls.filter(({ outcome, answeredAt }) => outcome === "open" && answeredAt === 0);
    this.faults.push(`${this.options.name} never got an answer for ${unanswered.map(({ text }) => text).join(", ")}`);
  }

  async close(): Promise<void> {
    await this.#client?.close();
  }

  async #work(holds: boolean): Promise<void> {
    const random = this.#random;
    while (!this.#isStopped) {
      const upstream = random.pick(this.#upstreams);
      if (holds) await this.#call(upstream, { hold: true });
      else if (random.percent(10)) await this.#read(upstream);
      else {
        await this.#call(upstream, {
          ms: random.percent(50) ? 0 : Math.floor(random.next() * WORK_MS),
          ...(random.percent(40) && { steps: 2 }),
          ...(this.options.elicits && random.percent(40) && { ask: true }),
        });
      }
      await after(random.next() * PAUSE_MS);
    }
  }

  /** A request that runs no tool. */
  async #read(upstream: string): Promise<void> {
    const client = this.#client as Client;
    try {
      const options = { timeoutMs: CALL_TIMEOUT_MS };
      await (this.#random.percent(50)
        ? client.listTools(options)
        : client.readResource(`board://${upstream}`, options));
    } catch (error) {
      if (!(error instanceof McpError)) this.faults.push(`${this.options.name} got no answer: ${String(error)}`);
    }
  }

  async #call(upstream: string, args: Readonly<Record<string, unknown>>): Promise<RecordedCall> {
    const { name, style } = this.options;
    const text = `${name}-${(this.#count += 1)}`;
    const call: RecordedCall = {
      caller: name,
      style,
      upstream,
      text,
      sentAt: performance.now(),
      answeredAt: 0,
      repliedAt: 0,
      outcome: "open",
      answer: "",
    };
    this.calls.push(call);
    const onProgress = ({ message }: { readonly message?: string }): void => {
      if (message !== undefined && message !== text) this.faults.push(`${text} received the progress of ${message}`);
      if (call.outcome !== "open") this.faults.push(`${text} received progress after its answer`);
    };
    try {
      call.answer = await this.#tool(
        upstream,
        "work",
        { text, ...args },
        args["steps"] === undefined ? {} : { onProgress },
      );
      call.outcome = "result";
    } catch (error) {
      call.answer = String(error);
      if (error instanceof McpError) call.outcome = "error";
    }
    call.answeredAt = performance.now();
    return call;
  }

  /** Nothing is killed any more, so the call must succeed. */
  async #mustCall(upstream: string, tool: string): Promise<void> {
    try {
      await this.#tool(upstream, tool, { text: this.options.name });
    } catch (error) {
      this.faults.push(`${this.options.name}: ${tool} at ${upstream} failed: ${String(error)}`);
    }
  }

  async #tool(upstream: string, tool: string, args: Record<string, unknown>, options: object = {}): Promise<string> {
    const name = this.#upstreams.length === 1 ? tool : `${upstream}_${tool}`;
    const timeoutMs = args["hold"] === true ? 0 : CALL_TIMEOUT_MS;
    const { content, isError } = await (this.#client as Client).callTool(name, args, { timeoutMs, ...options });
    const [block] = content as readonly { readonly text?: string }[];
    if (isError === true) throw new TypeError(`The tool failed: ${block?.text}`);
    return block?.text ?? "";
  }

  #onSubscriptionEnd(reason: string): void {
    if (!this.#isStopped) this.faults.push(`${this.options.name} lost its subscription: ${reason}`);
  }
}

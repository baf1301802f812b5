// Callers that never rest: each calls again and again, several calls at a time, some of which ask it something, report
// progress, or would never end by themselves. What became of each call is kept for the judge.

import { setTimeout as after } from "node:timers/promises";
import { connect, type Client, type ConnectOptions, type Target } from "../../src/client/index.ts";
import { McpError } from "../../src/protocol/errors.ts";
import type { Chance } from "./random.ts";

export interface Plan {
  readonly name: string;
  /** Callers of one style may share a process of an end, those of two never do. */
  readonly style: "session" | "stateless";
  readonly revision: string;
  readonly door: "stdio" | "http" | "sse";
  /** Whether it can be asked. */
  readonly asked?: true;
  /** Whether one of its calls stays until its process dies. */
  readonly holds?: true;
}

export interface Call {
  readonly caller: string;
  readonly style: string;
  readonly end: string;
  readonly text: string;
  readonly sentAt: number;
  answeredAt: number;
  /** When its caller replied to what it was asked; 0 where it was asked nothing. */
  repliedAt: number;
  outcome: "result" | "error" | "open";
  /** What the answer says: the process and the text, or the error. */
  words: string;
}

/** Calls at once, of each caller. */
const LANES = 3;
const PAUSE_MS = 40;
const WORK_MS = 60;
/** A call that is not answered by then, though it could be, never is. */
const PATIENCE_MS = 15_000;

export class BusyCaller {
  readonly plan: Plan;
  readonly calls: Call[] = [];
  readonly faults: string[] = [];
  readonly #ends: readonly string[];
  readonly #chance: Chance;
  readonly #asked = new Set<string>();
  readonly #heard = new Map<string, number>();
  #client: Client | undefined;
  #isStopped = false;
  #lanes: Promise<void>[] = [];
  #count = 0;

  constructor(plan: Plan, ends: readonly string[], chance: Chance) {
    this.plan = plan;
    this.#ends = ends;
    this.#chance = chance;
  }

  async open(target: Target, options: ConnectOptions): Promise<void> {
    const { revision, style, asked } = this.plan;
    const elicit: ConnectOptions["elicit"] = async ({ message }) => {
      if (!message.startsWith(`${this.plan.name}-`)) this.faults.push(`${this.plan.name} was asked ${message}`);
      // In a session a question may be taken back and come again, when the call that it was taken for is answered.
      const isAgain = this.#asked.has(message) && style === "stateless";
      if (isAgain) this.faults.push(`${message} was asked twice`);
      this.#asked.add(message);
      await after(this.#chance.next() * 20);
      const call = this.calls.find(({ text }) => text === message);
      if (call !== undefined) call.repliedAt = performance.now();
      return { action: "accept", content: { answer: message } };
    };
    this.#client = await connect(target, {
      ...options,
      revision,
      info: { name: style, version: "1" },
      ...(asked && { elicit }),
    });
    const resourceSubscriptions = this.#ends.map((end) => `board://${end}`);
    const listening = await this.#client.listen({ toolsListChanged: true, resourceSubscriptions }, (event) => {
      if (event.method !== "notifications/resources/updated") return;
      this.#heard.set(event.params.uri, (this.#heard.get(event.params.uri) ?? 0) + 1);
    });
    void listening.ended.then(
      () => this.#lost("over"),
      (error: unknown) => this.#lost(String(error)),
    );
  }

  begin(): void {
    this.#lanes = Array.from({ length: LANES }, (_, lane) => this.#work(lane === 0 && this.plan.holds === true));
  }

  /** One call to each end; whether each was answered with its result. */
  async probe(): Promise<void> {
    await Promise.all(
      this.#ends.map(async (end) => {
        const call = await this.#call(end, { ms: 0 });
        if (call.outcome !== "result") this.faults.push(`${this.plan.name}: the next call failed: ${call.words}`);
      }),
    );
  }

  /** Whether its listen hears of a change at each end. */
  async hears(patienceMs: number): Promise<void> {
    const until = performance.now() + patienceMs;
    for (const end of this.#ends) {
      const before = this.#heard.get(`board://${end}`) ?? 0;
      await this.#do(end, "write");
      while ((this.#heard.get(`board://${end}`) ?? 0) === before && performance.now() < until) await after(5);
      if (this.#heard.get(`board://${end}`) === before) this.faults.push(`${this.plan.name} hears nothing of ${end}`);
    }
  }

  async end(): Promise<void> {
    this.#isStopped = true;
    let isOver = false;
    const over = Promise.all(this.#lanes).then(() => {
      isOver = true;
    });
    const until = performance.now() + PATIENCE_MS;
    while (!isOver && performance.now() < until) {
      if (this.plan.holds === true) await Promise.all(this.#ends.map((end) => this.#do(end, "release")));
      await Promise.race([over, after(50)]);
    }
    if (isOver) return;
    const open = this.calls.filter(({ outcome, answeredAt }) => outcome === "open" && answeredAt === 0);
    this.faults.push(`${this.plan.name} waits for ever: ${open.map(({ text }) => text).join(", ")}`);
  }

  async close(): Promise<void> {
    await this.#client?.close();
  }

  async #work(holds: boolean): Promise<void> {
    const chance = this.#chance;
    while (!this.#isStopped) {
      const end = chance.pick(this.#ends);
      if (holds) await this.#call(end, { hold: true });
      else if (chance.percent(10)) await this.#look(end);
      else {
        await this.#call(end, {
          ms: chance.percent(50) ? 0 : Math.floor(chance.next() * WORK_MS),
          ...(chance.percent(40) && { steps: 2 }),
          ...(this.plan.asked && chance.percent(40) && { ask: true }),
        });
      }
      await after(chance.next() * PAUSE_MS);
    }
  }

  /** Something that runs nothing. */
  async #look(end: string): Promise<void> {
    const client = this.#client as Client;
    try {
      const options = { timeoutMs: PATIENCE_MS };
      await (this.#chance.percent(50) ? client.listTools(options) : client.readResource(`board://${end}`, options));
    } catch (error) {
      if (!(error instanceof McpError)) this.faults.push(`${this.plan.name} was not answered: ${String(error)}`);
    }
  }

  async #call(end: string, args: Readonly<Record<string, unknown>>): Promise<Call> {
    const { name, style } = this.plan;
    const text = `${name}-${(this.#count += 1)}`;
    const call: Call = {
      caller: name,
      style,
      end,
      text,
      sentAt: performance.now(),
      answeredAt: 0,
      repliedAt: 0,
      outcome: "open",
      words: "",
    };
    this.calls.push(call);
    const onProgress = ({ message }: { readonly message?: string }): void => {
      if (message !== undefined && message !== text) this.faults.push(`${text} heard of the progress of ${message}`);
      if (call.outcome !== "open") this.faults.push(`${text} heard of progress after its answer`);
    };
    try {
      call.words = await this.#tool(end, "work", { text, ...args }, args["steps"] === undefined ? {} : { onProgress });
      call.outcome = "result";
    } catch (error) {
      call.words = String(error);
      if (error instanceof McpError) call.outcome = "error";
    }
    call.answeredAt = performance.now();
    return call;
  }

  /** Nothing is killed any more: it must work. */
  async #do(end: string, tool: string): Promise<void> {
    try {
      await this.#tool(end, tool, { text: this.plan.name });
    } catch (error) {
      this.faults.push(`${this.plan.name}: ${tool} at ${end} failed: ${String(error)}`);
    }
  }

  async #tool(end: string, tool: string, args: Record<string, unknown>, options: object = {}): Promise<string> {
    const name = this.#ends.length === 1 ? tool : `${end}.${tool}`;
    const timeoutMs = args["hold"] === true ? 0 : PATIENCE_MS;
    const { content, isError } = await (this.#client as Client).callTool(name, args, { timeoutMs, ...options });
    const [block] = content as readonly { readonly text?: string }[];
    if (isError === true) throw new TypeError(`The tool failed: ${block?.text}`);
    return block?.text ?? "";
  }

  #lost(how: string): void {
    if (!this.#isStopped) this.faults.push(`${this.plan.name} lost its listen: ${how}`);
  }
}

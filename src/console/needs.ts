// What needs a person: servers that ask for a sign-in, definitions that `pin` holds, servers that fail or have no value for
// a variable, and questions that wait. The advice is that of `catenary doctor`, and of the errors themselves.

import type { UpstreamStatus } from "../chain/upstream/options.ts";
import { findMissingPrograms, type UpstreamEntry } from "../config/upstreams.ts";
import { ADVICE, adviceOnStart } from "../process/start-advice.ts";
import { withoutHint } from "../protocol/failed-evaluation.ts";
import type { HeldItems } from "./held-items.ts";
import type { ConsoleHost } from "./host.ts";
import type { Need, Question, ServerHealth } from "./types.ts";

/** How an upstream is, for a person. `isSigningIn`: a page waits for its user now. */
export function healthOf({ state, failing, needsSignIn }: UpstreamStatus, isSigningIn: boolean): ServerHealth {
  if (state === "incomplete") return "incomplete";
  if (needsSignIn === true || isSigningIn) return "sign-in";
  if (failing === true || state === "restarting" || state === "failed") return "failing";
  return state === "closed" ? "disabled" : state;
}

export interface NeedsOptions {
  readonly host: ConsoleHost;
  readonly held: HeldItems;
  /** All questions that wait: of calls of the console, and of calls of clients. */
  readonly questions: () => readonly Question[];
}

/** How often it is looked whether the program of a server that has not started is there. */
const LOOK_MS = 5_000;

export class Needs {
  readonly #options: NeedsOptions;
  /** The needs of servers whose program is missing, by server, and when that was looked up. */
  readonly #missing = new Map<string, { readonly need: Promise<Need | undefined>; readonly at: number }>();

  constructor(options: NeedsOptions) {
    this.#options = options;
  }

  /** What waits longest for a person comes first: sign-ins, then definitions, failures and questions. */
  async all(): Promise<readonly Need[]> {
    const { host, held, questions } = this.#options;
    const { gateway, config } = host.running;
    const statuses = Object.entries(gateway.status());
    const ofServers = await Promise.all(
      statuses.map(async ([name, status]) => {
        const entry = config.upstreams.get(name);
        return this.#ofServer(name, status, entry) ?? this.#ofMissingProgram(name, status, entry);
      }),
    );
    const [signIns, others] = [ofServers.filter(isSignIn), ofServers.filter((need) => !isSignIn(need))];
    return [
      ...(await Promise.all(signIns.map((need) => this.#withExpiry(need)))),
      ...(await held.needs()),
      ...others,
      ...questions().map(ofQuestion),
    ].filter((need) => need !== undefined);
  }

  #ofServer(server: string, status: UpstreamStatus, entry: UpstreamEntry | undefined): Need | undefined {
    const { state, problem, reason = problem, hint, unlisted } = status;
    const isSigningIn = this.#options.host.running.signIns.page(server) !== undefined;
    const health = healthOf(status, isSigningIn);
    const need = (kind: Need["kind"], text: string, advice?: string): Need => ({
      id: `${kind} ${server}`,
      kind,
      server,
      text,
      ...(advice !== undefined && { hint: advice }),
    });
    if (health === "sign-in") {
      const text = isSigningIn ? "Waits for you to sign in on the page that has opened" : "Asks for a sign-in";
      return need("sign-in", text, `the button opens its page; or run: catenary login ${server}`);
    }
    if (health === "incomplete") return need("incomplete", problem ?? "A variable in its entry is not set", CHECK);
    if (health === "failing") {
      const text = reason === undefined || hint === undefined ? (reason ?? "It fails") : withoutHint(reason, hint);
      return need("failing", text, hint ?? adviceOn(status, entry, server));
    }
    const lists =
      state === "running" && unlisted !== undefined ? `It runs, and its lists fail: ${unlisted}` : undefined;
    return lists === undefined ? undefined : need("failing", lists, doctor(server));
  }

  /** A server that starts with its first call, and cannot. */
  #ofMissingProgram(
    server: string,
    { state }: UpstreamStatus,
    entry: UpstreamEntry | undefined,
  ): Promise<Need | undefined> {
    const { programs, secrets } = entry ?? {};
    if (state !== "idle" || programs === undefined || secrets === undefined) return Promise.resolve(undefined);
    const known = this.#missing.get(server);
    const now = performance.now();
    if (known !== undefined && now - known.at < LOOK_MS) return known.need;
    const need = findMissingPrograms([{ programs, secrets }]).then(([problem]): Need | undefined => {
      if (problem === undefined) return undefined;
      const { message, hint = doctor(server) } = problem;
      return { id: `failing ${server}`, kind: "failing", server, text: message, hint };
    });
    this.#missing.set(server, { need, at: now });
    return need;
  }

  /** Says whether there was a sign-in before. */
  async #withExpiry(need: Need | undefined): Promise<Need | undefined> {
    const { host } = this.#options;
    const url = host.running.config.upstreams.get(need?.server ?? "")?.url;
    if (need === undefined || url === undefined || host.running.signIns.page(need.server ?? "") !== undefined)
      return need;
    const { hadSignIn } = await import("./stored-sign-in.ts");
    const hasTokens = await hadSignIn(url).catch(() => false);
    return hasTokens ? { ...need, text: "Its sign-in has expired" } : need;
  }
}

const CHECK = "set it where the gateway is started, or in the config; `catenary check` shows the line";

function isSignIn(need: Need | undefined): boolean {
  return need?.kind === "sign-in";
}

function doctor(server: string): string {
  return `\`catenary doctor ${server}\` checks it step by step`;
}

/** What to do about a failure whose error does not say it. */
function adviceOn({ kind, problem = "" }: UpstreamStatus, entry: UpstreamEntry | undefined, server: string): string {
  if (entry?.kind === "command" && (kind === "closed" || kind === undefined)) return adviceOnStart(problem);
  if (kind === "unauthorized") {
    return 'write its token in the entry: "headers": {"Authorization": "Bearer ${TOKEN}"}';
  }
  if (kind === "refused") return ADVICE.refused;
  if (kind === "http") return ADVICE.http;
  if (kind === "protocol") return ADVICE.protocol;
  return doctor(server);
}

function ofQuestion(question: Question): Need {
  const { id, server, client, call } = question;
  const asks = server === undefined ? "A server asks" : `${server} asks`;
  return {
    id: `question ${id}`,
    kind: "question",
    text: call === undefined ? `${asks} ${client ?? "its client"}, and waits for the answer there` : `${asks} you`,
    question,
    ...(server !== undefined && { server }),
  };
}

// A crowd of live sessions at one program, which is `catenary serve` with a config as people write it, spoken to over
// stdio. Each session counts its own evaluations, under a name that only it knows: an answer that is lost, comes twice
// or is another's shows at once. What the crowd cost, and whether anything is left running, is for whoever asked.

import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect, type Client } from "catenary";
import { withEnvironment, canListProcesses } from "../test/support/processes.ts";

const CLI = fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));
/** Inherited by all that the program starts. */
const MARK = "CATENARY_LOAD";
/** How long whoever watches over the guests may take to leave after the program. */
const LEAVE_MS = 10_000;

export interface CrowdOptions {
  readonly language: "js" | "lisp";
  readonly sessions: number;
  /** Of each session. */
  readonly evaluations: number;
  /** No more than this for all; then all is ended, and it fails. */
  readonly longestMs: number;
  /** Told of how far it is. */
  readonly tell: (text: string) => void;
}

export interface CrowdFigures {
  /** Answers that were not what they should be; the first few of them. */
  readonly wrong: readonly string[];
  readonly right: number;
  /** Processes of sessions at the end, where they can be counted. */
  readonly living: number;
  /** Until all sessions had answered once. */
  readonly startSeconds: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly longestMs: number;
  /** Of the program, without its sessions. */
  readonly peakMb: number;
  /** Processes that were still there afterwards. */
  readonly left: readonly number[];
}

const WORDS = {
  lisp: {
    begin: (name: string) => `(defvar *name* "${name}") (defvar *count* 0)`,
    count: '(format nil "~a ~a" *name* (incf *count*))',
    answer: (name: string, count: number) => `"${name} ${count}"`,
  },
  js: {
    begin: (name: string) => `const name = "${name}"; let count = 0`,
    count: "`${name} ${(count += 1)}`",
    answer: (name: string, count: number) => `'${name} ${count}'`,
  },
} as const;
const MOST_WRONG = 10;

export async function liveCrowd(options: CrowdOptions): Promise<CrowdFigures> {
  const { language, sessions } = options;
  const folder = mkdtempSync(join(tmpdir(), "catenary-load-"));
  const mark = randomUUID();
  try {
    const file = join(folder, "catenary.json");
    writeFileSync(file, JSON.stringify({ mcpServers: { [language]: { live: language, maxSessions: sessions } } }));
    const client = await connect({ command: process.execPath, args: [CLI, "serve", file], env: { [MARK]: mark } });
    const watch = setTimeout(() => void client.close(0), options.longestMs);
    try {
      const counted = await new Crowd(client, options).run();
      const living = canListProcesses ? withEnvironment(MARK, mark).length - 1 : Number.NaN;
      const peakMb = peakOf(client.program?.pid);
      await client.close();
      return { ...counted, living, peakMb, left: await leftOf(mark) };
    } finally {
      clearTimeout(watch);
      await client.close(0);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

type Counted = Omit<CrowdFigures, "living" | "peakMb" | "left">;

class Crowd {
  readonly #client: Client;
  readonly #options: CrowdOptions;
  readonly #wrong: string[] = [];
  readonly #times: number[] = [];
  #right = 0;

  constructor(client: Client, options: CrowdOptions) {
    this.#client = client;
    this.#options = options;
  }

  async run(): Promise<Counted> {
    const { language, sessions, evaluations, tell } = this.#options;
    const names = Array.from({ length: sessions }, () => randomUUID());
    const { begin } = WORDS[language];
    const begun = performance.now();
    let open = 0;
    const everyTenth = Math.ceil(sessions / 10);
    await Promise.all(
      names.map(async (name, session) => {
        await this.#evaluate(begin(name), session);
        open += 1;
        if (open % everyTenth === 0) tell(`${language}: ${open} of ${sessions} sessions are open`);
      }),
    );
    const startSeconds = (performance.now() - begun) / 1000;
    const pace = setInterval(
      () => tell(`${language}: ${this.#times.length} of ${sessions * evaluations} evaluations`),
      1_000,
    );
    const from = performance.now();
    try {
      await Promise.all(names.map((name, session) => this.#count(name, session)));
    } finally {
      clearInterval(pace);
    }
    const seconds = (performance.now() - from) / 1000;
    const sorted = this.#times.toSorted((a, b) => a - b);
    const at = (part: number): number => sorted[Math.floor(sorted.length * part)] ?? Number.NaN;
    return {
      wrong: this.#wrong,
      right: this.#right,
      startSeconds,
      perSecond: sorted.length / seconds,
      p50Ms: at(0.5),
      p99Ms: at(0.99),
      longestMs: sorted.at(-1) ?? Number.NaN,
    };
  }

  async #count(name: string, session: number): Promise<void> {
    const { count, answer } = WORDS[this.#options.language];
    for (let evaluation = 1; evaluation <= this.#options.evaluations; evaluation += 1) {
      const begun = performance.now();
      const [value] = await this.#evaluate(count, session);
      this.#times.push(performance.now() - begun);
      if (value === answer(name, evaluation)) this.#right += 1;
      else if (this.#wrong.length < MOST_WRONG) this.#wrong.push(`${value} is not ${answer(name, evaluation)}`);
    }
  }

  async #evaluate(code: string, session: number): Promise<readonly string[]> {
    const tool = `evaluate-${this.#options.language}`;
    const { structuredContent, content } = await this.#client.callTool(tool, { code, session: `s${session}` });
    const { status, values } = (structuredContent ?? {}) as { status?: string; values?: readonly string[] };
    if (status === "ok" && values !== undefined) return values;
    return [JSON.stringify(content)];
  }
}

/** The most memory that it ever held. */
function peakOf(pid: number | undefined): number {
  if (!canListProcesses || pid === undefined) return Number.NaN;
  const [, kb] = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kb) / 1024;
}

/** There is no event that says that all have gone. */
async function leftOf(mark: string): Promise<readonly number[]> {
  const until = performance.now() + LEAVE_MS;
  let left: readonly number[] = [];
  do {
    left = canListProcesses ? withEnvironment(MARK, mark) : [];
    if (left.length === 0) return left;
    await new Promise((resolve) => setTimeout(resolve, 50));
  } while (performance.now() < until);
  return left;
}

// Runs many live sessions in one `catenary serve` over stdio. Each session counts its own evaluations under a unique
// name, so that a lost, repeated or mixed-up result is noticed. Used by `npm run load` and by a test.

import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect, type Client } from "catenary";
import { withEnvironment, canListProcesses } from "../test/support/processes.ts";

const CLI = fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));
/** Inherited by all processes that the gateway starts. */
const MARK = "CATENARY_LOAD";
/** How long the processes may take to exit after the gateway was closed. */
const EXIT_TIMEOUT_MS = 10_000;

export interface LiveSessionsOptions {
  readonly language: "js" | "lisp";
  readonly sessions: number;
  /** The number in each session. */
  readonly evaluations: number;
  /** For the whole run, which fails then. */
  readonly timeoutMs: number;
  readonly onProgress: (line: string) => void;
}

export interface LiveSessionsFigures {
  /** The first few wrong results. */
  readonly wrong: readonly string[];
  readonly right: number;
  /** The number of processes of the sessions, or NaN where they cannot be counted. */
  readonly running: number;
  /** Until all sessions had answered once. */
  readonly startSeconds: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** Of the gateway, without its sessions. */
  readonly peakMb: number;
  /** Processes that still run after the gateway was closed. */
  readonly remaining: readonly number[];
}

const CODE = {
  lisp: {
    define: (name: string) => `(defvar *name* "${name}") (defvar *count* 0)`,
    count: '(format nil "~a ~a" *name* (incf *count*))',
    result: (name: string, count: number) => `"${name} ${count}"`,
  },
  js: {
    define: (name: string) => `const name = "${name}"; let count = 0`,
    count: "`${name} ${(count += 1)}`",
    result: (name: string, count: number) => `'${name} ${count}'`,
  },
} as const;
const MAX_WRONG = 10;

export async function runLiveSessions(options: LiveSessionsOptions): Promise<LiveSessionsFigures> {
  const { language, sessions } = options;
  const folder = mkdtempSync(join(tmpdir(), "catenary-load-"));
  const mark = randomUUID();
  try {
    const file = join(folder, "catenary.json");
    writeFileSync(file, JSON.stringify({ mcpServers: { [language]: { live: language, maxSessions: sessions } } }));
    const client = await connect({ command: process.execPath, args: [CLI, "serve", file], env: { [MARK]: mark } });
    const timer = setTimeout(() => void client.close(0), options.timeoutMs);
    try {
      const counted = await new EvaluationRun(client, options).run();
      const running = canListProcesses ? withEnvironment(MARK, mark).length - 1 : Number.NaN;
      const peakMb = readPeakMb(client.program?.pid);
      await client.close();
      return { ...counted, running, peakMb, remaining: await remainingProcesses(mark) };
    } finally {
      clearTimeout(timer);
      await client.close(0);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

class EvaluationRun {
  readonly #client: Client;
  readonly #options: LiveSessionsOptions;
  readonly #wrong: string[] = [];
  readonly #times: number[] = [];
  #right = 0;

  constructor(client: Client, options: LiveSessionsOptions) {
    this.#client = client;
    this.#options = options;
  }

  async run(): Promise<Omit<LiveSessionsFigures, "running" | "peakMb" | "remaining">> {
    const { language, sessions, evaluations, onProgress } = this.#options;
    const names = Array.from({ length: sessions }, () => randomUUID());
    const { define } = CODE[language];
    const startedAt = performance.now();
    let open = 0;
    const tenth = Math.ceil(sessions / 10);
    await Promise.all(
      names.map(async (name, session) => {
        await this.#evaluate(define(name), session);
        open += 1;
        if (open % tenth === 0) onProgress(`${language}: ${open} of ${sessions} sessions are open`);
      }),
    );
    const startSeconds = (performance.now() - startedAt) / 1000;
    const reporter = setInterval(
      () => onProgress(`${language}: ${this.#times.length} of ${sessions * evaluations} evaluations`),
      1_000,
    );
    const evaluatingSince = performance.now();
    try {
      await Promise.all(names.map((name, session) => this.#count(name, session)));
    } finally {
      clearInterval(reporter);
    }
    const seconds = (performance.now() - evaluatingSince) / 1000;
    const sorted = this.#times.toSorted((a, b) => a - b);
    const quantile = (part: number): number => sorted[Math.floor(sorted.length * part)] ?? Number.NaN;
    return {
      wrong: this.#wrong,
      right: this.#right,
      startSeconds,
      perSecond: sorted.length / seconds,
      p50Ms: quantile(0.5),
      p99Ms: quantile(0.99),
      maxMs: sorted.at(-1) ?? Number.NaN,
    };
  }

  async #count(name: string, session: number): Promise<void> {
    const { count, result } = CODE[this.#options.language];
    for (let evaluation = 1; evaluation <= this.#options.evaluations; evaluation += 1) {
      const startedAt = performance.now();
      const [value] = await this.#evaluate(count, session);
      this.#times.push(performance.now() - startedAt);
      if (value === result(name, evaluation)) this.#right += 1;
      else if (this.#wrong.length < MAX_WRONG) this.#wrong.push(`${value} is not ${result(name, evaluation)}`);
    }
  }

  async #evaluate(code: string, session: number): Promise<readonly string[]> {
    const tool = `evaluate-${this.#options.language}`;
    const { structuredContent, content } = await this.#client.callTool(tool, { code, session: `s${session}` });
    const { status } = (structuredContent ?? {}) as { status?: string };
    const [text] = content.map((block) => ("text" in block ? block.text : ""));
    return status === "ok" && text?.startsWith("=> ") === true
      ? text.slice(3).split("\n=> ")
      : [JSON.stringify(content)];
  }
}

/** The peak memory of a process. */
function readPeakMb(pid: number | undefined): number {
  if (!canListProcesses || pid === undefined) return Number.NaN;
  const [, kb] = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kb) / 1024;
}

/** Polls, because no event reports that all processes have exited. */
async function remainingProcesses(mark: string): Promise<readonly number[]> {
  const deadline = performance.now() + EXIT_TIMEOUT_MS;
  let remaining: readonly number[] = [];
  do {
    remaining = canListProcesses ? withEnvironment(MARK, mark) : [];
    if (remaining.length === 0) return remaining;
    await new Promise((resolve) => setTimeout(resolve, 50));
  } while (performance.now() < deadline);
  return remaining;
}

// What the host keeps of a session's evaluations: the texts that were too long for a result, and the transcript, which
// callers read as resources and the operator sees turn by turn. Both are bounded. Also cuts a long text to its head and
// tail.

import type { LiveEnd, LiveEvent, LivePlace, LiveTurn } from "../core/live-server.ts";
import { copyFirstChars, firstChars, lastChars } from "../core/text.ts";
import type { CutText, Evaluation, EvaluationRecord } from "./evaluation.ts";
import { KEPT_CHARS, type GuestText, type Limits } from "./runtime.ts";

/** How many long texts of a session are kept, and how many characters they may have together. */
const MAX_TEXTS = 20;
const MAX_CHARS = 2 * KEPT_CHARS;
/** How many evaluations the transcript has, and how many characters of the code and the result of each. */
const MAX_ENTRIES = 100;
const MAX_CODE_CHARS = 10_000;
const MAX_RESULT_CHARS = 40_000;
/** How many of the last evaluations are kept in parts too, if their text is not longer than that of the transcript. */
const MAX_RECORDS = 50;
/** How much of the output of an evaluation that runs is shown to someone who begins to look. */
const MAX_OUTPUT_CHARS = 20_000;
/** How much code is remembered to be run again. */
const MAX_JOURNAL_CHARS = 1_000_000;

/** Unique in this process, so that a gateway with several live servers finds the server that has the text. */
let lastNumber = 0;

/** An evaluation that has ended. */
interface Entry extends LiveTurn {
  readonly ended: LiveEnd;
}

/** What is known of an evaluation before it starts. */
type TurnStart = Pick<LiveTurn, "op" | "code" | "args" | "client">;

/** Gets what happens in the sessions of a server. `isFollowed` says whether anybody looks. */
export interface TurnListeners {
  readonly isFollowed: boolean;
  emit(event: LiveEvent): void;
}

/** A union without these fields in each of its members. */
type WithoutPlace<Event> = Event extends unknown ? Omit<Event, keyof LivePlace> : never;

/** Code to run again. Code that failed may have defined something before its error. */
export interface JournalEntry {
  readonly code: string;
  readonly failed?: boolean;
}

/** An evaluation whose texts are short enough for a result. */
export interface ShortenedEvaluation {
  readonly evaluation: EvaluationRecord;
  /** Undefined if nothing was cut. */
  readonly truncated: Evaluation["truncated"];
}

/** How code reads a text that was cut, for callers that have no other tool. */
interface OutputInCode {
  outputCall(number: number): string;
}

export class SessionLog {
  readonly #session: string;
  readonly #listeners: TurnListeners | undefined;
  readonly #owner: string;
  readonly #texts = new Map<number, string>();
  #entries: Entry[] = [];
  #turns = 0;
  /** The evaluations that run or wait, by their turn. */
  readonly #open = new Map<number, LiveTurn>();
  #chars = 0;
  #journal: JournalEntry[] = [];
  #journalChars = 0;
  /** How many processes the session has had. */
  process = 0;

  constructor(session: string, owner = "", listeners?: TurnListeners) {
    this.#session = session;
    this.#owner = owner;
    this.#listeners = listeners;
  }

  /** Undefined if there is no such text, or it is no longer kept. */
  text(number: number): string | undefined {
    return this.#texts.get(number);
  }

  /** Notes that an evaluation has arrived. Returns its turn. */
  begin({ code, ...rest }: TurnStart): number {
    this.#turns += 1;
    const { args: _args, ...short } = rest;
    const kept = code.length > MAX_CODE_CHARS ? short : rest;
    const turn = { turn: this.#turns, at: Date.now(), code: start(code, MAX_CODE_CHARS), ...kept };
    this.#open.set(this.#turns, turn);
    if (this.#listeners?.isFollowed === true) this.#emit({ type: "began", ...turn });
    return this.#turns;
  }

  printed(turn: number, text: string): void {
    if (this.#listeners?.isFollowed === true) this.#emit({ type: "output", turn, at: Date.now(), text });
  }

  /** Ends an evaluation that has not run, if this is one. It is not in the transcript. */
  refuse(turn: number, { content }: { readonly content: readonly object[] }): void {
    if (!this.#open.has(turn)) return;
    const text = content.map((block) => ("text" in block ? String(block.text) : "")).join("\n");
    this.#end(turn, "refused", text);
  }

  /** Adds an evaluation to the transcript. */
  end(turn: number, status: LiveEnd["status"], text: string, evaluation: EvaluationRecord): void {
    this.#end(turn, status, text, evaluation);
  }

  #end(turn: number, status: LiveEnd["status"], fullText: string, evaluation?: EvaluationRecord): void {
    const open = this.#open.get(turn);
    if (open === undefined) return;
    this.#open.delete(turn);
    const text = start(fullText, MAX_RESULT_CHARS);
    const isKept = evaluation !== undefined && text.length === fullText.length;
    const { process } = this;
    const ended = { status, text, ms: Date.now() - open.at, process, ...(isKept && { evaluation: { ...evaluation } }) };
    if (this.#listeners?.isFollowed === true) this.#emit({ type: "ended", turn, at: Date.now(), ...ended });
    if (evaluation === undefined) return;
    this.#entries.push({ ...open, ended });
    const old = this.#entries.at(-1 - MAX_RECORDS);
    if (old?.ended.evaluation !== undefined) {
      const { evaluation: _evaluation, ...rest } = old.ended;
      this.#entries[this.#entries.length - 1 - MAX_RECORDS] = { ...old, ended: rest };
    }
    // Cut now and then, and not with every evaluation.
    if (this.#entries.length >= 2 * MAX_ENTRIES) this.#entries = this.#entries.slice(-MAX_ENTRIES);
  }

  /** The evaluation that runs: the others wait for it. */
  get running(): LiveTurn | undefined {
    const [first] = this.#open.values();
    return first;
  }

  /** The last evaluations, and those that run. `output`: what the running one has printed. */
  turns(count: number, output: string): readonly LiveTurn[] {
    const ended = this.#entries.slice(Math.max(0, this.#entries.length - Math.min(count, MAX_ENTRIES)));
    const running = [...this.#open.values()].map((turn, at) =>
      at === 0 && output !== "" ? { ...turn, output: lastChars(output, MAX_OUTPUT_CHARS) } : turn,
    );
    return [...ended, ...running];
  }

  #emit(event: WithoutPlace<LiveEvent>): void {
    this.#listeners?.emit({ owner: this.#owner, session: this.#session, ...event });
  }

  /** The code that made the state of this process; undefined if that is too much. */
  get journal(): readonly JournalEntry[] | undefined {
    return this.#journalChars > MAX_JOURNAL_CHARS ? undefined : this.#journal;
  }

  /** Remembers code that has run, so that it can be run again in another process. */
  record(code: string, failed = false): void {
    this.#journalChars += code.length;
    if (this.#journalChars <= MAX_JOURNAL_CHARS) this.#journal.push(failed ? { code, failed } : { code });
  }

  forgetJournal(): void {
    this.#journal = [];
    this.#journalChars = 0;
  }

  /** The latest evaluations: their code, each line after `> `, and the text of their results. */
  transcript(): string {
    const entries = this.#entries
      .slice(-MAX_ENTRIES)
      .map(({ code, ended }) => `> ${code.replaceAll("\n", "\n> ")}\n${ended.text}\n`);
    return entries.join("\n");
  }

  /** Cuts the output and the values that are longer than the limits. `code`: the caller can read the whole only there. */
  shorten(evaluation: EvaluationRecord, limits: Limits, code?: OutputInCode): ShortenedEvaluation {
    const { stdout, stderr, values, truncated: totals } = evaluation;
    const { outputChars, valueChars } = limits;
    const isShort =
      stdout.length <= outputChars &&
      stderr.length <= outputChars &&
      totals.stdout === false &&
      totals.stderr === false &&
      values.every((value) => value.length <= valueChars);
    // The usual case copies nothing.
    if (isShort) return { evaluation, truncated: undefined };
    const truncated: { stdout?: CutText; stderr?: CutText; values?: CutText[] } = {};
    const output = (stream: "stdout" | "stderr"): string => {
      const total = totals[stream] === false ? evaluation[stream].length : totals[stream];
      const cut = this.#cut(evaluation[stream], outputChars, code, total);
      if (cut.whole !== undefined) truncated[stream] = cut.whole;
      return cut.text;
    };
    const shortened = values.map((value) => {
      const cut = this.#cut(value, valueChars, code);
      if (cut.whole !== undefined) (truncated.values ??= []).push(cut.whole);
      return cut.text;
    });
    return {
      evaluation: { ...evaluation, stdout: output("stdout"), stderr: output("stderr"), values: shortened },
      truncated,
    };
  }

  /** The text, or its head and tail if it is longer than `max`. */
  shortenText(text: string, max: number): string {
    return this.#cut(text, max).text;
  }

  /** A part of a long text, for clients that do not let a model read resources. */
  page(number: number, start: number, count: number): GuestText {
    const text = this.#texts.get(number);
    if (text === undefined) {
      const kept = this.#texts.size === 0 ? "none is kept" : `kept are ${[...this.#texts.keys()].join(", ")}`;
      return { text: `Session ${this.#session} has no long output ${number}; ${kept}`, isError: true };
    }
    const part = firstChars(text.slice(start), count);
    const end = start + part.length;
    const rest = end < text.length ? `; the next ones: start ${end}` : "";
    const where = `[Characters ${start} to ${end} of ${text.length}${rest}]`;
    return { text: `${part}${part === "" || part.endsWith("\n") ? "" : "\n"}${where}` };
  }

  /** `total` is the number of characters that were printed; not all of them may have been kept. */
  #cut(text: string, max: number, code?: OutputInCode, total = text.length): { text: string; whole?: CutText } {
    if (text.length <= max && total <= text.length) return { text };
    const number = this.#keep(text);
    const uri = `live://session/${this.#session}/output/${number}`;
    const head = endedAtLine(firstChars(text, Math.ceil(max / 2)));
    const tail = begunAtLine(lastChars(text, Math.min(Math.floor(max / 2), text.length - head.length)));
    const left = (total - head.length - tail.length).toLocaleString("en");
    const where = total > text.length ? `the first ${text.length.toLocaleString("en")} are` : "all are";
    const how =
      code === undefined
        ? `${where} in ${uri}; inspect {"output": ${number}, "start": ${head.length}} shows them`
        : `${where} the string that ${code.outputCall(number)} returns in code`;
    const gap = `[${left} of ${total.toLocaleString("en")} characters left out here; ${how}]`;
    const before = head.endsWith("\n") ? head : `${head}\n`;
    return { text: `${before}${gap}\n${tail}`, whole: { chars: total, uri } };
  }

  #keep(text: string): number {
    lastNumber += 1;
    this.#texts.set(lastNumber, text);
    this.#chars += text.length;
    for (const [number, oldest] of this.#texts) {
      if (this.#texts.size <= MAX_TEXTS && (this.#chars <= MAX_CHARS || number === lastNumber)) break;
      this.#texts.delete(number);
      this.#chars -= oldest.length;
    }
    return lastNumber;
  }
}

function start(text: string, max: number): string {
  return text.length <= max ? text : `${copyFirstChars(text, max)} ...`;
}

/** Drops the last line if it was cut and others are left. */
function endedAtLine(head: string): string {
  const at = head.lastIndexOf("\n") + 1;
  return at > head.length / 2 ? head.slice(0, at) : head;
}

function begunAtLine(tail: string): string {
  const at = tail.indexOf("\n") + 1;
  return at < tail.length / 2 ? tail.slice(at) : tail;
}

// The second thread of a guest, out of reach of the user's code: it has the channel to the host, makes of each request
// what the main thread can run, and of what came out an answer. What must work while the main thread is busy is done
// here. Where the channel ends, the whole process does, at once.

import { writeSync } from "node:fs";
import { Socket } from "node:net";
import { workerData, type MessagePort } from "node:worker_threads";
import { FrameReader, frame } from "../frames.ts";
import type { Condition, GuestEvaluation, GuestRequest, GuestText } from "../runtime.ts";
import { cellName, Conditions, unreadable } from "./conditions.ts";
import { MainThread } from "./main-thread.ts";
import type { Cell, Done, Job, ToController, ToMain } from "./messages.ts";
import { cut, SPARE } from "./print.ts";
import { reportOf, syntaxReport, type Report } from "./reports.ts";
import { rewrite } from "./rewrite.ts";
import { parse } from "./parse.ts";
import { typeGaps } from "./source-positions.ts";

interface Running {
  readonly request: GuestRequest;
  readonly cell: Cell | undefined;
  readonly since: number;
}

const HEALTHY_EVALUATION = { values: [], warnings: [], defined: [] } as const;

/** Those whose argument `code` is run. */
const RUN_CODE: ReadonlySet<string> = new Set(["eval", "profile-code", "heap-report"]);

const port = workerData as MessagePort;
const send = (message: ToMain): void => port.postMessage(message);
const conditions = new Conditions(new URL(".", import.meta.url).href);
const main = new MainThread(send);
let running: Running | undefined;
let lastError: Condition | undefined;
let cells = 0;

function end(): void {
  // The main thread may be busy: nothing less would end it.
  process.kill(process.pid, "SIGKILL");
}

const channel = new Socket({ fd: 3, readable: true, writable: true });
const reader = new FrameReader(
  (text) => {
    const request = JSON.parse(text) as GuestRequest;
    try {
      take(request);
    } catch (error) {
      running = undefined;
      write({ id: request.id, error: String(error) });
    }
  },
  () => Infinity,
);
channel.on("data", (chunk: Buffer) => {
  try {
    reader.push(chunk);
  } catch {
    end();
  }
});
channel.on("error", end);
channel.on("close", end);
channel.on("end", end);

function write(message: object): void {
  channel.write(frame(JSON.stringify(message)));
}

function take(request: GuestRequest): void {
  const { id, op } = request;
  switch (op) {
    case "ping":
      return write({ id, result: {} });
    case "interrupt":
      return interrupt(request);
    case "get-stack":
      return void stack(id);
    case "last-error":
      return write({ id, result: lastErrorText() });
    case "check-syntax":
      return write({ id, result: syntaxReport(String(request["code"])) });
    case "eval":
    case "profile-code":
    case "heap-report":
    case "list-variables":
    case "get-source":
      return begin(request);
    default:
      return write({ id, error: `A JavaScript session has no ${op}` });
  }
}

function begin(request: GuestRequest): void {
  const { id, op, printLength, printLevel, maxOutput, ...params } = request;
  const { code } = params as { readonly code?: unknown };
  const since = performance.now();
  let cell: Cell | undefined;
  if (typeof code === "string" && RUN_CODE.has(op)) {
    const name = cellName(++cells);
    try {
      cell = cellOf(code, name);
    } catch (error) {
      running = { request, cell: undefined, since };
      return finish(request, { condition: unreadable(error, code, name), realMs: 0, runMs: 0 });
    }
  }
  running = { request, cell, since };
  const printing = {
    printLength: (printLength as number | undefined) ?? 100,
    printLevel: (printLevel as number | undefined) ?? 10,
    maxOutput: (maxOutput as number | undefined) ?? 100_000,
  };
  const job: Job = { kind: "job", id, op, params, ...printing, ...(cell === undefined ? undefined : { cell }) };
  send(job);
}

/** Throws a SyntaxFault, and what becomes of the parser where code is nested too deeply. */
function cellOf(code: string, name: string): Cell {
  const parsed = parse(code);
  const { anchors, ...rewritten } = rewrite(parsed);
  conditions.moved(name, anchors, typeGaps(code, parsed.source));
  return { ...rewritten, name, importsTypeScript: /\.m?ts(?:[?#][^"'`]*)?["'`]/.test(code) };
}

interface Ended {
  readonly value?: string;
  readonly condition?: Condition;
  readonly isInterrupted?: boolean;
  readonly gone?: readonly string[];
  readonly realMs: number;
  readonly runMs?: number;
  readonly found?: unknown;
}

function finish(request: GuestRequest, ended: Ended): void {
  const cell = running?.cell;
  running = undefined;
  const { condition } = ended;
  if (condition !== undefined && ended.isInterrupted !== true) lastError = condition;
  const maxOutput = (request["maxOutput"] as number | undefined) ?? 100_000;
  // It has been cut already, by a thread in which the user's code may have broken what cuts.
  const most = maxOutput + 2 * SPARE;
  const value = ended.value === undefined ? undefined : cut(conditions.trimmed(ended.value), most);
  const result = request.op === "eval" ? evaluation(ended, cell, value) : text(request, ended, value);
  write({ id: request.id, result });
}

function evaluation({ condition, isInterrupted, ...ended }: Ended, cell: Cell | undefined, value?: string): object {
  const { realMs, runMs } = ended;
  const timing = { realMs, ...(runMs === undefined ? undefined : { runMs }) };
  // Of what failed, those that it came to.
  const there = (cell?.declared ?? []).filter(({ name }) => ended.gone?.includes(name) !== true);
  const defined = there.map(({ type, name }) => ({ type, name }));
  if (condition !== undefined) {
    const status = isInterrupted === true ? "interrupted" : "error";
    return { ...HEALTHY_EVALUATION, status, condition, defined, timing } satisfies GuestEvaluation;
  }
  return { ...HEALTHY_EVALUATION, status: "ok", values: value === undefined ? [] : [value], defined, timing };
}

function text({ op }: GuestRequest, ended: Ended, value?: string): object {
  if (ended.isInterrupted === true) return { status: "interrupted" };
  const { condition } = ended;
  if (condition !== undefined) return { text: conditionText(condition), isError: true } satisfies GuestText;
  return reportOf(op, { ...ended, value } as Report, (url) => conditions.isOwn(url));
}

function conditionText({ type, message, frames }: Condition): string {
  const head = `[ERROR] ${type}\n${message}`;
  if (frames.length === 0) return head;
  return `${head}\n\n[Backtrace]\n${frames.map((one) => `${one.number}: ${one.text}`).join("\n")}`;
}

function lastErrorText(): GuestText {
  if (lastError === undefined) return { text: "No error has happened in this session." };
  return { text: conditionText(lastError), data: { ...lastError } };
}

function interrupt({ id, target }: GuestRequest): void {
  const stopping = running;
  const isBusy = stopping !== undefined && (target === undefined || stopping.request.id === target);
  write({ id, result: { busy: isBusy } });
  if (isBusy) void stopRun(stopping);
}

async function stopRun(stopping: Running): Promise<void> {
  const { request, since } = stopping;
  const stopped = await main.stop(request.id, () => running !== stopping);
  // It may have answered in time; and what cannot be stopped is left to the host, which can end the process.
  if (stopped === undefined || running !== stopping) return;
  const message = stopped.wasIdle ? `It waited${waitedFor(stopped.resources)}, and was abandoned` : "It was stopped";
  const condition = { type: "Interrupted", message, restarts: [], frames: conditions.frames(stopped.frames) };
  finish(request, { condition, isInterrupted: true, realMs: performance.now() - since });
}

function waitedFor(resources: readonly string[]): string {
  const others = new Set(resources.filter((one) => !/^(?:MessagePort|PipeWrap)$/.test(one)));
  return others.size === 0 ? " for something that does not come" : ` (active: ${[...others].join(", ")})`;
}

async function stack(id: number): Promise<void> {
  const { here, frames } = await main.look();
  if (here !== undefined) {
    const about = running === undefined ? "Nothing is running." : `It waits${waitedFor(here.resources)}.`;
    return write({ id, result: { text: about, data: { frames: [] } } satisfies GuestText });
  }
  if (frames === undefined) {
    return write({
      id,
      result: { text: "It is in native code, and cannot be looked at there.", data: { frames: [] } },
    });
  }
  const users = conditions.frames(frames);
  const lines = users.map((one) => `${one.number}: ${one.text}`);
  write({ id, result: { text: lines.join("\n") || "It runs code of Node itself.", data: { frames: users } } });
}

function done(message: Done): void {
  // Of what was abandoned, nobody wants to know any more.
  if (running?.request.id !== message.id) return;
  const { thrown, ...ended } = message;
  const { request } = running;
  // Nothing of what cannot be compiled is there.
  if (thrown?.isUncompiled === true) running = { ...running, cell: undefined };
  try {
    finish(request, { ...ended, ...(thrown && { condition: conditions.of(thrown) }) });
  } catch (error) {
    write({ id: request.id, error: `What came out cannot be told: ${String(error)}` });
  }
}

port.on("message", (message: ToController) => {
  switch (message.kind) {
    case "ready":
      return write({ event: "ready", version: `Node.js ${process.version}` });
    case "done":
      return done(message);
    case "here":
      return main.heard(message.token, message);
    case "uncaught": {
      const said = `${conditions.trimmed(message.text)}\n`;
      if (running === undefined) return write({ event: "background", text: said });
      writeSync(2, said);
    }
  }
});

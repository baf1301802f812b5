// The second thread of a guest, which the user's code cannot reach. It owns the channel to the host, turns each request
// into a job for the main thread, and turns the outcome into a reply. Requests that must work while the main thread is
// busy are handled here. When the channel ends, the whole process ends at once.

import { writeSync } from "node:fs";
import { Socket } from "node:net";
import { workerData } from "node:worker_threads";
import {
  type CallableTool,
  type Condition,
  conditionText,
  type Frame,
  type GuestEvaluation,
  type GuestRequest,
  type GuestText,
} from "../runtime.ts";
import { frame, FrameReader } from "../frames.ts";
import { cellName, ConditionBuilder, parseCondition } from "./conditions.ts";
import { syntaxReport, type ToolOutcome, toolReport } from "./tool-texts.ts";
import { MainThread } from "./main-thread.ts";
import type { AnswerQueue, Cell, ControllerData, Done, PrintLimits, ToController, ToMainThread } from "./messages.ts";
import { findImports, parse } from "./parse.ts";
import { rewrite } from "./rewrite.ts";
import type { SessionTestResults } from "./session-tests.ts";
import { fromSession, namesTests, startTests, testsProblem } from "./test-run.ts";

interface RunningJob {
  /** Stops a run of tests, which is not in the main thread. */
  readonly stop?: () => void;
  readonly request: GuestRequest;
  readonly cell: Cell | undefined;
  readonly since: number;
}

type JobRequest = GuestRequest & Partial<PrintLimits>;

/** The limit of a request without one. */
const MAX_OUTPUT = 100_000;

/** Requests that run their argument `code`. */
const RUNS_CODE: ReadonlySet<string> = new Set(["eval", "profile-code", "heap-report", "evaluate-in-frame"]);

/** A request that comes sooner than this after the last reply comes from a program. */
const PROGRAM_GAP_MS = 20;
/** After so many of them in a row, variables are no longer captured at errors, which makes each evaluation faster. */
const MAX_PROGRAM_JOBS = 30;
/** They are captured again once the session has rested so long. */
const REST_MS = 250;

const NO_RESTARTS =
  "JavaScript has no restarts: an error ends the evaluation. evaluate-in-frame evaluates code with the variables of a " +
  "frame of the last error, and inspect shows a value by its handle.";

const { port, answers } = workerData as ControllerData;
const isOtherLanguage = answers !== undefined;
const send = (message: ToMainThread): void => port.postMessage(message);
const conditions = new ConditionBuilder(new URL(".", import.meta.url).href);
const mainThread = new MainThread(send);
let running: RunningJob | undefined;
/** How many calls of tools wait for their answers. */
let openCalls = 0;
let lastError: Condition | undefined;
/** Whether the main thread captures variables at errors. */
let isWatching = true;
let programJobs = 0;
let endedAt = 0;
const rest = setTimeout(() => {
  if (running === undefined) watch(true);
}, REST_MS);
let cells = 0;

function exit(): void {
  // The main thread may be busy, so only SIGKILL ends it.
  process.kill(process.pid, "SIGKILL");
}

const channel = new Socket({ fd: 3, readable: true, writable: true });
const reader = new FrameReader(
  (text) => {
    // The main thread reads it, so that it is parsed once.
    if (text.startsWith('{"call":')) {
      openCalls -= 1;
      return answers === undefined ? send({ kind: "called", json: text }) : wake(answers, text);
    }
    const request = JSON.parse(text) as GuestRequest;
    try {
      handle(request);
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
    exit();
  }
});
channel.on("error", exit);
channel.on("close", exit);
channel.on("end", exit);

/** Hands an answer to the main thread, which is blocked. */
function wake({ port: answerPort, signal }: AnswerQueue, json: string): void {
  const counter = new Int32Array(signal);
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- it is a port, not a window
  answerPort.postMessage(json);
  Atomics.add(counter, 0, 1);
  Atomics.notify(counter, 0);
}

function write(message: object): void {
  channel.write(frame(JSON.stringify(message)));
}

function handle(request: GuestRequest): void {
  const { id, op } = request;
  switch (op) {
    case "ping":
      return write({ id, result: {} });
    case "interrupt":
      return interrupt(request);
    case "set-tools":
      // The main thread reads its messages in order, so the next evaluation has the tools.
      send({ kind: "tools", tools: request["tools"] as readonly CallableTool[] });
      return write({ id, result: {} });
  }
  if (isOtherLanguage) return startJob(request);
  switch (op) {
    case "get-stack":
      return void getStack(id);
    case "last-error":
      return write({ id, result: lastErrorText() });
    case "check-syntax":
      return write({ id, result: syntaxReport(String(request["code"])) });
    case "list-restarts":
    case "take-restart":
      return write({ id, result: { text: NO_RESTARTS, isError: true } });
    case "close-error":
      send({ kind: "forget" });
      return write({ id, result: {} });
    case "evaluate-in-frame":
      return evaluateInFrame(request);
    case "run-tests":
      // If the session has tests of its own, they run in the main thread.
      return namesTests(request) ? void runTests(request) : startJob(request);
    case "complete":
    case "complete-argument":
    case "inspect":
    case "list-definitions":
    case "read-resource":
    case "eval":
    case "profile-code":
    case "heap-report":
    case "list-variables":
    case "get-source":
    case "reload":
      return startJob(request);
    default:
      return write({ id, error: `A JavaScript session has no tool ${op}` });
  }
}

function watch(isOn: boolean): void {
  programJobs = 0;
  if (isOn === isWatching || isOtherLanguage) return;
  isWatching = isOn;
  send({ kind: "watch", isOn });
}

/** Decides whether errors of the job are watched: not if programs send one after the other, nor for measurements. */
function pace({ op, captureTime, holdErrors }: GuestRequest, now: number): void {
  programJobs = now - endedAt < PROGRAM_GAP_MS ? programJobs + 1 : 0;
  const isMeasured = op === "profile-code" || op === "heap-report" || captureTime === true;
  if (isWatching && (programJobs >= MAX_PROGRAM_JOBS || isMeasured || holdErrors === false)) watch(false);
}

function evaluateInFrame(request: GuestRequest): void {
  const { id, frame: number } = request;
  const frames: readonly FrameWithLocals[] = lastError?.frames ?? [];
  const frame = frames.find((candidate) => candidate.number === number);
  const { captured } = frame ?? {};
  if (captured !== undefined) return startJob({ ...request, frame: captured });
  // Someone looks at errors, so the next one is captured, however soon it comes.
  if (frame !== undefined) watch(true);
  const text =
    lastError === undefined
      ? "There has been no error in this session."
      : frame === undefined
        ? `The last error has no frame ${String(number)}; its frames are 0 to ${frames.length - 1}.`
        : `The variables of frame ${String(number)} were not captured. Evaluate the code again to capture them.`;
  write({ id, result: { text, isError: true } });
}

async function runTests(request: GuestRequest): Promise<void> {
  const run = startTests(request);
  const job: RunningJob = { request, cell: undefined, since: performance.now(), stop: run.stop };
  running = job;
  let result: object;
  try {
    result = await run.reply;
  } catch (error) {
    result = { text: testsProblem(error), isError: true } satisfies GuestText;
  }
  if (running !== job) return;
  running = undefined;
  write({ id: request.id, result });
}

function startJob(request: GuestRequest): void {
  const { id, op, printLength = 100, printDepth = 10, outputChars = MAX_OUTPUT, ...params } = request as JobRequest;
  const { code } = params;
  const since = performance.now();
  pace(request, since);
  let cell: Cell | undefined;
  if (typeof code === "string" && !isOtherLanguage && RUNS_CODE.has(op)) {
    const name = cellName(++cells);
    try {
      cell = makeCell(code, name, op === "evaluate-in-frame");
    } catch (error) {
      running = { request, cell: undefined, since };
      return finish(request, { condition: parseCondition(error, code, name), realMs: 0, runMs: 0 });
    }
  }
  running = { request, cell, since };
  send({ kind: "job", id, op, params, printLength, printDepth, outputChars, ...(cell && { cell }) });
}

/** Throws a CodeSyntaxError, or a RangeError of the parser if the code is nested too deeply. */
function makeCell(code: string, name: string, inFrame: boolean): Cell {
  const parsed = parse(code);
  const { shifts, awaits: _awaits, ...rewritten } = rewrite(parsed, inFrame);
  conditions.addCell(name, { shifts, ...(parsed.typedColumn && { typedColumn: parsed.typedColumn }) });
  const imported = !inFrame && /\b(?:import|require)\b/.test(code) ? findImports(parsed.program) : [];
  return { ...rewritten, name, imported, importsTypeScript: /\.m?ts["'`?#]/.test(code) };
}

type JobOutcome = Omit<Done, "kind" | "id" | "thrown" | "runMs"> & {
  readonly runMs?: number;
  readonly condition?: Condition;
  readonly isInterrupted?: boolean;
};

function finish(request: GuestRequest, outcome: JobOutcome): void {
  const cell = running?.cell;
  running = undefined;
  openCalls = 0;
  endedAt = performance.now();
  if (!isWatching && request["holdErrors"] !== false) rest.refresh();
  const { condition, reply } = outcome;
  if (reply !== undefined) return write({ id: request.id, result: reply });
  const isEvaluation = request.op === "eval" || request.op === "evaluate-in-frame";
  // An error in a frame of the last error does not replace it.
  const isNew = request.op !== "evaluate-in-frame" && outcome.isInterrupted !== true;
  if (condition !== undefined && isNew) lastError = condition;
  const value = outcome.value === undefined ? undefined : conditions.trimFrames(outcome.value);
  const result = isEvaluation ? toEvaluation(outcome, cell, value) : toText(request, outcome, value);
  write({ id: request.id, result });
}

function toEvaluation(outcome: JobOutcome, cell: Cell | undefined, value: string | undefined): GuestEvaluation {
  const { condition, isInterrupted, undeclared = [], realMs, runMs, handle, note } = outcome;
  return {
    status: condition === undefined ? "ok" : isInterrupted === true ? "interrupted" : "error",
    values: condition !== undefined || value === undefined ? [] : [value],
    warnings: [],
    ...(handle === undefined ? undefined : { handles: [handle] }),
    ...(note === undefined ? undefined : { note }),
    ...(condition && { condition: { ...condition, frames: condition.frames.map(withoutCapture) } }),
    defined: (cell?.declared ?? [])
      .filter(({ name }) => !undeclared.includes(name))
      .map(({ type, name }) => ({ type, name })),
    timing: { realMs, ...(runMs === undefined ? undefined : { runMs }) },
  };
}

type FrameWithLocals = Frame & { readonly captured?: number };

/** The host need not know which of the captured frames it is. */
function withoutCapture({ captured: _captured, ...frame }: FrameWithLocals): Frame {
  return frame;
}

function toText({ op }: GuestRequest, outcome: JobOutcome, value?: string): object {
  if (outcome.isInterrupted === true) return { status: "interrupted" };
  const { condition } = outcome;
  if (condition !== undefined) return { text: conditionText(condition), isError: true } satisfies GuestText;
  if (op === "complete" || op === "complete-argument") return outcome.found as object;
  if (op === "run-tests") return fromSession(outcome.found as SessionTestResults, conditions);
  return toolReport(op, { ...outcome, value } as ToolOutcome, conditions);
}

function lastErrorText(): GuestText {
  if (lastError === undefined) return { text: "There has been no error in this session." };
  const frames = lastError.frames.map(withoutCapture);
  return { text: conditionText(lastError), data: { ...lastError, frames } };
}

function interrupt({ id, target }: GuestRequest): void {
  const job = running;
  // The host gives 0 if no request runs.
  if (job === undefined && (target === undefined || target === 0)) return void stopCallbacks(id);
  const isBusy = job !== undefined && (target === undefined || job.request.id === target);
  write({ id, result: { busy: isBusy } });
  if (!isBusy) return;
  if (job.stop === undefined) return void stopJob(job);
  running = undefined;
  job.stop();
  write({ id: job.request.id, result: { status: "interrupted" } });
}

/** Stops a callback, such as of a timer, that runs although its evaluation has ended. */
async function stopCallbacks(id: number): Promise<void> {
  const stopped = await mainThread.stop(undefined, () => running !== undefined);
  write({ id, result: { busy: stopped?.wasIdle === false } });
}

async function stopJob(job: RunningJob): Promise<void> {
  const { request, since } = job;
  const stopped = await mainThread.stop(request.id, () => running !== job);
  // The job may have finished in the meantime. If it cannot be stopped, the host ends the process.
  if (stopped === undefined || running !== job) return;
  const message = stopped.wasIdle
    ? `The evaluation was waiting ${waitText(stopped.resources)} and was abandoned`
    : "The evaluation was interrupted";
  const frames = stopped.ownFrames ?? conditions.frames(stopped.frames);
  const condition = { type: "Interrupted", message, restarts: [], frames };
  finish(request, { condition, isInterrupted: true, realMs: performance.now() - since });
}

function waitText(resources: readonly string[]): string {
  if (openCalls > 0) return openCalls === 1 ? "for a call of a tool" : `for ${openCalls} calls of tools`;
  const others = new Set(resources.filter((resource) => !/^(?:MessagePort|PipeWrap)$/.test(resource)));
  return others.size === 0 ? "for a promise that nothing resolves" : `(active: ${[...others].join(", ")})`;
}

async function getStack(id: number): Promise<void> {
  const { idle, frames } = await mainThread.inspect();
  const ownFrames = conditions.frames(frames ?? []);
  let text =
    ownFrames.map((frame) => `${frame.number}: ${frame.text}`).join("\n") || "Only Node's own code is running.";
  if (frames === undefined) text = "Native code is running, which has no stack to show.";
  if (idle !== undefined) text = `The evaluation is waiting ${waitText(idle.resources)}.`;
  if (idle !== undefined && running === undefined) text = "Nothing is running.";
  write({ id, result: { text, data: { frames: ownFrames } } satisfies GuestText });
}

function onDone(message: Done): void {
  // The outcome of an abandoned job is ignored.
  if (running?.request.id !== message.id) return;
  const { thrown, ...outcome } = message;
  const { request } = running;
  const hasNoTests = request.op === "run-tests" && thrown === undefined && outcome.found === undefined;
  if (hasNoTests && !isOtherLanguage) return void runTests(request);
  try {
    finish(request, { ...outcome, ...(thrown && { condition: conditions.fromThrown(thrown) }) });
  } catch (error) {
    write({ id: request.id, error: `The result could not be sent: ${String(error)}` });
  }
}

port.on("message", (message: ToController) => {
  switch (message.kind) {
    case "ready":
      return write({ event: "ready", version: message.version ?? `Node.js ${process.version}` });
    case "done":
      return onDone(message);
    case "idle":
      return mainThread.onIdle(message.token, message);
    case "message":
      if (message.json.startsWith('{"call":')) openCalls += 1;
      return void channel.write(frame(message.json));
    case "uncaught": {
      const text = `${conditions.trimFrames(message.text)}\n`;
      if (running === undefined) return write({ event: "background", text });
      writeSync(2, text);
    }
  }
});

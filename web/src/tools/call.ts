// The call that the page makes: started, followed, asked and answered, cancelled. It goes on while other pages are shown.

import { signal } from "@preact/signals";
import type { CallDetail, OperatorEvent, Question } from "../../../src/console/types.ts";
import { post, postEvents, reasonOf } from "../api.ts";
import { say } from "../state.ts";

/** What the server has said during the call. */
export interface CallMessage {
  readonly at: number;
  readonly kind: "progress" | "log" | "question" | "answered";
  readonly text: string;
  readonly data?: unknown;
}

export interface Call {
  /** Of the item: its kind, server and name. */
  readonly key: string;
  readonly method: string;
  readonly id?: string;
  readonly row?: number;
  readonly startedAt: number;
  readonly progress?: { readonly progress: number; readonly total?: number; readonly message?: string };
  readonly messages: readonly CallMessage[];
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: NonNullable<CallDetail["error"]>;
  /** How long it took, once it has ended. */
  readonly ms?: number;
}

/** The last call of each item. */
export const calls = signal<ReadonlyMap<string, Call>>(new Map());
/** The questions of the calls of this page, oldest first. */
export const asked = signal<readonly Question[]>([]);

const controllers = new Map<string, AbortController>();
const MAX_MESSAGES = 500;
/** How many items have their last call kept. */
const MAX_CALLS = 50;

function update(key: string, change: (call: Call) => Call): void {
  const call = calls.peek().get(key);
  if (call === undefined) return;
  const changed = change(call);
  const others = [...calls.peek()].filter(([other]) => other !== key).slice(-MAX_CALLS);
  calls.value = new Map([...others, [key, changed]]);
}

export function isRunning(call: Call | undefined): boolean {
  return call !== undefined && call.ms === undefined;
}

/** Makes the call and follows it to its end. The one before of the same item ends. */
export async function startCall(key: string, method: string, params: object): Promise<void> {
  controllers.get(key)?.abort();
  const controller = new AbortController();
  controllers.set(key, controller);
  const startedAt = Date.now();
  calls.value = new Map([...calls.peek(), [key, { key, method, startedAt, messages: [] }]]);
  const isCurrent = (): boolean => controllers.get(key) === controller;
  const end = (error: Call["error"]): void =>
    update(key, (call) =>
      call.ms === undefined ? { ...call, ms: Date.now() - startedAt, ...(error && { error }) } : call,
    );
  try {
    const onEvent = (_name: string, data: unknown): void => {
      if (isCurrent()) onOperatorEvent(key, data as OperatorEvent);
    };
    await postEvents("call", { method, params }, onEvent, controller.signal);
    if (isCurrent()) end({ message: "The connection to the gateway was lost during the call." });
  } catch (error) {
    if (isCurrent()) end({ message: reasonOf(error) });
  } finally {
    if (isCurrent()) controllers.delete(key);
  }
}

function onOperatorEvent(key: string, event: OperatorEvent): void {
  const message = (kind: CallMessage["kind"], text: string, data?: unknown): void =>
    update(key, (call) => {
      const entry = { at: Date.now(), kind, text, ...(data !== undefined && { data }) };
      return { ...call, messages: [...call.messages, entry].slice(-MAX_MESSAGES) };
    });
  switch (event.type) {
    case "started":
      return update(key, (call) => ({ ...call, id: event.call }));
    case "row":
      return update(key, (call) => ({ ...call, row: event.row }));
    case "progress": {
      const { type: _type, ...progress } = event;
      update(key, (call) => ({ ...call, progress }));
      return message("progress", progressText(progress));
    }
    case "log":
      return message("log", event.level, event.data);
    case "question":
      asked.value = [...asked.peek(), event.question];
      return message("question", textOf(event.question.params["message"]) ?? event.question.method);
    case "answered":
      asked.value = asked.peek().filter(({ id }) => id !== event.question);
      return message("answered", "answered");
    case "ended": {
      const { result, error, ms } = event;
      update(key, (call) => ({ ...call, ms, ...(result && { result }), ...(error && { error }) }));
    }
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** `2 of 3: checking labels`. */
export function progressText({ progress, total, message }: NonNullable<Call["progress"]>): string {
  const amount = total === undefined ? String(progress) : `${progress} of ${total}`;
  return message === undefined || message === "" ? amount : `${amount}: ${message}`;
}

export async function cancelCall(key: string): Promise<void> {
  const id = calls.peek().get(key)?.id;
  try {
    if (id === undefined) controllers.get(key)?.abort();
    else await post("cancel", { call: id });
  } catch (error) {
    say(reasonOf(error), true);
  }
}

export async function answer(
  question: Question,
  action: "accept" | "decline" | "cancel",
  content?: object,
): Promise<void> {
  try {
    await post("answer", { question: question.id, action, ...(content && { content }) });
  } catch (error) {
    asked.value = asked.peek().filter(({ id }) => id !== question.id);
    say(reasonOf(error), true);
  }
}

/** Calls without a trace on the page, for what a field proposes. Undefined if it fails. */
export async function ask(method: string, params: object): Promise<Readonly<Record<string, unknown>> | undefined> {
  let result: Readonly<Record<string, unknown>> | undefined;
  await postEvents("call", { method, params }, (_name, data) => {
    const event = data as OperatorEvent;
    if (event.type === "ended") result = event.result;
  });
  return result;
}

// The feed: one stream of events for all that the page shows now. Pages add the topics that they need, and the stream is
// opened again with them. A lost stream is opened again after a pause that grows to ten seconds.

import { signal } from "@preact/signals";
import type { FeedEvents, FeedTopic } from "../../src/console/types.ts";
import { ApiFailure, events, isSignedOut } from "./api.ts";

/** `lost`: the page tries again by itself. */
export const connection = signal<"connecting" | "open" | "lost">("connecting");

interface Subscriber {
  readonly topic: FeedTopic;
  /** Parameters of the stream that the topic needs, such as the session whose transcript is shown. */
  readonly params: Readonly<Record<string, string>>;
  readonly onData: (data: never) => void;
  readonly onOpen: (() => void) | undefined;
}

const subscribers = new Set<Subscriber>();
let stream: AbortController | undefined;
let isStarted = false;
let failures = 0;
let timer: ReturnType<typeof setTimeout> | undefined;

/**
 * Calls back with the data of each event of a topic. `onOpen` is called whenever the stream is open anew: read then what
 * you may have missed. Returns a function that stops it.
 */
export function follow<T extends FeedTopic>(
  topic: T,
  onData: (data: FeedEvents[T]) => void,
  onOpen?: () => void,
  params: Readonly<Record<string, string>> = {},
): () => void {
  const subscriber: Subscriber = { topic, params, onData, onOpen };
  const isNew = !isCovered(subscriber);
  subscribers.add(subscriber);
  if (isNew) reopenSoon();
  else if (connection.peek() === "open") onOpen?.();
  return () => {
    subscribers.delete(subscriber);
    if (!isCovered(subscriber)) reopenSoon();
  };
}

export function startFeed(): void {
  isStarted = true;
  reopenSoon();
  // After a sleep of the machine, or on another network, there is no reason to wait.
  addEventListener("online", retryNow);
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible" && connection.peek() === "lost") retryNow();
  });
}

/** Tries at once to open a stream that was lost. */
export function retryNow(): void {
  failures = 0;
  reopenSoon();
}

function isCovered({ topic, params }: Subscriber): boolean {
  const wanted = JSON.stringify(params);
  return [...subscribers].some((other) => other.topic === topic && JSON.stringify(other.params) === wanted);
}

/** Opens the stream with the topics of now, once for all changes of this moment. */
function reopenSoon(delayMs = 0): void {
  if (!isStarted) return;
  clearTimeout(timer);
  timer = setTimeout(() => void open(), delayMs);
}

async function open(): Promise<void> {
  stream?.abort();
  if (subscribers.size === 0) return;
  const own = new AbortController();
  stream = own;
  const query: Record<string, string> = {
    topics: [...new Set([...subscribers].map(({ topic }) => topic))].join(","),
  };
  for (const { params } of subscribers) for (const [name, value] of Object.entries(params)) query[name] = value;
  let isOpen = false;
  const onOpen = (): void => {
    if (isOpen) return;
    isOpen = true;
    failures = 0;
    connection.value = "open";
    for (const subscriber of subscribers) subscriber.onOpen?.();
  };
  try {
    await events("events", query, (event, data) => dispatch(event, data), own.signal, onOpen);
  } catch (error) {
    if (own.signal.aborted) return;
    if (error instanceof ApiFailure && error.status === 401) return waitForSignIn();
  }
  if (own.signal.aborted) return;
  connection.value = "lost";
  failures += 1;
  reopenSoon(Math.min(10_000, 250 * 2 ** failures));
}

/** Another tab may sign in, or this one by a new link, which reloads the page. */
function waitForSignIn(): void {
  const stop = isSignedOut.subscribe((value) => {
    if (value) return;
    queueMicrotask(() => stop());
    reopenSoon();
  });
}

function dispatch(event: string, data: unknown): void {
  for (const subscriber of subscribers) if (subscriber.topic === event) subscriber.onData(data as never);
}

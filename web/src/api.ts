// Requests to the console's API: documents, actions and streams of events, over fetch. Every path is relative to the
// page, so that it works behind a proxy with a path prefix.

import { signal } from "@preact/signals";

/** The API refused a request. */
export class ApiFailure extends Error {
  /** The HTTP status; 0 if nothing answered. */
  readonly status: number;
  /** What to do. */
  readonly hint: string | undefined;

  constructor(status: number, message: string, hint?: string) {
    super(message);
    this.name = "ApiFailure";
    this.status = status;
    this.hint = hint;
  }
}

/** Whether the page has no valid cookie. */
export const isSignedOut = signal(false);

/** Why a request failed, in one sentence with the hint. */
export function reasonOf(error: unknown): string {
  if (error instanceof ApiFailure && error.hint !== undefined) return `${error.message}; ${error.hint}`;
  return error instanceof Error ? error.message : String(error);
}

/** Whether the address is a link of the terminal. */
export function hasToken(): boolean {
  const token = location.hash.slice(1);
  return token !== "" && !token.startsWith("/");
}

/** Exchanges a token in the address for a cookie, and removes it from the address and from the history. */
export async function signIn(): Promise<void> {
  if (!hasToken()) return;
  const token = location.hash.slice(1);
  history.replaceState(null, "", "#/home");
  try {
    await post("login", { token });
  } catch {
    // The token was used or is too old, and there may be a cookie already: the first request tells.
  }
}

type Query = Readonly<Record<string, string | number | undefined>>;

/** Reads a document. */
export async function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  const response = await send(urlOf(path, query), { headers: { accept: "application/json" }, ...withSignal(signal) });
  return (await response.json()) as T;
}

/** Does one of the actions of the API. Resolves to its answer, if it has one. */
export async function post<T>(path: string, body: object = {}, signal?: AbortSignal): Promise<T> {
  const response = await send(`api/${path}`, postOf(body, signal));
  const text = await response.text();
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

/** Called with each event of a stream: its name, and its data. */
export type OnEvent = (event: string, data: unknown) => void;

/** Reads a stream of events until it ends or the signal aborts. `onOpen` is called when the API has accepted it. */
export async function events(
  path: string,
  query: Query,
  onEvent: OnEvent,
  signal: AbortSignal,
  onOpen?: () => void,
): Promise<void> {
  const response = await send(urlOf(path, query), { headers: { accept: "text/event-stream" }, signal });
  onOpen?.();
  await readEvents(response, onEvent);
}

/** Does an action that streams events, such as `call`, until the stream ends. */
export async function postEvents(path: string, body: object, onEvent: OnEvent, signal?: AbortSignal): Promise<void> {
  await readEvents(await send(`api/${path}`, postOf(body, signal)), onEvent);
}

/** The part of a path that names a thing. */
export function segment(name: string | number): string {
  return encodeURIComponent(name);
}

function urlOf(path: string, query: Query): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) params.set(name, String(value));
  return `api/${path}${params.size === 0 ? "" : `?${params}`}`;
}

function withSignal(signal: AbortSignal | undefined): RequestInit {
  return signal === undefined ? {} : { signal };
}

function postOf(body: object, signal: AbortSignal | undefined): RequestInit {
  const headers = { "content-type": "application/json" };
  return { method: "POST", headers, body: JSON.stringify(body), ...withSignal(signal) };
}

async function send(url: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(url, { credentials: "same-origin", cache: "no-store", ...init });
  } catch (error) {
    if (init.signal?.aborted === true) throw error;
    throw new ApiFailure(0, "The gateway does not answer", "is it still running?");
  }
  if (response.ok) {
    isSignedOut.value = false;
    return response;
  }
  if (response.status === 401) isSignedOut.value = true;
  throw await failureOf(response);
}

async function failureOf(response: Response): Promise<ApiFailure> {
  const plain = `The gateway answered ${response.status}`;
  try {
    const body = (await response.json()) as { error?: string | { message?: string; hint?: string }; hint?: string };
    const { error } = body;
    const message = typeof error === "string" ? error : error?.message;
    const hint = body.hint ?? (typeof error === "object" ? error.hint : undefined);
    return new ApiFailure(response.status, message ?? plain, hint);
  } catch {
    return new ApiFailure(response.status, plain);
  }
}

async function readEvents(response: Response, onEvent: OnEvent): Promise<void> {
  if (response.body === null) return;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let pending = "";
  let event = "message";
  let data = "";
  const onLine = (line: string): void => {
    if (line === "") {
      if (data !== "") onEvent(event, JSON.parse(data));
      event = "message";
      data = "";
    } else if (line.startsWith("event:")) event = line.slice(6).trim();
    else if (line.startsWith("data:")) data += line.slice(5);
  };
  for (;;) {
    // Parts of a stream come one after the other.
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (pending + decoder.decode(value, { stream: true })).split("\n");
    pending = lines.pop() ?? "";
    for (const line of lines) onLine(line.endsWith("\r") ? line.slice(0, -1) : line);
  }
}

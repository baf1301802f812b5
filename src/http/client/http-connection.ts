// The way to one end over HTTP, as far as it is the same in every style: its address, the headers that go with each
// request, and the proof of who we are. A refusal for want of that proof is taken to the authorizer, and the request
// is sent again for as long as the authorizer thinks that worth while. What is sent and what it means is not known here.

import type { Authorizer, OutgoingRequest } from "../../core/authentication.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Limits } from "../../jsonrpc/codec.ts";
import type { HttpResponse, Requester } from "./requester.ts";

export interface HttpConnectionOptions {
  readonly url: URL;
  readonly requester: Requester;
  readonly auth?: Authorizer | undefined;
  /** With every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly limits: Limits;
}

export interface Asking {
  readonly method: "GET" | "POST" | "DELETE";
  /** Another address of the same end. */
  readonly url?: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
  /** Told when the authorizer is at work, and when it is done. */
  readonly onWait?: ((isWaiting: boolean) => void) | undefined;
  /** Not worth that anybody signs in for it. */
  readonly isParting?: boolean;
}

/** Refusals after which a request is given up, whatever the authorizer thinks. */
const MOST_REFUSALS = 8;

export class HttpConnection {
  readonly url: URL;
  readonly limits: Limits;
  readonly #options: HttpConnectionOptions;
  readonly #fixed: Readonly<Record<string, string>>;

  constructor(options: HttpConnectionOptions) {
    this.#options = options;
    this.url = options.url;
    this.limits = options.limits;
    const given = Object.entries(options.headers ?? {});
    // Some ends, and what stands before them, turn away who does not say what it is.
    this.#fixed = {
      "user-agent": "catenary",
      ...Object.fromEntries(given.map(([name, value]) => [name.toLowerCase(), value])),
    };
  }

  /** Rejects with a ConnectionError. Any answer that is no refusal of who we are is an answer. */
  async ask({ method, url = this.url, headers, body, signal, onWait, isParting = false }: Asking): Promise<HttpResponse> {
    const { auth, requester } = this.#options;
    const sending: OutgoingRequest = { method, url, signal };
    for (let attempt = 1; ; attempt += 1) {
      const sent = auth === undefined ? {} : await waiting(onWait, auth.authorize(sending));
      const answer = await requester({
        method,
        url,
        headers: { ...this.#fixed, ...headers, ...sent },
        signal,
        ...(body === undefined ? undefined : { body }),
      });
      const { status } = answer;
      const secrets = status < 400 ? [] : secretsIn({ ...this.#fixed, ...sent });
      if (status !== 401 && status !== 403) {
        auth?.answered?.(sending, answer.headers);
        return secrets.length === 0 ? answer : blotted(answer, secrets);
      }
      const challenge = { ...sending, status, headers: answer.headers, sent, attempt } as const;
      const again =
        attempt < MOST_REFUSALS &&
        auth !== undefined &&
        !isParting &&
        (await waiting(onWait, auth.refused(challenge)).catch(discarding(answer)));
      if (!again) throw await refusal(url, blotted(answer, secrets), auth !== undefined);
      answer.discard();
    }
  }

  close(): void {
    this.#options.requester.close();
  }
}

async function waiting<T>(onWait: Asking["onWait"], work: Promise<T>): Promise<T> {
  onWait?.(true);
  try {
    return await work;
  } finally {
    onWait?.(false);
  }
}

function discarding(answer: HttpResponse): (error: unknown) => never {
  return (error) => {
    answer.discard();
    throw error;
  };
}

/** Headers of ours that are the same for everybody. */
const PLAIN: ReadonlySet<string> = new Set(["user-agent", "accept", "content-type"]);
/** What is shorter is no secret, and may be a part of any text. */
const LEAST_SECRET = 6;

/** Whatever stands in the headers that prove who we are, with and without the name of its scheme. */
function secretsIn(headers: Readonly<Record<string, string>>): string[] {
  return Object.entries(headers)
    .filter(([name]) => !PLAIN.has(name))
    .flatMap(([, value]) => [value, ...value.split(/\s+/)])
    .filter((text) => text.length >= LEAST_SECRET)
    .toSorted((a, b) => b.length - a.length);
}

/** An end may say back to us what we showed to it; it is not shown to anybody else. */
function blotted(answer: HttpResponse, secrets: readonly string[]): HttpResponse {
  const { status, headers, body } = answer;
  const text = async (limit: number): Promise<string> =>
    secrets.reduce((said, secret) => said.replaceAll(secret, "..."), await answer.text(limit));
  const read: HttpResponse["read"] = (limit, make) => answer.read(limit, make);
  return { status, headers, body, text, read, discard: () => answer.discard() };
}

const QUOTED_BYTES = 64 * 1024;

async function refusal(url: URL, answer: HttpResponse, tried: boolean): Promise<ConnectionError> {
  const { status } = answer;
  const said = quote(await answer.text(QUOTED_BYTES).catch(() => ""));
  const advice = tried
    ? "what we showed was not accepted"
    : status === 401
      ? "bring a token or let a person sign in: `auth`, or a header"
      : "who we are, or where we come from, may not call it";
  return new ConnectionError("unauthorized", `${url.origin}${url.pathname} refused us (${status}${said}): ${advice}`, {
    mayHaveRun: false,
    status,
  });
}

const QUOTED_LENGTH = 200;

/** The beginning of what an answer says, for people: on one line, without markup. */
export function quote(text: string): string {
  const plain = text
    .replaceAll(/<(style|script)[\s\S]*?<\/\1>|<[^>]*>/gi, " ")
    // What was sent to us may try to write on somebody's terminal.
    .replaceAll(/[\s\p{Cc}]+/gu, " ")
    .trim();
  if (plain === "") return "";
  return `, ${plain.length > QUOTED_LENGTH ? `${plain.slice(0, QUOTED_LENGTH)}...` : plain}`;
}

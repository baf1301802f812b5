// The way to addresses that others told us: an end's metadata, an authorization server's, its endpoints. All requests
// of this room go through here, so here it is held that they go by https (by http on this machine, and only for an
// end on this machine), that a credential is never sent after a redirect, and that no answer is endless. Which
// addresses may be reached at all is the guarded fetch's matter.

import * as oauth from "oauth4webapi";
import { isLoopback } from "../../http/server/guard.ts";
import { unauthorized } from "./failures.ts";

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export interface ReachOptions {
  /** The end that all this is done for. */
  readonly end: URL;
  readonly fetch: Fetch;
}

/** A metadata document has some thousand bytes, an answer with tokens rarely more. */
const MOST_BYTES = 1024 * 1024;
const MOST_REDIRECTS = 3;
const PATIENCE_MS = 30_000;

export class Reach {
  readonly #fetch: Fetch;
  readonly #plainAllowed: boolean;

  constructor({ end, fetch }: ReachOptions) {
    this.#fetch = fetch;
    this.#plainAllowed = end.protocol === "http:" && isLoopback(end.hostname);
  }

  /** For every function of oauth4webapi that makes a request. Without a signal nothing but time stops them. */
  options(signal: AbortSignal | undefined, key?: oauth.DPoPHandle): oauth.TokenEndpointRequestOptions {
    return {
      signal: () => patient(signal),
      [oauth.customFetch]: (url, init) => this.#ask(new URL(url), init),
      // Marked as deprecated so that it stands out; `allows` says when.
      // oxlint-disable-next-line typescript/no-deprecated
      [oauth.allowInsecureRequests]: this.#plainAllowed,
      ...(key === undefined ? undefined : { DPoP: key }),
    };
  }

  /** A document that anybody may read. Redirects within its origin are followed. */
  async document(url: URL, signal?: AbortSignal): Promise<Response> {
    const init: RequestInit = {
      method: "GET",
      headers: { accept: "application/json" },
      redirect: "manual",
      signal: patient(signal),
    };
    let at = url;
    for (let count = 0; ; count += 1) {
      const response = await this.#ask(at, init);
      const next = redirected(response, at);
      if (next?.origin !== at.origin || count >= MOST_REDIRECTS) return response;
      at = next;
    }
  }

  /** Whether a person, or a request, may be sent there. */
  allows(url: URL): boolean {
    if (url.protocol === "https:") return true;
    return this.#plainAllowed && url.protocol === "http:" && isLoopback(url.hostname);
  }

  async #ask(url: URL, init: RequestInit): Promise<Response> {
    if (!this.allows(url)) {
      const advice = "http is for ends and authorization servers on this machine; https is needed";
      throw unauthorized(`Not asked: ${url.origin}${url.pathname} is not reached by https (${advice})`);
    }
    const response = await bounded(url, await this.#fetch(url.href, init));
    return init.method === "POST" ? honest(response) : response;
  }
}

function patient(signal: AbortSignal | undefined): AbortSignal {
  const late = AbortSignal.timeout(PATIENCE_MS);
  return signal === undefined ? late : AbortSignal.any([signal, late]);
}

function redirected({ status, headers }: Response, from: URL): URL | undefined {
  const location = headers.get("location");
  if (status < 300 || status > 399 || location === null || !URL.canParse(location, from.href)) return undefined;
  return new URL(location, from);
}

const WITHOUT_BODY: ReadonlySet<number> = new Set([101, 204, 205, 304]);

/** The same answer, all of it here. */
async function bounded(url: URL, response: Response): Promise<Response> {
  const { status } = response;
  // What a browser makes of a redirect that is not to be followed.
  if (status === 0) throw unauthorized(`${url.origin} answers with a redirect, which is not followed here`);
  const bytes: Uint8Array[] = [];
  let length = 0;
  // Leaving the loop early ends the stream.
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    length += chunk.byteLength;
    if (length > MOST_BYTES) throw unauthorized(`${url.origin} answers with more than ${MOST_BYTES} bytes; not read`);
    bytes.push(chunk);
  }
  const headers = new Headers(response.headers);
  const body = await new Blob(bytes).arrayBuffer();
  return new Response(WITHOUT_BODY.has(status) ? null : body, { status, headers });
}

/** Where the body names an error, the answer as RFC 6749 (5.2) has it, whatever its head says. */
async function honest(response: Response): Promise<Response> {
  const { status } = response;
  const text = await response.clone().text();
  if (!namesError(text)) return response;
  const headers = new Headers(response.headers);
  // oauth4webapi would look no further than at the challenge, and what is wrong stands in the body.
  headers.delete("www-authenticate");
  return new Response(text, { status: status === 200 ? 400 : status, headers });
}

function namesError(text: string): boolean {
  try {
    const { error } = (JSON.parse(text) ?? {}) as { error?: unknown };
    return typeof error === "string" && error !== "";
  } catch {
    return false;
  }
}

// Makes the requests of OAuth: for public documents (metadata and keys), and to the endpoints of authorization servers.
// Remote servers choose these URLs, so it enforces https (or http, if both the URL and the server that we talk to are on
// this machine), follows no redirect of a request with credentials, and limits time and size. The guarded fetch decides
// which IP addresses may be reached.

import { ConnectionError } from "../../core/errors.ts";
import { isLoopback } from "../../core/hosts.ts";
import { defined } from "../../core/values.ts";
import { describeResponse, errorCode, reasonOf, unauthorized } from "./errors.ts";

type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export interface OAuthFetchOptions {
  /** Default: the guarded fetch. */
  readonly fetch?: Fetch | undefined;
  readonly allowPrivateNetwork?: boolean | undefined;
  /** How many redirects to follow to a document, within its origin. */
  readonly maxRedirects?: number;
}

/** A metadata document has a few thousand bytes, a token response rarely more. */
const MAX_RESPONSE_BYTES = 1024 * 1024;
const MAX_REDIRECTS = 3;
/** For a request and its whole response. */
const REQUEST_TIMEOUT_MS = 30_000;
const STATUS_WITHOUT_BODY: ReadonlySet<number> = new Set([101, 204, 205, 304]);

/** A document, or why there is none. */
export interface DocumentSearch<T> {
  readonly document?: T;
  /** One reason for each URL that had no document. */
  readonly reasons: readonly string[];
  /** Whether the document does not exist. False if a URL was unreachable or failed, since it may exist there. */
  readonly isAbsent: boolean;
}

export class OAuthFetch {
  readonly #fetch: Fetch;
  readonly allowsHttp: boolean;
  readonly #maxRedirects: number;

  /** @param server The MCP server that the tokens are for, or an issuer whose tokens we accept. */
  constructor(
    server: URL,
    { fetch, allowPrivateNetwork = false, maxRedirects = MAX_REDIRECTS }: OAuthFetchOptions = {},
  ) {
    this.#fetch = fetch === undefined ? lazyGuardedFetch(server, allowPrivateNetwork) : withTimeout(fetch);
    this.allowsHttp = server.protocol === "http:" && isLoopback(server.hostname);
    this.#maxRedirects = maxRedirects;
  }

  /** Whether the user, or a request, may be sent to this URL. */
  allows(url: URL): boolean {
    if (url.protocol === "https:") return true;
    return this.allowsHttp && url.protocol === "http:" && isLoopback(url.hostname);
  }

  async request(url: URL, init: RequestInit): Promise<Response> {
    if (!this.allows(url)) {
      const rule = "http is allowed only between servers on this machine";
      throw unauthorized(`Refused to connect to ${url.origin}: https is needed (${rule})`);
    }
    const response = await this.#fetch(url.href, init);
    const text = await readText(url, response);
    const headers = new Headers(response.headers);
    // An error response as in RFC 6749 (5.2), even if its status is 200.
    const isError = init.method === "POST" && errorIn(text) !== undefined;
    // If there is a challenge, oauth4webapi does not read the error in the body.
    if (isError) headers.delete("www-authenticate");
    const status = isError && response.status === 200 ? 400 : response.status;
    return new Response(STATUS_WITHOUT_BODY.has(status) ? null : text, { status, headers });
  }

  /**
   * Fetches a public document: the first of these URLs whose document `read` accepts. If `read` throws a ConnectionError,
   * the search ends with it. Rejects also if the signal is aborted.
   */
  async document<T>(
    urls: Iterable<string>,
    signal: AbortSignal | undefined,
    read: (response: Response) => Promise<T> | T,
  ): Promise<DocumentSearch<T>> {
    const reasons: string[] = [];
    let isAbsent = true;
    for (const href of urls) {
      const url = new URL(href);
      const addReason = (why: string): void => void reasons.push(`${url.origin}${url.pathname}: ${why}`);
      let response: Response;
      try {
        response = await this.#get(url, signal);
      } catch (error) {
        if (signal?.aborted === true) throw error;
        isAbsent = false;
        addReason(reasonOf(error));
        continue;
      }
      if (response.status !== 200) {
        isAbsent &&= response.status >= 400 && response.status < 500;
        addReason(describeResponse(response));
        continue;
      }
      try {
        return { document: await read(response), reasons, isAbsent };
      } catch (error) {
        if (error instanceof ConnectionError) throw error;
        // Some sites answer every path with the same page, so a document that is not metadata counts as absent.
        addReason(reasonOf(error));
      }
    }
    return { reasons, isAbsent };
  }

  /** Follows redirects within the origin. */
  async #get(url: URL, signal: AbortSignal | undefined): Promise<Response> {
    const headers = { accept: "application/json" };
    const init: RequestInit = { method: "GET", headers, redirect: "manual", ...defined({ signal }) };
    let current = url;
    for (let count = 0; ; count += 1) {
      const response = await this.request(current, init);
      const location = response.headers.get("location") ?? "";
      const isRedirect = response.status >= 300 && response.status < 400 && URL.canParse(location, current.href);
      const next = isRedirect ? new URL(location, current) : undefined;
      if (next?.origin !== current.origin || count >= this.#maxRedirects) return response;
      current = next;
    }
  }
}

/** The URLs of an issuer's metadata that the specification requires (RFC 8414, OpenID Connect Discovery). */
export function metadataUrls({ origin, pathname }: URL): Iterable<string> {
  const path = pathname.replace(/\/$/, "");
  return new Set([
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ]);
}

/** Loads the guarded fetch with the first request, since a program that gives its own `fetch` may have no node:http. */
function lazyGuardedFetch(target: URL, allowPrivate: boolean): Fetch {
  let guarded: Promise<Fetch> | undefined;
  return async (url, init) => {
    guarded ??= import("../../http/client/network-guard.ts").then(({ guardedFetch }) =>
      guardedFetch({ target, allowPrivate, totalMs: REQUEST_TIMEOUT_MS }),
    );
    return (await guarded)(url, init);
  };
}

/** Adds the timeout to the program's own `fetch`. The guarded fetch has its own. */
function withTimeout(fetch: Fetch): Fetch {
  return (url, init) => {
    const timeout = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
    return fetch(url, { ...init, signal: init.signal ? AbortSignal.any([init.signal, timeout]) : timeout });
  };
}

async function readText(url: URL, { status, body }: Response): Promise<string> {
  // Browsers report a redirect that is not followed as status 0.
  if (status === 0) throw unauthorized(`${url.origin} answers with a redirect, which is not followed here`);
  const chunks: Uint8Array[] = [];
  let length = 0;
  // Leaving the loop early cancels the stream.
  const stream: AsyncIterable<Uint8Array> | Iterable<Uint8Array> = body ?? [];
  for await (const chunk of stream) {
    length += chunk.byteLength;
    if (length > MAX_RESPONSE_BYTES) {
      throw unauthorized(`${url.origin} answers with more than ${MAX_RESPONSE_BYTES} bytes`);
    }
    chunks.push(chunk);
  }
  return new Blob(chunks).text();
}

function errorIn(text: string): string | undefined {
  try {
    return errorCode(JSON.parse(text)) || undefined;
  } catch {
    return undefined;
  }
}

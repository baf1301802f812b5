// Makes all requests of the OAuth flow: for metadata, and to the endpoints of authorization servers. Remote servers
// choose these URLs, so it enforces https (or http, if both the URL and the MCP server are on this machine), follows no
// redirect of a request with credentials, and limits time and size. The guarded fetch decides which IP addresses may be
// reached.

import * as oauth from "oauth4webapi";
import { isLoopback } from "../../http/server/guard.ts";
import { unauthorized } from "./errors.ts";
import type { OAuthOptions } from "./types.ts";

type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** A metadata document has a few thousand bytes, a token response rarely more. */
const MAX_RESPONSE_BYTES = 1024 * 1024;
const MAX_REDIRECTS = 3;
/** For a request and its whole response. */
const REQUEST_TIMEOUT_MS = 30_000;

export class OAuthFetch {
  readonly #fetch: Fetch;
  readonly #allowsHttp: boolean;

  /** @param mcpServer The MCP server that the tokens are for. */
  constructor(mcpServer: URL, options: Pick<OAuthOptions, "fetch" | "allowPrivateNetwork"> = {}) {
    this.#fetch =
      options.fetch === undefined
        ? lazyGuardedFetch(mcpServer, options.allowPrivateNetwork ?? false)
        : withTimeout(options.fetch);
    this.#allowsHttp = mcpServer.protocol === "http:" && isLoopback(mcpServer.hostname);
  }

  /** The options for every function of oauth4webapi that makes a request. */
  options(signal: AbortSignal | undefined, key?: oauth.DPoPHandle): oauth.TokenEndpointRequestOptions {
    return {
      ...(signal === undefined ? undefined : { signal }),
      [oauth.customFetch]: (url, init) => this.#request(new URL(url), init),
      // oauth4webapi marks this as deprecated only to make it stand out. `allows` decides when http is used.
      // oxlint-disable-next-line typescript/no-deprecated
      [oauth.allowInsecureRequests]: this.#allowsHttp,
      ...(key === undefined ? undefined : { DPoP: key }),
    };
  }

  /** Fetches a public document. Follows redirects within its origin. */
  async document(url: URL, signal?: AbortSignal): Promise<Response> {
    const init: RequestInit = {
      method: "GET",
      headers: { accept: "application/json" },
      redirect: "manual",
      ...(signal === undefined ? undefined : { signal }),
    };
    let current = url;
    for (let count = 0; ; count += 1) {
      const response = await this.#request(current, init);
      const next = redirectTarget(response, current);
      if (next?.origin !== current.origin || count >= MAX_REDIRECTS) return response;
      current = next;
    }
  }

  /** Whether the user, or a request, may be sent to this URL. */
  allows(url: URL): boolean {
    if (url.protocol === "https:") return true;
    return this.#allowsHttp && url.protocol === "http:" && isLoopback(url.hostname);
  }

  async #request(url: URL, init: RequestInit): Promise<Response> {
    if (!this.allows(url)) {
      const rule = "http is allowed only between servers on this machine";
      throw unauthorized(`Refused to connect to ${url.origin}${url.pathname}: https is needed (${rule})`);
    }
    const response = await readFully(url, await this.#fetch(url.href, init));
    return init.method === "POST" ? withErrorStatus(response) : response;
  }
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

function redirectTarget({ status, headers }: Response, from: URL): URL | undefined {
  const location = headers.get("location");
  if (status < 300 || status > 399 || location === null || !URL.canParse(location, from.href)) return undefined;
  return new URL(location, from);
}

const STATUS_WITHOUT_BODY: ReadonlySet<number> = new Set([101, 204, 205, 304]);

/** Reads the whole body, up to the limit, and returns the same response with it. */
async function readFully(url: URL, response: Response): Promise<Response> {
  const { status } = response;
  // Browsers report a redirect that is not followed as status 0.
  if (status === 0) throw unauthorized(`${url.origin} answers with a redirect, which is not followed here`);
  const chunks: Uint8Array[] = [];
  let length = 0;
  // Leaving the loop early cancels the stream.
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    length += chunk.byteLength;
    if (length > MAX_RESPONSE_BYTES) {
      throw unauthorized(`${url.origin} answers with more than ${MAX_RESPONSE_BYTES} bytes`);
    }
    chunks.push(chunk);
  }
  const headers = new Headers(response.headers);
  const body = await new Blob(chunks).arrayBuffer();
  return new Response(STATUS_WITHOUT_BODY.has(status) ? null : body, { status, headers });
}

/** If the body has an `error`, makes the response an error response as in RFC 6749 (5.2), even if its status is 200. */
async function withErrorStatus(response: Response): Promise<Response> {
  const { status } = response;
  const text = await response.clone().text();
  if (!hasError(text)) return response;
  const headers = new Headers(response.headers);
  // If there is a challenge, oauth4webapi does not read the error in the body.
  headers.delete("www-authenticate");
  return new Response(text, { status: status === 200 ? 400 : status, headers });
}

function hasError(text: string): boolean {
  try {
    const { error } = (JSON.parse(text) ?? {}) as { error?: unknown };
    return typeof error === "string" && error !== "";
  } catch {
    return false;
  }
}

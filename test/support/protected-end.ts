// An end that asks for tokens, as far as an authorizer sees it: requests at /mcp that are let in or refused, and
// metadata that says where tokens come from. What it knows of tokens it takes from the authorization server of the
// same test. With it, a caller that does as the client does: it sends, and sends again where the authorizer says so.

import type { ServerResponse } from "node:http";
import type { Authorizer } from "../../src/core/authentication.ts";
import { type Asked, type AuthorizationServer, json, listen, type Page } from "./authorization-server.ts";

export class ProtectedServer {
  readonly origin: string;
  readonly url: URL;
  readonly #close: () => Promise<void>;
  /** As it is served; undefined: there is none. */
  metadata: Record<string, unknown> | undefined;
  metadataPath = "/.well-known/oauth-protected-resource/mcp";
  /** Whether the refusal says where the metadata stands; another text is said instead. */
  namesMetadata: boolean | string = true;
  /** What a token must allow, by the request. */
  needs: (asked: Asked) => readonly string[] = () => [];
  /** Whether the refusal names the scopes. */
  namesScopes = true;
  /** Whose tokens are taken. */
  trusts: AuthorizationServer;
  readonly pages = new Map<string, Page>();
  readonly asked: Asked[] = [];

  constructor(origin: string, close: () => Promise<void>, trusts: AuthorizationServer) {
    this.origin = origin;
    this.url = new URL("/mcp", origin);
    this.#close = close;
    this.trusts = trusts;
    this.metadata = { resource: this.url.href, authorization_servers: [trusts.url] };
  }

  close(): Promise<void> {
    return this.#close();
  }

  /** What came as Authorization with the requests at the end itself. */
  get shown(): readonly (string | undefined)[] {
    return this.asked.filter(({ path }) => path === "/mcp").map(({ headers }) => headers.authorization);
  }

  answer(asked: Asked, response: ServerResponse): void {
    this.asked.push(asked);
    const page = this.pages.get(asked.path);
    if (page !== undefined) page(asked, response);
    else if (asked.path === this.metadataPath && this.metadata !== undefined) json(response, 200, this.metadata);
    else if (asked.path === "/mcp") this.#judge(asked, response);
    else response.writeHead(404).end();
  }

  #judge(asked: Asked, response: ServerResponse): void {
    const token = asked.headers.authorization?.replace(/^Bearer /, "");
    const issued = token === undefined ? undefined : this.trusts.issued.get(token);
    const needed = this.needs(asked);
    if (issued === undefined) {
      const error = token === undefined ? [] : ['error="invalid_token"'];
      return this.refuse(response, 401, error, needed);
    }
    const has = issued.scope.split(" ");
    if (needed.every((scope) => has.includes(scope))) return json(response, 200, { fine: true });
    return this.refuse(response, 403, ['error="insufficient_scope"'], needed);
  }

  refuse(response: ServerResponse, status: number, said: readonly string[], needed: readonly string[]): void {
    const place = typeof this.namesMetadata === "string" ? this.namesMetadata : `${this.origin}${this.metadataPath}`;
    const fields = [
      ...said,
      ...(this.namesScopes && needed.length > 0 ? [`scope="${needed.join(" ")}"`] : []),
      ...(this.namesMetadata === false ? [] : [`resource_metadata="${place}"`]),
    ];
    json(response, status, {}, { "www-authenticate": `Bearer ${fields.join(", ")}`.trim() });
  }
}

export async function openServer(trusts: AuthorizationServer): Promise<ProtectedServer> {
  const { url, close } = await listen((asked, response) => end.answer(asked, response));
  const end = new ProtectedServer(url, close, trusts);
  return end;
}

const NEVER = new AbortController().signal;

/** The status of the answer that was no refusal, or of the last refusal. */
export async function send(auth: Authorizer, url: URL, method = "POST", signal: AbortSignal = NEVER): Promise<number> {
  const sending = { method, url, signal };
  for (let attempt = 1; ; attempt += 1) {
    const sent = await auth.authorize(sending);
    const response = await fetch(url, { method, headers: sent, signal });
    const headers = Object.fromEntries(response.headers);
    await response.arrayBuffer();
    const { status } = response;
    if (status !== 401 && status !== 403) {
      auth.answered?.(sending, headers);
      return status;
    }
    if (!(await auth.refused({ ...sending, status, headers, sent, attempt }))) return status;
  }
}

// An MCP server that requires tokens, as an authorizer sees it: it accepts or refuses requests at /mcp, and publishes
// resource metadata. It accepts the tokens of the authorization server of the same test. `send` acts like the client: it
// sends a request, and again if the authorizer says so.

import type { ServerResponse } from "node:http";
import type { Authorizer } from "../../../src/core/authentication.ts";
import { type ReceivedRequest, type AuthorizationServer, json, listen, type Page } from "./authorization-server.ts";

export class ProtectedServer {
  readonly origin: string;
  readonly url: URL;
  readonly #close: () => Promise<void>;
  /** The published metadata; undefined for none. */
  metadata: Record<string, unknown> | undefined;
  metadataPath = "/.well-known/oauth-protected-resource/mcp";
  /** Whether the challenge names the metadata; a string is used instead of its URL. */
  namesMetadata: boolean | string = true;
  /** The scopes that a request needs. */
  needs: (request: ReceivedRequest) => readonly string[] = () => [];
  /** Whether the challenge names the scopes. */
  namesScopes = true;
  /** The server whose tokens are accepted. */
  trusts: AuthorizationServer;
  readonly pages = new Map<string, Page>();
  readonly requests: ReceivedRequest[] = [];

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

  /** The Authorization headers of the requests at /mcp. */
  get authorizations(): readonly (string | undefined)[] {
    return this.requests.filter(({ path }) => path === "/mcp").map(({ headers }) => headers.authorization);
  }

  answer(request: ReceivedRequest, response: ServerResponse): void {
    this.requests.push(request);
    const page = this.pages.get(request.path);
    if (page !== undefined) page(request, response);
    else if (request.path === this.metadataPath && this.metadata !== undefined) json(response, 200, this.metadata);
    else if (request.path === "/mcp") this.#check(request, response);
    else response.writeHead(404).end();
  }

  #check(request: ReceivedRequest, response: ServerResponse): void {
    const token = request.headers.authorization?.replace(/^Bearer /, "");
    const issued = token === undefined ? undefined : this.trusts.issued.get(token);
    const needed = this.needs(request);
    if (issued === undefined) {
      const error = token === undefined ? [] : ['error="invalid_token"'];
      return this.refuse(response, 401, error, needed);
    }
    const granted = issued.scope.split(" ");
    if (needed.every((scope) => granted.includes(scope))) return json(response, 200, { accepted: true });
    return this.refuse(response, 403, ['error="insufficient_scope"'], needed);
  }

  refuse(response: ServerResponse, status: number, params: readonly string[], needed: readonly string[]): void {
    const metadataUrl =
      typeof this.namesMetadata === "string" ? this.namesMetadata : `${this.origin}${this.metadataPath}`;
    const fields = [
      ...params,
      ...(this.namesScopes && needed.length > 0 ? [`scope="${needed.join(" ")}"`] : []),
      ...(this.namesMetadata === false ? [] : [`resource_metadata="${metadataUrl}"`]),
    ];
    json(response, status, {}, { "www-authenticate": `Bearer ${fields.join(", ")}`.trim() });
  }
}

export async function openProtectedServer(trusts: AuthorizationServer): Promise<ProtectedServer> {
  const { url, close } = await listen((request, response) => server.answer(request, response));
  const server = new ProtectedServer(url, close, trusts);
  return server;
}

const NEVER = new AbortController().signal;

/** Returns the status of the accepted request, or of the last refusal. */
export async function send(auth: Authorizer, url: URL, method = "POST", signal: AbortSignal = NEVER): Promise<number> {
  const request = { method, url, signal };
  for (let attempt = 1; ; attempt += 1) {
    const sent = await auth.authorize(request);
    const response = await fetch(url, { method, headers: sent, signal });
    const headers = Object.fromEntries(response.headers);
    await response.arrayBuffer();
    const { status } = response;
    if (status !== 401 && status !== 403) {
      auth.answered?.(request, headers);
      return status;
    }
    if (!(await auth.refused({ ...request, status, headers, sent, attempt }))) return status;
  }
}

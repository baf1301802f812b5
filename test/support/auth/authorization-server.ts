// A small authorization server on a local port: it registers every client, consents without a user, and issues tokens
// that tests can look up. Its answers can be changed while it runs, and every request is recorded. Also a redirect of a
// user who consents at once.

import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Redirect } from "../../../src/auth/oauth/types.ts";
import { AuthError, type Authenticator } from "../../../src/core/authentication.ts";

export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage["headers"];
  /** The parsed form; empty for another content type. */
  readonly form: URLSearchParams;
  readonly text: string;
}

export interface Issued {
  readonly client: string;
  readonly scope: string;
  readonly resource: string | null;
  refresh: string | undefined;
}

export type Page = (request: ReceivedRequest, response: ServerResponse) => void;

export class AuthorizationServer {
  readonly url: string;
  readonly #close: () => Promise<void>;
  /** The published metadata; tests may change it. */
  metadata: Record<string, unknown>;
  metadataPath = "/.well-known/oauth-authorization-server";
  /** Answers that replace the usual ones, by path. */
  readonly pages = new Map<string, Page>();
  readonly requests: ReceivedRequest[] = [];
  /** By access token. */
  readonly issued = new Map<string, Issued>();
  /** The `iss` of the callback; undefined for none. */
  iss: string | undefined;
  /** In seconds; undefined to omit it. */
  expiresIn: number | undefined = 3600;
  givesRefresh = true;
  /** The granted scopes for the requested ones. */
  grants: (scope: string) => string = (scope) => scope;
  readonly #codes = new Map<string, URLSearchParams>();
  #count = 0;

  constructor(url: string, close: () => Promise<void>) {
    this.url = url;
    this.#close = close;
    this.iss = url;
    this.metadata = {
      issuer: url,
      authorization_endpoint: `${url}/authorize`,
      token_endpoint: `${url}/token`,
      registration_endpoint: `${url}/register`,
      revocation_endpoint: `${url}/revoke`,
      response_types_supported: ["code"],
      code_challenge_methods_supported: ["S256"],
      token_endpoint_auth_methods_supported: ["none"],
      authorization_response_iss_parameter_supported: true,
    };
  }

  close(): Promise<void> {
    return this.#close();
  }

  /** For a server at this path that accepts every token of this authorization server. */
  authenticator(path: string): Authenticator {
    const metadata = `/.well-known/oauth-protected-resource${path}`;
    return {
      authenticate: async ({ headers, endpoint }) => {
        const issued = this.issued.get(headers["authorization"]?.replace("Bearer ", "") ?? "");
        if (issued !== undefined) return { principal: issued.client, scopes: issued.scope.split(" ") };
        const challenge = `Bearer resource_metadata="${new URL(endpoint).origin}${metadata}"`;
        throw new AuthError(401, "Who are you?", challenge);
      },
      document: (asked, endpoint) =>
        asked === metadata ? { resource: endpoint, authorization_servers: [this.url] } : undefined,
    };
  }

  /** The requests for this path. */
  at(path: string): readonly ReceivedRequest[] {
    return this.requests.filter((one) => one.path === path);
  }

  /** The token requests of this grant. */
  grantsOf(type: string): readonly URLSearchParams[] {
    return this.at("/token")
      .map(({ form }) => form)
      .filter((form) => form.get("grant_type") === type);
  }

  /** Revokes all refresh and access tokens. */
  revoke(): void {
    this.issued.clear();
  }

  answer(request: ReceivedRequest, response: ServerResponse): void {
    this.requests.push(request);
    const page = this.pages.get(request.path) ?? this.#page(request.path);
    if (page === undefined) response.writeHead(404).end();
    else page(request, response);
  }

  #page(path: string): Page | undefined {
    if (path === this.metadataPath) return (_request, response) => json(response, 200, this.metadata);
    if (path === "/register") return (request, response) => json(response, 201, this.#register(request));
    if (path === "/authorize") return (request, response) => this.#authorize(request, response);
    if (path === "/token") return (request, response) => this.#token(request, response);
    if (path === "/revoke") return (request, response) => this.#revoke(request, response);
    return undefined;
  }

  #register({ text }: ReceivedRequest): object {
    this.#count += 1;
    return { ...(JSON.parse(text) as object), client_id: `client-${this.#count}` };
  }

  #authorize({ query }: ReceivedRequest, response: ServerResponse): void {
    this.#count += 1;
    const code = `code-${this.#count}`;
    this.#codes.set(code, query);
    const back = new URL(query.get("redirect_uri") ?? "");
    back.searchParams.set("code", code);
    back.searchParams.set("state", query.get("state") ?? "");
    if (this.iss !== undefined) back.searchParams.set("iss", this.iss);
    response.writeHead(302, { location: back.href }).end();
  }

  #token({ form, headers }: ReceivedRequest, response: ServerResponse): void {
    const basic = Buffer.from(headers.authorization?.replace("Basic ", "") ?? "", "base64").toString();
    const client = form.get("client_id") ?? decodeURIComponent(basic.split(":")[0] ?? "");
    const type = form.get("grant_type");
    if (type === "authorization_code") {
      const code = form.get("code") ?? "";
      const authorization = this.#codes.get(code);
      this.#codes.delete(code);
      const challenge = createHash("sha256")
        .update(form.get("code_verifier") ?? "")
        .digest("base64url");
      const isValid =
        authorization?.get("code_challenge") === challenge &&
        authorization.get("client_id") === client &&
        authorization.get("redirect_uri") === form.get("redirect_uri");
      if (!isValid) return json(response, 400, { error: "invalid_grant" });
      return this.give(response, { client, scope: authorization.get("scope") ?? "", resource: form.get("resource") });
    }
    if (type === "refresh_token") {
      const [access, before] =
        [...this.issued].find(([, { refresh }]) => refresh !== undefined && refresh === form.get("refresh_token")) ??
        [];
      if (access === undefined || before?.client !== client) return json(response, 400, { error: "invalid_grant" });
      // A refresh token can be used once.
      before.refresh = undefined;
      return this.give(response, before);
    }
    if (type === "client_credentials") {
      return this.give(response, { client, scope: form.get("scope") ?? "", resource: form.get("resource") });
    }
    return json(response, 400, { error: "unsupported_grant_type" });
  }

  #revoke({ form }: ReceivedRequest, response: ServerResponse): void {
    const token = form.get("token") ?? "";
    this.issued.delete(token);
    for (const issued of this.issued.values()) if (issued.refresh === token) issued.refresh = undefined;
    response.writeHead(200).end();
  }

  give(response: ServerResponse, { client, scope, resource }: Omit<Issued, "refresh">): void {
    this.#count += 1;
    const access = `access-${this.#count}`;
    const refresh = this.givesRefresh ? `refresh-${this.#count}` : undefined;
    const granted = this.grants(scope);
    this.issued.set(access, { client, scope: granted, resource, refresh });
    json(response, 200, {
      access_token: access,
      token_type: "Bearer",
      ...(this.expiresIn === undefined ? undefined : { expires_in: this.expiresIn }),
      ...(refresh === undefined ? undefined : { refresh_token: refresh }),
      ...(granted === "" ? undefined : { scope: granted }),
    });
  }
}

export function json(
  response: ServerResponse,
  status: number,
  body: object,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
}

export async function openAuthorizationServer(): Promise<AuthorizationServer> {
  const { url, close } = await listen((request, response) => server.answer(request, response));
  const server = new AuthorizationServer(url, close);
  return server;
}

/** Listens on a local port; `answer` gets requests with their whole body. */
export async function listen(answer: Page): Promise<{ url: string; close: () => Promise<void> }> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const text = Buffer.concat(chunks).toString();
      const { pathname, searchParams } = new URL(request.url ?? "/", "http://here");
      const form = new URLSearchParams(request.headers["content-type"]?.includes("json") === true ? "" : text);
      const { method = "", headers } = request;
      answer({ method, path: pathname, query: searchParams, headers, form, text }, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** A user who consents at once; `visited` are the URLs that the user was sent to. */
export function consentingUser(uri = "http://127.0.0.1:9/callback"): Redirect & { readonly visited: URL[] } {
  const visited: URL[] = [];
  return {
    uri,
    visited,
    visit: async (url, { signal }) => {
      visited.push(url);
      const response = await fetch(url, { redirect: "manual", signal });
      const location = response.headers.get("location");
      await response.body?.cancel();
      if (location === null) throw new Error(`The server showed a page (HTTP ${response.status})`);
      return new URL(location);
    },
  };
}

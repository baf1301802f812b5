// An authorization server on a port of this machine, small and obliging: it registers whoever asks, consents without a
// person, and gives tokens that anybody can look up. Everything it says can be changed while it runs, so that it can
// lie; every request is noted. With it, the redirect of a person who consents at once.

import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Redirect } from "../../src/auth/oauth/redirect.ts";

export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage["headers"];
  /** A form, or nothing. */
  readonly form: URLSearchParams;
  readonly text: string;
}

export interface Issued {
  readonly client: string;
  readonly scope: string;
  readonly resource: string | null;
  refresh: string | undefined;
}

export type Page = (asked: Asked, response: ServerResponse) => void;

export class AuthorizationServer {
  readonly url: string;
  readonly #close: () => Promise<void>;
  /** As it is served; changed at will. */
  metadata: Record<string, unknown>;
  metadataPath = "/.well-known/oauth-authorization-server";
  /** What stands in place of the usual answers, by path. */
  readonly pages = new Map<string, Page>();
  readonly asked: Asked[] = [];
  /** By access token. */
  readonly issued = new Map<string, Issued>();
  /** The `iss` on the way back; undefined: none. */
  iss: string | undefined;
  /** Seconds; undefined: it does not say. */
  expiresIn: number | undefined = 3600;
  givesRefresh = true;
  /** What is granted of what was asked for. */
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
      response_types_supported: ["code"],
      code_challenge_methods_supported: ["S256"],
      token_endpoint_auth_methods_supported: ["none"],
      authorization_response_iss_parameter_supported: true,
    };
  }

  close(): Promise<void> {
    return this.#close();
  }

  /** The requests for this path. */
  at(path: string): readonly Asked[] {
    return this.asked.filter((one) => one.path === path);
  }

  /** The token requests of this grant. */
  grantsOf(type: string): readonly URLSearchParams[] {
    return this.at("/token")
      .map(({ form }) => form)
      .filter((form) => form.get("grant_type") === type);
  }

  /** A refresh token that nobody honours any more, and the access token with it. */
  revoke(): void {
    this.issued.clear();
  }

  answer(asked: Asked, response: ServerResponse): void {
    this.asked.push(asked);
    const page = this.pages.get(asked.path) ?? this.#page(asked.path);
    if (page === undefined) response.writeHead(404).end();
    else page(asked, response);
  }

  #page(path: string): Page | undefined {
    if (path === this.metadataPath) return (_asked, response) => json(response, 200, this.metadata);
    if (path === "/register") return (asked, response) => json(response, 201, this.#register(asked));
    if (path === "/authorize") return (asked, response) => this.#authorize(asked, response);
    if (path === "/token") return (asked, response) => this.#token(asked, response);
    return undefined;
  }

  #register({ text }: Asked): object {
    this.#count += 1;
    return { ...(JSON.parse(text) as object), client_id: `client-${this.#count}` };
  }

  #authorize({ query }: Asked, response: ServerResponse): void {
    this.#count += 1;
    const code = `code-${this.#count}`;
    this.#codes.set(code, query);
    const back = new URL(query.get("redirect_uri") ?? "");
    back.searchParams.set("code", code);
    back.searchParams.set("state", query.get("state") ?? "");
    if (this.iss !== undefined) back.searchParams.set("iss", this.iss);
    response.writeHead(302, { location: back.href }).end();
  }

  #token({ form, headers }: Asked, response: ServerResponse): void {
    const basic = Buffer.from(headers.authorization?.replace("Basic ", "") ?? "", "base64").toString();
    const client = form.get("client_id") ?? decodeURIComponent(basic.split(":")[0] ?? "");
    const type = form.get("grant_type");
    if (type === "authorization_code") {
      const code = form.get("code") ?? "";
      const asked = this.#codes.get(code);
      this.#codes.delete(code);
      const challenge = createHash("sha256")
        .update(form.get("code_verifier") ?? "")
        .digest("base64url");
      const isGood =
        asked?.get("code_challenge") === challenge &&
        asked.get("client_id") === client &&
        asked.get("redirect_uri") === form.get("redirect_uri");
      if (!isGood) return json(response, 400, { error: "invalid_grant" });
      return this.give(response, { client, scope: asked.get("scope") ?? "", resource: form.get("resource") });
    }
    if (type === "refresh_token") {
      const [access, before] =
        [...this.issued].find(([, { refresh }]) => refresh !== undefined && refresh === form.get("refresh_token")) ??
        [];
      if (access === undefined || before?.client !== client) return json(response, 400, { error: "invalid_grant" });
      // A refresh token is good once.
      before.refresh = undefined;
      return this.give(response, before);
    }
    if (type === "client_credentials") {
      return this.give(response, { client, scope: form.get("scope") ?? "", resource: form.get("resource") });
    }
    return json(response, 400, { error: "unsupported_grant_type" });
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
  const { url, close } = await listen((asked, response) => server.answer(asked, response));
  const server = new AuthorizationServer(url, close);
  return server;
}

/** A port of this machine; requests come whole. */
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

/** A person who consents at once; `visited` are the addresses that the person was sent to. */
export function consenting(uri = "http://127.0.0.1:9/callback"): Redirect & { readonly visited: URL[] } {
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

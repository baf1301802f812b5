// A real authorization server in this process: node-oidc-provider, which registers every client and issues JWTs for the
// requested resources. Also a minimal browser, with cookies and redirects. The pages for sign-in and consent answer by
// themselves.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair } from "jose";

/** The part of the package that is used here. The package has no types. */
interface Provider {
  callback(): (request: IncomingMessage, response: ServerResponse) => void;
  readonly Grant: {
    new (about: { accountId: string; clientId: string }): Grant;
    find(id: string): Promise<Grant | undefined>;
  };
  interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>;
  interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>;
}

interface Grant {
  addOIDCScope(scope: string): void;
  addResourceScope(resource: string, scope: string): void;
  save(): Promise<string>;
}

interface Interaction {
  readonly prompt: {
    readonly name: string;
    readonly details: {
      readonly missingOIDCScope?: readonly string[];
      readonly missingResourceScopes?: Readonly<Record<string, readonly string[]>>;
    };
  };
  readonly params: { readonly client_id: string };
  readonly session?: { readonly accountId: string };
  readonly grantId?: string;
}

export interface OidcProvider {
  readonly issuer: string;
  /** Whether the user consents. */
  consents: boolean;
  /** Method and path of every request. */
  readonly requests: readonly string[];
  close(): Promise<void>;
}

export interface OidcProviderOptions {
  /** The scopes that tokens may have. */
  readonly scope: string;
  readonly accessTokenSec: number;
  /** Whether it requires pushed authorization requests (RFC 9126). */
  readonly pushedOnly?: boolean;
}

export async function openOidcProvider(options: OidcProviderOptions): Promise<OidcProvider> {
  const { scope, accessTokenSec, pushedOnly = false } = options;
  const requests: string[] = [];
  const self = { consents: true };
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url?.split("?")[0]}`);
    if (request.url?.startsWith("/interaction/") === true) void consent(provider, request, response, self.consents);
    else answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { privateKey } = await generateKeyPair("RS256", { extractable: true });
  const provider = await newProvider(issuer, {
    jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: "RS256", use: "sig", kid: "one" }] },
    cookies: { keys: ["not a secret"] },
    findAccount: (_context: unknown, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    ttl: { AccessToken: accessTokenSec, Grant: 86_400, Interaction: 600, RefreshToken: 86_400, Session: 86_400 },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      revocation: { enabled: true },
      pushedAuthorizationRequests: { enabled: true, requirePushedAuthorizationRequests: pushedOnly },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_context: unknown, resource: string) => ({
          scope,
          audience: resource,
          accessTokenTTL: accessTokenSec,
          accessTokenFormat: "jwt",
          jwt: { sign: { alg: "RS256" } },
        }),
        useGrantedResource: () => true,
      },
    },
  });
  const answer = provider.callback();
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return Object.assign(self, { issuer, requests, close });
}

async function newProvider(issuer: string, configuration: object): Promise<Provider> {
  // A variable, so that the compiler does not look for types.
  const name = "oidc-provider";
  const { default: Make } = (await import(name)) as { default: new (issuer: string, how: object) => Provider };
  return new Make(issuer, configuration);
}

/** The user is always Ada, who consents to everything or to nothing. */
async function consent(
  provider: Provider,
  request: IncomingMessage,
  response: ServerResponse,
  consents: boolean,
): Promise<void> {
  const { prompt, params, session, grantId } = await provider.interactionDetails(request, response);
  const { name, details } = prompt;
  if (name === "login") return provider.interactionFinished(request, response, { login: { accountId: "ada" } });
  if (!consents) {
    const result = { error: "access_denied", error_description: "Ada would rather not" };
    return provider.interactionFinished(request, response, result);
  }
  const known = grantId === undefined ? undefined : await provider.Grant.find(grantId);
  const grant = known ?? new provider.Grant({ accountId: session?.accountId ?? "", clientId: params.client_id });
  if (details.missingOIDCScope !== undefined) grant.addOIDCScope(details.missingOIDCScope.join(" "));
  for (const [resource, scopes] of Object.entries(details.missingResourceScopes ?? {})) {
    grant.addResourceScope(resource, scopes.join(" "));
  }
  await provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } });
}

const MAX_REDIRECTS = 20;

/** Opens a URL and follows redirects until there is a page. */
export class Browser {
  /** Every URL that it has opened. */
  readonly history: URL[] = [];
  readonly #cookies = new Map<string, string>();

  async open(address: URL): Promise<string> {
    let url = address;
    for (let step = 0; step < MAX_REDIRECTS; step += 1) {
      this.history.push(url);
      const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join("; ");
      const response = await fetch(url, { redirect: "manual", headers: { cookie } });
      const page = await response.text();
      for (const set of response.headers.getSetCookie()) this.#keep(set);
      const location = response.headers.get("location");
      if (location === null) return page;
      url = new URL(location, url);
    }
    throw new Error(`The browser followed more than ${MAX_REDIRECTS} redirects`);
  }

  #keep(set: string): void {
    const [pair = ""] = set.split(";");
    const [name = "", value = ""] = pair.split(/=(.*)/s);
    if (value === "") this.#cookies.delete(name);
    else this.#cookies.set(name, value);
  }
}

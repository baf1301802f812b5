// `oauth`: an authorizer that gets itself tokens, by OAuth 2.1 as the specification wants it of a client. Here are only
// its options, what is wrong with them, and the door: everything that stands behind it, oauth4webapi among it, is
// loaded when a request is first sent.

import type { Authorizer } from "../../core/authentication.ts";
import type { ClientCredentials } from "./client-auth.ts";
import type { Grant } from "./grant.ts";
import type { Redirect } from "./redirect.ts";
import type { TokenStore } from "./token-store.ts";

/** A client that an authorization server knows already. */
export interface PreRegisteredClient extends ClientCredentials {
  readonly id: string;
  /** The server that knows it. Left out, the first server that an end names is taken for it, and no other after that. */
  readonly issuer?: string;
}

export interface OAuthOptions {
  /** Where tokens are kept; in memory. */
  readonly store?: TokenStore;
  /** How a person gets to the authorization server and back; without it nobody can be asked for consent. */
  readonly redirect?: Redirect;
  readonly client?: PreRegisteredClient;
  /** The https address of our client id metadata document, for servers that read such documents. */
  readonly metadataUrl?: string;
  /** What we are called where we register ourselves; "Catenary". */
  readonly clientName?: string;
  /** Scopes that are asked for in any case, beside those that the end wants. */
  readonly scopes?: readonly string[];
  /** How tokens are had; by a person's consent (authorization code). */
  readonly grant?: Grant;
  /** Whether tokens are bound to a key (DPoP). Left out: where the end demands it. */
  readonly dpop?: boolean;
  /** How often one request may lead to an authorization before it fails; 3. */
  readonly maxStepUps?: number;
  /** Whether metadata and endpoints may be at private addresses; false. */
  readonly allowPrivateNetwork?: boolean;
  /** Makes the requests in place of our own guarded one, which then guards nothing. */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
  /** Told what a person may want to know and nothing stops for. */
  readonly onNotice?: (text: string) => void;
}

/** For one end: the first that it is used with. */
export function oauth(options: OAuthOptions = {}): Authorizer {
  check(options);
  let loading: Promise<Authorizer> | undefined;
  let loaded: Authorizer | undefined;
  const load = async (): Promise<Authorizer> => {
    loading ??= import("./flow.ts").then(({ Flow }) => (loaded = new Flow(options)));
    return loading;
  };
  const { extension } = options.grant ?? {};
  return {
    ...(extension === undefined ? undefined : { extensions: [extension] }),
    authorize: async (sending) => (await load()).authorize(sending),
    refused: async (challenge) => (await load()).refused(challenge),
    answered: (sending, headers) => loaded?.answered?.(sending, headers),
  };
}

function check({ client, metadataUrl, maxStepUps, redirect }: OAuthOptions): void {
  if (client !== undefined && (typeof client.id !== "string" || client.id === "")) {
    throw new TypeError("oauth: `client` needs an `id`, as the authorization server gave it");
  }
  if (client?.issuer !== undefined && !URL.canParse(client.issuer)) {
    throw new TypeError("oauth: `client.issuer` is no URL");
  }
  if (metadataUrl !== undefined && !isDocument(metadataUrl)) {
    throw new TypeError("oauth: `metadataUrl` must be an https URL with a path, as https://example.com/client.json");
  }
  if (maxStepUps !== undefined && !(Number.isInteger(maxStepUps) && maxStepUps > 0)) {
    throw new TypeError("oauth: `maxStepUps` must be a whole number, 1 or more");
  }
  if (redirect !== undefined && typeof redirect.visit !== "function") {
    throw new TypeError("oauth: `redirect` needs a function `visit`; loopbackRedirect() gives one");
  }
}

/** What a client id that is a URL must be (draft-ietf-oauth-client-id-metadata-document, 3). */
function isDocument(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, pathname, hash, username, password } = new URL(text);
  return protocol === "https:" && pathname !== "/" && `${hash}${username}${password}` === "";
}

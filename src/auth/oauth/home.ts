// What belongs to one end that wants tokens: its address, its part of the store, the grant, and the source of its
// tokens, put together out of what the program said.

import { authorizationCode } from "./authorization-code.ts";
import type { Grant } from "./grant.ts";
import { memoryTokens } from "./memory-tokens.ts";
import type { OAuthOptions } from "./oauth.ts";
import { type Fetch, Reach } from "./reach.ts";
import { TokenSource } from "./token-source.ts";
import { Vault } from "./vault.ts";

/** The end, and what is known of the ways to its tokens. */
export interface Home {
  readonly end: URL;
  readonly vault: Vault;
  readonly source: TokenSource;
  readonly grant: Grant;
  /** Whether a token may go there: by https, or on this machine. */
  readonly isSafe: boolean;
}

export function homeOf(url: URL, options: OAuthOptions): Home {
  const end = new URL(url);
  end.hash = "";
  const reach = new Reach({ end, fetch: fetchFor(end, options) });
  const allows = (address: URL): boolean => reach.allows(address);
  const grant = options.grant ?? authorizationCode({ redirect: options.redirect, allows });
  const identity = [grant.kind, grant.identity ?? "", options.client?.id ?? ""].map(encodeURIComponent).join(" ");
  const onNotice = (text: string): void => options.onNotice?.(text);
  const shared = grant.isNameless === true ? undefined : options.store;
  const vault = new Vault({ store: shared ?? memoryTokens(), end, who: identity, onNotice });
  const source = new TokenSource({ options, end, vault, reach, grant });
  return { end, vault, grant, source, isSafe: allows(end) };
}

function fetchFor(target: URL, { fetch, allowPrivateNetwork = false }: OAuthOptions): Fetch {
  if (fetch !== undefined) return fetch;
  // Loaded late: with a `fetch` of the program's own there need not be a node:http.
  let guarded: Promise<Fetch> | undefined;
  return async (url, init) => {
    guarded ??= import("../../http/client/network-guard.ts").then(({ guardedFetch }) =>
      guardedFetch({ target, allowPrivate: allowPrivateNetwork }),
    );
    return (await guarded)(url, init);
  };
}

// Credentials that a grant carries are for one authorization server. Which one an end wants is the end's own word, and
// an end may lie, or be taken over: so the server is the one that the program named, or else the first that gave a
// token, and no other ever sees them.

import type { AuthorizationServer } from "oauth4webapi";
import { unauthorized } from "./failures.ts";

export class IssuerBond {
  #issuer: string | undefined;

  constructor(issuer?: string) {
    this.#issuer = issuer;
  }

  /** Why this server will not do, as the end of a sentence. */
  misfit({ issuer, grant_types_supported: grants }: AuthorizationServer, grant: string): string | undefined {
    if (this.#issuer !== undefined && !sameIssuer(issuer, this.#issuer)) {
      return `the credentials are for ${this.#issuer}, and are shown to nobody else`;
    }
    if (grants !== undefined && !grants.includes(grant)) return `it does not list ${grant} among its grants`;
    return undefined;
  }

  /** Throws where it will not do: for who was not asked before. */
  check(server: AuthorizationServer, grant: string): void {
    const misfit = this.misfit(server, grant);
    if (misfit !== undefined) throw unauthorized(`${server.issuer} cannot be asked for a token: ${misfit}`);
  }

  /** It gave a token. */
  keep({ issuer }: AuthorizationServer): void {
    this.#issuer ??= issuer;
  }
}

/** An origin with and without a slash is one issuer: the same documents are its own. */
export function sameIssuer(one: string, other: string): boolean {
  return one === other || (URL.canParse(one) && URL.canParse(other) && new URL(one).href === new URL(other).href);
}

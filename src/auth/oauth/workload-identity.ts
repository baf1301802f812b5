// The grant of a program whose platform vouches for it: a JWT that the platform made for this workload (a service
// account's token, an instance's identity) is exchanged for a token of the end (RFC 7523, 2.1). No secret is kept
// anywhere. The JWT must name the authorization server as its audience.

import { assertionFor, heldToAudience, subjectOf, type Assertion } from "./assertion.ts";
import type { Grant } from "./grant.ts";
import { IssuerBond } from "./issuer-bond.ts";

export interface WorkloadIdentityOptions {
  /** The JWT, or what brings a fresh one (by reading the file that the platform renews, for instance). */
  readonly assertion: Assertion;
  /** Where the server wants to know a client beside the workload. */
  readonly clientId?: string;
  /**
   * Whose tokens they are, so that a store keeps apart those of several workloads; what the JWT says, if it is given.
   * Where neither says it, they are kept in memory alone, whatever the store.
   */
  readonly subject?: string;
  /**
   * The only server that may see the JWT. Where it is left out: one that the JWT names as its audience, and the first
   * that gives a token.
   */
  readonly issuer?: string;
}

export const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";

export function workloadIdentity(options: WorkloadIdentityOptions): Grant {
  const { assertion, clientId } = options;
  const named = options.subject ?? subjectOf(assertion);
  const subject = named ?? "workload";
  const bond = new IssuerBond(options.issuer);
  return {
    kind: JWT_BEARER,
    isNameless: named === undefined,
    identity: clientId === undefined ? subject : `${clientId} ${subject}`,
    interactive: false,
    fits: (server) => bond.misfit(server, JWT_BEARER),
    async obtain(ground) {
      bond.check(ground.server, JWT_BEARER);
      const { server, resource, signal } = ground;
      const text = await assertionFor(assertion, { audience: server.issuer, resource, signal }, "workload assertion");
      if (options.issuer === undefined) heldToAudience(text, server);
      const { knownClient, NOBODY, requestTokens } = await import("./grant-request.ts");
      const known = clientId === undefined ? NOBODY : await knownClient({ id: clientId, authMethod: "none" }, server);
      const tokens = await requestTokens(ground, known, {
        grantType: JWT_BEARER,
        parameters: { assertion: text },
        secrets: [text],
        advice: `check that the workload's JWT is fresh, names ${server.issuer} as its audience, and is trusted there`,
      });
      bond.keep(server);
      return tokens;
    },
  };
}

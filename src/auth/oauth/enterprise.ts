// The grant of people whose organization decides what they may use (the extension enterprise-managed-authorization):
// the identity token that a person got by signing in to the organization's identity provider is exchanged there for
// an assertion for one end (RFC 8693, an ID-JAG), and that one at the end's authorization server for a token (RFC
// 7523). The identity token is shown to the identity provider alone.

import { assertionFor, subjectOf, type Assertion } from "./assertion.ts";
import type { Grant } from "./grant.ts";
import type { ClientIdentity } from "./grant-request.ts";
import type { Idp } from "./identity-provider.ts";
import { IssuerBond } from "./issuer-bond.ts";
import { JWT_BEARER } from "./workload-identity.ts";

export interface EnterpriseManagedOptions {
  /** The organization's identity provider. */
  readonly idp: Idp;
  /** What the person got there by signing in, or what brings a fresh one. */
  readonly idToken: Assertion;
  /** "saml2" for a SAML assertion; an identity token of OpenID Connect where it is left out. */
  readonly idTokenType?: "id_token" | "saml2";
  /** The client as the end's authorization server knows it; the one that `oauth()` was given where it is left out. */
  readonly client?: ClientIdentity & { readonly issuer?: string };
  /**
   * Whose tokens they are, so that a store keeps apart those of several people; what the token says, if it is given.
   * Where neither says it, they are kept in memory alone, whatever the store.
   */
  readonly subject?: string;
}

export function enterpriseManaged(options: EnterpriseManagedOptions): Grant {
  const { idp, idToken, client } = options;
  const bond = new IssuerBond(client?.issuer);
  const subject = options.subject ?? subjectOf(idToken);
  return {
    kind: JWT_BEARER,
    extension: "io.modelcontextprotocol/enterprise-managed-authorization",
    isNameless: subject === undefined,
    identity: [client?.id, idp.client.id, subject ?? "person"].filter((part) => part !== undefined).join(" "),
    interactive: false,
    fits: (server) => bond.misfit(server, JWT_BEARER),
    async obtain(ground) {
      bond.check(ground.server, JWT_BEARER);
      const { server, resource, signal } = ground;
      const [{ identityProvider, exchange }, { knownClient, requestTokens }] = await Promise.all([
        import("./identity-provider.ts"),
        import("./grant-request.ts"),
      ]);
      // Before a person's token is shown to anybody: without a client there is nobody to whom a token could be given.
      const known = client === undefined ? await ground.client() : await knownClient(client, server);
      const provider = await identityProvider(idp, ground);
      const text = await assertionFor(idToken, { audience: provider.issuer, resource, signal }, "identity token");
      const { assertion, scope } = await exchange(ground, { idp, provider, text, type: options.idTokenType });
      const tokens = await requestTokens({ ...ground, ...(scope === undefined ? {} : { scope }) }, known, {
        grantType: JWT_BEARER,
        parameters: { assertion },
        secrets: [assertion, client?.secret],
        advice: `check that ${server.issuer} trusts ${provider.issuer}, and knows this client`,
      });
      bond.keep(server);
      return tokens;
    },
  };
}

// The grant of people whose organization decides, with two small real servers: the organization's identity provider,
// which exchanges, and the end's authorization server, which gives the token.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { json, openAuthorizationServer, type AuthorizationServer } from "../../../test/support/authorization-server.ts";
import { failure, groundOn, RESOURCE } from "../../../test/support/grant-ground.ts";
import { DPoPKey } from "./dpop.ts";
import { enterpriseManaged, type EnterpriseManagedOptions } from "./enterprise.ts";

const TYPE = "urn:ietf:params:oauth:token-type:";
const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const part = (claims: object): string => Buffer.from(JSON.stringify(claims)).toString("base64url");
const idToken = `${part({ alg: "ES256" })}.${part({ iss: "https://idp.example", sub: "ann" })}.c2ln`;
const jag = "jag.of.ann";
const secret = "s3cret-of-the-client";
const idpSecret = "s3cret-at-the-idp";

let server: AuthorizationServer;
let idp: AuthorizationServer;

beforeEach(async () => {
  [server, idp] = await Promise.all([openAuthorizationServer(), openAuthorizationServer()]);
  server.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_basic"];
  server.pages.set("/token", (_asked, response) => json(response, 200, { access_token: "t", token_type: "Bearer" }));
  idp.metadataPath = "/.well-known/openid-configuration";
  idp.pages.set("/token", (_asked, response) => exchanged(response));
});

afterEach(() => Promise.all([server.close(), idp.close()]));

const exchanged = (response: Parameters<typeof json>[0], more: object = {}): void =>
  json(response, 200, { access_token: jag, issued_token_type: `${TYPE}id-jag`, token_type: "N_A", ...more });

const options = (more: Partial<EnterpriseManagedOptions> = {}): EnterpriseManagedOptions => ({
  idp: { issuer: idp.url, client: { id: "at-idp" } },
  idToken,
  client: { id: "at-end", secret },
  ...more,
});

describe("enterprise-managed authorization", () => {
  it("is kept apart from that of others where nobody says whose it is", () => {
    expect(enterpriseManaged(options({ idToken: () => idToken })).isNameless).toBe(true);
    expect(enterpriseManaged(options({ idToken: () => idToken, subject: "ann" })).isNameless).toBe(false);
    expect(enterpriseManaged(options()).isNameless).toBe(false);
  });

  it("exchanges what the person has at the identity provider, and what it gives at the end's server", async () => {
    const grant = enterpriseManaged(options());
    expect(grant).toMatchObject({
      kind: JWT_BEARER,
      identity: "at-end at-idp ann of https://idp.example",
      interactive: false,
    });
    expect(await grant.obtain(groundOn(server, { scope: "read write" }))).toMatchObject({ access_token: "t" });

    const [exchange, ...more] = idp.at("/token");
    expect([more, exchange?.headers.authorization]).toEqual([[], undefined]);
    expect(Object.fromEntries(exchange?.form ?? [])).toEqual({
      audience: server.url,
      client_id: "at-idp",
      grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
      requested_token_type: `${TYPE}id-jag`,
      resource: RESOURCE,
      scope: "read write",
      subject_token: idToken,
      subject_token_type: `${TYPE}id_token`,
    });

    const [asked, ...others] = server.at("/token");
    expect(others).toEqual([]);
    expect(asked?.headers.authorization).toBe(`Basic ${Buffer.from(`at-end:${secret}`).toString("base64")}`);
    expect(Object.fromEntries(asked?.form ?? [])).toEqual({
      assertion: jag,
      grant_type: JWT_BEARER,
      resource: RESOURCE,
      scope: "read write",
    });
    expect(JSON.stringify(server.asked)).not.toContain(idToken);
  });

  it("asks for no more than the organization allows", async () => {
    idp.pages.set("/token", (_asked, response) => exchanged(response, { scope: "read" }));
    await enterpriseManaged(options()).obtain(groundOn(server, { scope: "read write" }));
    expect(server.at("/token")[0]?.form.get("scope")).toBe("read");
  });

  it("looks nothing up where the token endpoint is given, and shows a secret there", async () => {
    const client = { id: "at-idp", secret: idpSecret, authMethod: "client_secret_post" };
    await enterpriseManaged(options({ idp: { tokenEndpoint: `${idp.url}/token`, client } })).obtain(groundOn(server));
    expect(idp.asked.map(({ path }) => path)).toEqual(["/token"]);
    expect(idp.at("/token")[0]?.form.get("client_secret")).toBe(idpSecret);
    expect(idp.at("/token")[0]?.form.has("scope")).toBe(false);
  });

  it("finds the metadata of an identity provider that is a plain authorization server", async () => {
    idp.metadataPath = "/.well-known/oauth-authorization-server";
    await enterpriseManaged(options()).obtain(groundOn(server));
    expect(idp.asked.map(({ path }) => path)).toEqual([
      "/.well-known/openid-configuration",
      "/.well-known/oauth-authorization-server",
      "/token",
    ]);
  });

  it("takes a SAML assertion, and a fresh one each time", async () => {
    let count = 0;
    const audiences: string[] = [];
    const grant = enterpriseManaged(
      options({
        idToken: ({ audience }) => {
          audiences.push(audience);
          count += 1;
          return Promise.resolve(`saml-${count}`);
        },
        idTokenType: "saml2",
        subject: "bob",
      }),
    );
    expect(grant.identity).toBe("at-end at-idp bob");
    await grant.obtain(groundOn(server));
    await grant.obtain(groundOn(server));
    const forms = idp.at("/token").map(({ form }) => [form.get("subject_token"), form.get("subject_token_type")]);
    expect(forms).toEqual([
      ["saml-1", `${TYPE}saml2`],
      ["saml-2", `${TYPE}saml2`],
    ]);
    expect(audiences).toEqual([idp.url, idp.url]);
  });

  it("uses the client of the flow where none is given", async () => {
    const known = {
      client: { client_id: "known" },
      auth: (_s: unknown, _c: unknown, body: URLSearchParams) => body.set("client_id", "known"),
    };
    const { client: _, ...rest } = options();
    await enterpriseManaged(rest).obtain(groundOn(server, { client: () => Promise.resolve(known) }));
    expect(server.at("/token")[0]?.form.get("client_id")).toBe("known");
  });

  it("binds the end's token to a key, and not what the identity provider gives", async () => {
    const ground = groundOn(server);
    const key = await DPoPKey.create();
    await enterpriseManaged(options()).obtain({ ...ground, http: { ...ground.http, DPoP: key.handle } });
    expect(idp.at("/token")[0]?.headers["dpop"]).toBeUndefined();
    expect(server.at("/token")[0]?.headers["dpop"]).toEqual(expect.any(String));
  });
});

describe("a refusal in enterprise-managed authorization", () => {
  it("of the identity provider is its last word: the end's server is not asked", async () => {
    idp.pages.set("/token", ({ form }, response) =>
      json(response, 403, { error: "access_denied", error_description: `not for ${form.get("subject_token")}` }),
    );
    const error = await failure(enterpriseManaged(options()), groundOn(server), idToken, secret);
    expect(error.kind).toBe("unauthorized");
    expect(error.message).toContain("access_denied");
    expect(error.message).toContain(idp.url);
    expect(idp.at("/token")).toHaveLength(1);
    expect(server.at("/token")).toEqual([]);
  });

  it("of the end's server is told, and not tried again", async () => {
    server.pages.set("/token", ({ form }, response) =>
      json(response, 400, { error: "invalid_grant", error_description: `${form.get("assertion")} is bad` }),
    );
    const error = await failure(enterpriseManaged(options()), groundOn(server), idToken, secret, jag);
    expect(error.message).toContain("invalid_grant");
    expect(error.message).toContain(`trusts ${idp.url}`);
    expect([idp.at("/token").length, server.at("/token").length]).toEqual([1, 1]);
  });

  it("is what anything but the assertion is met with", async () => {
    idp.pages.set("/token", (_asked, response) =>
      json(response, 200, { access_token: jag, issued_token_type: `${TYPE}access_token`, token_type: "Bearer" }),
    );
    expect((await failure(enterpriseManaged(options()), groundOn(server), jag)).message).toContain("something else");
    idp.pages.set("/token", (_asked, response) => exchanged(response, { token_type: "mac" }));
    await failure(enterpriseManaged(options()), groundOn(server), jag);
    expect(server.at("/token")).toEqual([]);
  });

  it("comes before the person's token is shown where the identity provider is another than it says", async () => {
    idp.metadata["issuer"] = "https://evil.example";
    await failure(enterpriseManaged(options()), groundOn(server), idToken);
    expect(idp.at("/token")).toEqual([]);
  });

  it("comes before anything where it is not known who the identity provider is, or by http", async () => {
    const client = { id: "at-idp" };
    const message = async (idp: EnterpriseManagedOptions["idp"]): Promise<string> =>
      (await failure(enterpriseManaged(options({ idp })), groundOn(server), idToken)).message;
    expect(await message({ client })).toContain("issuer");
    expect(await message({ client, issuer: "no address" })).toContain("issuer");
    expect(await message({ client, tokenEndpoint: "http://idp.example/token" })).toContain("https");
    expect(await message({ client, issuer: "http://idp.example" })).toContain("https");
  });

  it("keeps a client's credentials from another server than the one they are for", async () => {
    const grant = enterpriseManaged(options({ client: { id: "at-end", secret, issuer: "https://login.example" } }));
    expect(grant.fits?.(groundOn(server).server)).toContain("https://login.example");
    await failure(grant, groundOn(server), secret);
    expect([idp.asked, server.at("/token")]).toEqual([[], []]);
  });
});

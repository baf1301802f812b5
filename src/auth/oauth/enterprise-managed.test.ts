// The enterprise-managed grant with two local servers: the identity provider, which exchanges the identity token, and
// the authorization server, which issues the access token.

import { afterEach, beforeEach, expect, it } from "vitest";
import {
  json,
  openAuthorizationServer,
  type AuthorizationServer,
} from "../../../test/support/auth/authorization-server.ts";
import { failure, grantContext, RESOURCE } from "../../../test/support/auth/grant-context.ts";
import { DPoPKey } from "./keys.ts";
import { enterpriseManaged, type EnterpriseManagedOptions } from "./grants.ts";

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
  server.pages.set("/token", (_request, response) => json(response, 200, { access_token: "t", token_type: "Bearer" }));
  idp.metadataPath = "/.well-known/openid-configuration";
  idp.pages.set("/token", (_request, response) => sendAssertion(response));
});

afterEach(() => Promise.all([server.close(), idp.close()]));

const sendAssertion = (response: Parameters<typeof json>[0], more: object = {}): void =>
  json(response, 200, { access_token: jag, issued_token_type: `${TYPE}id-jag`, token_type: "N_A", ...more });

const options = (more: Partial<EnterpriseManagedOptions> = {}): EnterpriseManagedOptions => ({
  idp: { issuer: idp.url, client: { id: "at-idp" } },
  idToken,
  client: { id: "at-server", secret },
  ...more,
});

it("enterprise-managed authorization is kept in memory only if the subject is unknown", () => {
  expect(enterpriseManaged(options({ idToken: () => idToken })).memoryOnly).toBe(true);
  expect(enterpriseManaged(options({ idToken: () => idToken, subject: "ann" })).memoryOnly).toBe(false);
  expect(enterpriseManaged(options()).memoryOnly).toBe(false);
});

it("enterprise-managed authorization exchanges the identity token for an assertion, and the assertion for an access token", async () => {
  const grant = enterpriseManaged(options());
  expect(grant).toMatchObject({
    grantType: JWT_BEARER,
    identity: "at-server at-idp ann of https://idp.example",
    interactive: false,
  });
  expect(await grant.obtain(grantContext(server, { scope: "read write" }))).toMatchObject({ access_token: "t" });

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

  const [request, ...others] = server.at("/token");
  expect(others).toEqual([]);
  expect(request?.headers.authorization).toBe(`Basic ${Buffer.from(`at-server:${secret}`).toString("base64")}`);
  expect(Object.fromEntries(request?.form ?? [])).toEqual({
    assertion: jag,
    grant_type: JWT_BEARER,
    resource: RESOURCE,
    scope: "read write",
  });
  expect(JSON.stringify(server.requests)).not.toContain(idToken);
});

it("enterprise-managed authorization requests only the scopes that the organization allows", async () => {
  idp.pages.set("/token", (_request, response) => sendAssertion(response, { scope: "read" }));
  await enterpriseManaged(options()).obtain(grantContext(server, { scope: "read write" }));
  expect(server.at("/token")[0]?.form.get("scope")).toBe("read");
});

it("enterprise-managed authorization looks up no metadata with a token endpoint, and authenticates there", async () => {
  const client = { id: "at-idp", secret: idpSecret, authMethod: "client_secret_post" };
  await enterpriseManaged(options({ idp: { tokenEndpoint: `${idp.url}/token`, client } })).obtain(grantContext(server));
  expect(idp.requests.map(({ path }) => path)).toEqual(["/token"]);
  expect(idp.at("/token")[0]?.form.get("client_secret")).toBe(idpSecret);
  expect(idp.at("/token")[0]?.form.has("scope")).toBe(false);
});

it("enterprise-managed authorization finds the metadata of an identity provider without OpenID", async () => {
  idp.metadataPath = "/.well-known/oauth-authorization-server";
  await enterpriseManaged(options()).obtain(grantContext(server));
  expect(idp.requests.map(({ path }) => path)).toEqual([
    "/.well-known/openid-configuration",
    "/.well-known/oauth-authorization-server",
    "/token",
  ]);
});

it("enterprise-managed authorization accepts a SAML assertion, and requests a fresh one each time", async () => {
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
  expect(grant.identity).toBe("at-server at-idp bob");
  await grant.obtain(grantContext(server));
  await grant.obtain(grantContext(server));
  const forms = idp.at("/token").map(({ form }) => [form.get("subject_token"), form.get("subject_token_type")]);
  expect(forms).toEqual([
    ["saml-1", `${TYPE}saml2`],
    ["saml-2", `${TYPE}saml2`],
  ]);
  expect(audiences).toEqual([idp.url, idp.url]);
});

it("enterprise-managed authorization uses the client of oauth() by default", async () => {
  const known = {
    client: { client_id: "known" },
    auth: (_s: unknown, _c: unknown, body: URLSearchParams) => body.set("client_id", "known"),
  };
  const { client: _, ...rest } = options();
  await enterpriseManaged(rest).obtain(grantContext(server, { client: () => Promise.resolve(known) }));
  expect(server.at("/token")[0]?.form.get("client_id")).toBe("known");
});

it("enterprise-managed authorization binds the access token to a key, but not the assertion", async () => {
  const context = grantContext(server);
  const key = await DPoPKey.create();
  await enterpriseManaged(options()).obtain({ ...context, http: { ...context.http, DPoP: key.handle } });
  expect(idp.at("/token")[0]?.headers["dpop"]).toBeUndefined();
  expect(server.at("/token")[0]?.headers["dpop"]).toEqual(expect.any(String));
});

it("refuses unknown options", () => {
  const create = (more: object) => (): unknown => enterpriseManaged({ ...options(), ...more });
  expect(create({ idtoken: "x" })).toThrow("enterpriseManaged() has no option `idtoken`; did you mean `idToken`?");
  expect(create({ idp: { client: { id: "c" }, isuer: "x" } })).toThrow("`idp` of enterpriseManaged() has no option");
  expect(create({ idp: { client: { id: "c", issuer: "x" } } })).toThrow("`idp.client` of enterpriseManaged()");
  expect(create({ client: { id: "c", secrets: "x" } })).toThrow("`client` of enterpriseManaged() has no option");
  expect(create({ idp: undefined })).toThrow("`idp` of enterpriseManaged(): the options must be an object");
});

it("a failed enterprise-managed grant ends at the identity provider's refusal, without a request to the authorization server", async () => {
  idp.pages.set("/token", ({ form }, response) =>
    json(response, 403, { error: "access_denied", error_description: `not for ${form.get("subject_token")}` }),
  );
  const error = await failure(enterpriseManaged(options()), grantContext(server), idToken, secret);
  expect(error.kind).toBe("unauthorized");
  expect(error.message).toContain("access_denied");
  expect(error.message).toContain(idp.url);
  expect(idp.at("/token")).toHaveLength(1);
  expect(server.at("/token")).toEqual([]);
});

it("a failed enterprise-managed grant reports the authorization server's refusal, and is not retried", async () => {
  server.pages.set("/token", ({ form }, response) =>
    json(response, 400, { error: "invalid_grant", error_description: `${form.get("assertion")} is bad` }),
  );
  const error = await failure(enterpriseManaged(options()), grantContext(server), idToken, secret, jag);
  expect(error.message).toContain("invalid_grant");
  expect(error.message).toContain(`trusts ${idp.url}`);
  expect([idp.at("/token").length, server.at("/token").length]).toEqual([1, 1]);
});

it("a failed enterprise-managed grant refuses a response without the assertion", async () => {
  idp.pages.set("/token", (_request, response) =>
    json(response, 200, { access_token: jag, issued_token_type: `${TYPE}access_token`, token_type: "Bearer" }),
  );
  expect((await failure(enterpriseManaged(options()), grantContext(server), jag)).message).toContain(
    "did not issue an ID-JAG",
  );
  idp.pages.set("/token", (_request, response) => sendAssertion(response, { token_type: "mac" }));
  await failure(enterpriseManaged(options()), grantContext(server), jag);
  expect(server.at("/token")).toEqual([]);
});

it("a failed enterprise-managed grant keeps the identity token from an identity provider with another issuer", async () => {
  idp.metadata["issuer"] = "https://evil.example";
  await failure(enterpriseManaged(options()), grantContext(server), idToken);
  expect(idp.at("/token")).toEqual([]);
});

it("a failed enterprise-managed grant sends nothing if the identity provider is unknown, or uses http", async () => {
  const client = { id: "at-idp" };
  const message = async (idp: EnterpriseManagedOptions["idp"]): Promise<string> =>
    (await failure(enterpriseManaged(options({ idp })), grantContext(server), idToken)).message;
  expect(await message({ client })).toContain("issuer");
  expect(await message({ client, issuer: "not a URL" })).toContain("issuer");
  expect(await message({ client, tokenEndpoint: "http://idp.example/token" })).toContain("https");
  expect(await message({ client, issuer: "http://idp.example" })).toContain("https");
});

it("a failed enterprise-managed grant keeps the client's credentials from other servers", async () => {
  const grant = enterpriseManaged(options({ client: { id: "at-server", secret, issuer: "https://login.example" } }));
  expect(grant.rejectServer?.(grantContext(server).server)).toContain("https://login.example");
  await failure(grant, grantContext(server), secret);
  expect([idp.requests, server.at("/token")]).toEqual([[], []]);
});

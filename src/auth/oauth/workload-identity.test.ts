// The workload identity grant against a local authorization server.

import { afterEach, beforeEach, expect, it } from "vitest";
import {
  json,
  openAuthorizationServer,
  type AuthorizationServer,
} from "../../../test/support/auth/authorization-server.ts";
import { failure, grantContext, RESOURCE } from "../../../test/support/auth/grant-context.ts";
import type { AssertionRequest } from "./types.ts";
import { workloadIdentity } from "./grants.ts";

const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const part = (claims: object): string => Buffer.from(JSON.stringify(claims)).toString("base64url");
const jwt = `${part({ alg: "ES256" })}.${part({ iss: "https://platform.example", sub: "job-1" })}.c2ln`;

let server: AuthorizationServer;

beforeEach(async () => {
  server = await openAuthorizationServer();
  server.pages.set("/token", (_request, response) => json(response, 200, { access_token: "t", token_type: "Bearer" }));
});

afterEach(() => server.close());

it("workload identity sends the JWT with the resource and the scope, without a client", async () => {
  const grant = workloadIdentity({ assertion: `${jwt}\n` });
  expect(grant).toMatchObject({
    grantType: JWT_BEARER,
    identity: "job-1 of https://platform.example",
    interactive: false,
  });
  expect(await grant.obtain(grantContext(server, { scope: "read" }))).toMatchObject({ access_token: "t" });
  const [request, ...others] = server.at("/token");
  expect(others).toEqual([]);
  expect(request?.headers.authorization).toBeUndefined();
  expect(Object.fromEntries(request?.form ?? [])).toEqual({
    assertion: jwt,
    grant_type: JWT_BEARER,
    resource: RESOURCE,
    scope: "read",
  });
});

it("workload identity names the configured client, as a public one", async () => {
  const grant = workloadIdentity({ assertion: jwt, clientId: "c", subject: "s" });
  expect(grant.identity).toBe("c s");
  await grant.obtain(grantContext(server));
  expect(server.at("/token")[0]?.form.get("client_id")).toBe("c");
  expect(server.at("/token")[0]?.headers.authorization).toBeUndefined();
});

it("workload identity requests a fresh JWT each time, with its audience", async () => {
  const requests: AssertionRequest[] = [];
  const grant = workloadIdentity({
    assertion: (one) => {
      requests.push(one);
      return `jwt-${requests.length}`;
    },
  });
  expect(grant.identity).toBe("workload");
  await grant.obtain(grantContext(server));
  await grant.obtain(grantContext(server));
  expect(server.at("/token").map(({ form }) => form.get("assertion"))).toEqual(["jwt-1", "jwt-2"]);
  expect(requests[0]).toMatchObject({ audience: server.url, resource: RESOURCE });
});

it("workload identity is sent to no second server, which could use it at the first", async () => {
  const other = await openAuthorizationServer();
  try {
    const grant = workloadIdentity({ assertion: jwt });
    await grant.obtain(grantContext(server));
    expect(grant.rejectServer?.(grantContext(other).server)).toContain(server.url);
    await failure(grant, grantContext(other), jwt);
    expect(other.at("/token")).toEqual([]);
  } finally {
    await other.close();
  }
});

it("workload identity is sent only to its audience, unless an issuer is configured", async () => {
  const { url } = server;
  const jwtFor = (aud: unknown): string => `${part({ alg: "ES256" })}.${part({ sub: "job-1", aud })}.c2ln`;
  const stolen = jwtFor(["https://honest.example", 1]);
  const error = await failure(workloadIdentity({ assertion: stolen }), grantContext(server), stolen);
  expect(error.message).toContain(`is for https://honest.example and is not sent to ${url}`);
  await failure(workloadIdentity({ assertion: () => stolen }), grantContext(server), stolen);
  expect(server.at("/token")).toEqual([]);
  for (const aud of [url, `${url}/`, `${url}/token`, ["x", url], undefined]) {
    await workloadIdentity({ assertion: jwtFor(aud) }).obtain(grantContext(server));
  }
  await workloadIdentity({ assertion: stolen, issuer: url }).obtain(grantContext(server));
  expect(server.at("/token")).toHaveLength(6);
});

it("workload identity is kept in memory only if the subject is unknown", () => {
  expect(workloadIdentity({ assertion: () => jwt }).memoryOnly).toBe(true);
  expect(workloadIdentity({ assertion: () => jwt, subject: "job-1" }).memoryOnly).toBe(false);
  expect(workloadIdentity({ assertion: jwt }).memoryOnly).toBe(false);
});

it("workload identity is not for a server that lists only other grants", () => {
  const metadata = { ...grantContext(server).server, grant_types_supported: ["authorization_code"] };
  expect(workloadIdentity({ assertion: jwt }).rejectServer?.(metadata)).toContain(JWT_BEARER);
});

it("refuses unknown options", () => {
  const misspelt = { assertion: jwt, clientID: "c" } as unknown as Parameters<typeof workloadIdentity>[0];
  expect(() => workloadIdentity(misspelt)).toThrow(
    new TypeError("workloadIdentity() has no option `clientID`; did you mean `clientId`?"),
  );
});

it.each(["invalid_grant", "invalid_scope", "unauthorized_client", "use_dpop_nonce"])(
  "a failed workload identity grant reports %s, and tries nothing else",
  async (code) => {
    server.pages.set("/token", ({ form }, response) =>
      json(response, 400, { error: code, error_description: `bad: ${form.get("assertion")}` }),
    );
    const error = await failure(workloadIdentity({ assertion: jwt }), grantContext(server), jwt, "c2ln");
    expect([error.kind, error.mayHaveRun]).toEqual(["unauthorized", false]);
    expect(error.message).toContain(code);
    expect(error.message).toContain(`names ${server.url} as its audience`);
    // Only use_dpop_nonce is answered with a second request.
    expect(server.at("/token")).toHaveLength(code === "use_dpop_nonce" ? 2 : 1);
  },
);

it("a failed workload identity grant reports a function that fails or returns nothing", async () => {
  const cause = new Error("the platform is down");
  const failing = await failure(workloadIdentity({ assertion: () => Promise.reject(cause) }), grantContext(server));
  expect(failing).toMatchObject({ kind: "unauthorized", cause });
  for (const assertion of ["", " \n", () => "", () => undefined as unknown as string]) {
    expect((await failure(workloadIdentity({ assertion }), grantContext(server))).message).toContain(
      "workload assertion",
    );
  }
  expect(server.at("/token")).toEqual([]);
});

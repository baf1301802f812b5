// The grant of a program whose platform vouches for it, at a small real authorization server.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { json, openAuthorizationServer, type AuthorizationServer } from "../../../test/support/authorization-server.ts";
import { failure, groundOn, RESOURCE } from "../../../test/support/grant-ground.ts";
import type { AssertionWanted } from "./assertion.ts";
import { workloadIdentity } from "./workload-identity.ts";

const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const part = (claims: object): string => Buffer.from(JSON.stringify(claims)).toString("base64url");
const jwt = `${part({ alg: "ES256" })}.${part({ iss: "https://platform.example", sub: "job-1" })}.c2ln`;

let server: AuthorizationServer;

beforeEach(async () => {
  server = await openAuthorizationServer();
  server.pages.set("/token", (_asked, response) => json(response, 200, { access_token: "t", token_type: "Bearer" }));
});

afterEach(() => server.close());

describe("workload identity", () => {
  it("is a JWT as the grant, for the end and the scope, and no client", async () => {
    const grant = workloadIdentity({ assertion: `${jwt}\n` });
    expect(grant).toMatchObject({
      kind: JWT_BEARER,
      identity: "job-1 of https://platform.example",
      interactive: false,
    });
    expect(await grant.obtain(groundOn(server, { scope: "read" }))).toMatchObject({ access_token: "t" });
    const [asked, ...others] = server.at("/token");
    expect(others).toEqual([]);
    expect(asked?.headers.authorization).toBeUndefined();
    expect(Object.fromEntries(asked?.form ?? [])).toEqual({
      assertion: jwt,
      grant_type: JWT_BEARER,
      resource: RESOURCE,
      scope: "read",
    });
  });

  it("names a client where one is given, as a public one", async () => {
    const grant = workloadIdentity({ assertion: jwt, clientId: "c", subject: "s" });
    expect(grant.identity).toBe("c s");
    await grant.obtain(groundOn(server));
    expect(server.at("/token")[0]?.form.get("client_id")).toBe("c");
    expect(server.at("/token")[0]?.headers.authorization).toBeUndefined();
  });

  it("asks for a fresh JWT each time, and says for whom", async () => {
    const wanted: AssertionWanted[] = [];
    const grant = workloadIdentity({
      assertion: (one) => {
        wanted.push(one);
        return `jwt-${wanted.length}`;
      },
    });
    expect(grant.identity).toBe("workload");
    await grant.obtain(groundOn(server));
    await grant.obtain(groundOn(server));
    expect(server.at("/token").map(({ form }) => form.get("assertion"))).toEqual(["jwt-1", "jwt-2"]);
    expect(wanted[0]).toMatchObject({ audience: server.url, resource: RESOURCE });
  });

  it("is shown to no second server: it could be used at the first", async () => {
    const other = await openAuthorizationServer();
    try {
      const grant = workloadIdentity({ assertion: jwt });
      await grant.obtain(groundOn(server));
      expect(grant.fits?.(groundOn(other).server)).toContain(server.url);
      await failure(grant, groundOn(other), jwt);
      expect(other.at("/token")).toEqual([]);
    } finally {
      await other.close();
    }
  });

  it("is shown to nobody but whom it names as its audience, unless the program says to whom", async () => {
    const { url } = server;
    const jwtFor = (aud: unknown): string => `${part({ alg: "ES256" })}.${part({ sub: "job-1", aud })}.c2ln`;
    const stolen = jwtFor(["https://honest.example", 1]);
    const error = await failure(workloadIdentity({ assertion: stolen }), groundOn(server), stolen);
    expect(error.message).toContain(`is for https://honest.example and is not shown to ${url}`);
    await failure(workloadIdentity({ assertion: () => stolen }), groundOn(server), stolen);
    expect(server.at("/token")).toEqual([]);
    for (const aud of [url, `${url}/`, `${url}/token`, ["x", url], undefined]) {
      await workloadIdentity({ assertion: jwtFor(aud) }).obtain(groundOn(server));
    }
    await workloadIdentity({ assertion: stolen, issuer: url }).obtain(groundOn(server));
    expect(server.at("/token")).toHaveLength(6);
  });

  it("is kept apart from that of others where nobody says whose it is", () => {
    expect(workloadIdentity({ assertion: () => jwt }).isNameless).toBe(true);
    expect(workloadIdentity({ assertion: () => jwt, subject: "job-1" }).isNameless).toBe(false);
    expect(workloadIdentity({ assertion: jwt }).isNameless).toBe(false);
  });

  it("is not for a server that lists other grants only", () => {
    const metadata = { ...groundOn(server).server, grant_types_supported: ["authorization_code"] };
    expect(workloadIdentity({ assertion: jwt }).fits?.(metadata)).toContain(JWT_BEARER);
  });
});

describe("a refusal of workload identity", () => {
  it.each(["invalid_grant", "invalid_scope", "unauthorized_client", "use_dpop_nonce"])(
    "for %s is told, and nothing else is tried",
    async (code) => {
      server.pages.set("/token", ({ form }, response) =>
        json(response, 400, { error: code, error_description: `bad: ${form.get("assertion")}` }),
      );
      const error = await failure(workloadIdentity({ assertion: jwt }), groundOn(server), jwt, "c2ln");
      expect([error.kind, error.mayHaveRun]).toEqual(["unauthorized", false]);
      expect(error.message).toContain(code);
      expect(error.message).toContain(`names ${server.url} as its audience`);
      // The one code that asks for a second request gets it, but no third.
      expect(server.at("/token")).toHaveLength(code === "use_dpop_nonce" ? 2 : 1);
    },
  );

  it("is a function that fails, or gives nothing", async () => {
    const cause = new Error("the platform is away");
    const failing = await failure(workloadIdentity({ assertion: () => Promise.reject(cause) }), groundOn(server));
    expect(failing).toMatchObject({ kind: "unauthorized", cause });
    for (const assertion of ["", " \n", () => "", () => undefined as unknown as string]) {
      expect((await failure(workloadIdentity({ assertion }), groundOn(server))).message).toContain(
        "workload assertion",
      );
    }
    expect(server.at("/token")).toEqual([]);
  });
});

// A person's consent: what comes back from the authorization server and is not accepted, and the exchange of the code.
// The happy way stands in flow.test.ts.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type AuthorizationServer,
  consenting,
  json,
  openAuthorizationServer,
} from "../../../test/support/authorization-server.ts";
import { openServer, type ProtectedServer, send } from "../../../test/support/protected-end.ts";
import { oauth } from "./oauth.ts";
import type { Redirect } from "./redirect.ts";

let server: AuthorizationServer;
let end: ProtectedServer;

beforeEach(async () => {
  server = await openAuthorizationServer();
  end = await openServer(server);
});

afterEach(async () => {
  await Promise.all([server.close(), end.close()]);
});

/** Somebody changes the address on the way back. */
const meddling = (change: (back: URLSearchParams) => void): Redirect => {
  const person = consenting();
  return {
    uri: person.uri,
    visit: async (url, options) => {
      const back = await person.visit(url, options);
      change(back.searchParams);
      return back;
    },
  };
};

const attempted = (redirect: Redirect): Promise<number> => send(oauth({ redirect }), end.url);

describe("what comes back from the authorization server", () => {
  it("need not name an issuer where the server does not promise to", async () => {
    server.iss = undefined;
    delete server.metadata["authorization_response_iss_parameter_supported"];
    expect(await attempted(consenting())).toBe(200);
  });

  it.each([
    ["missing though promised", true, undefined],
    ["of another", true, "https://evil.example"],
    ["of another, though not promised", false, "https://evil.example"],
    ["the same but for a slash", true, "slash"],
  ])("is not accepted where its issuer is %s", async (_what, promised, iss) => {
    server.metadata["authorization_response_iss_parameter_supported"] = promised;
    server.iss = iss === "slash" ? `${server.url}/` : iss;
    await expect(attempted(consenting())).rejects.toThrow(/accepting what came back .* "iss"/);
    expect(server.at("/token")).toEqual([]);
  });

  it.each([
    ["wrong", (back: URLSearchParams) => back.set("state", "another")],
    ["missing", (back: URLSearchParams) => back.delete("state")],
    ["there twice", (back: URLSearchParams) => back.append("state", "another")],
  ])("is not accepted where its state is %s", async (_what, change) => {
    await expect(attempted(meddling(change))).rejects.toThrow(/accepting what came back .* "state"/);
    expect(server.at("/token")).toEqual([]);
  });

  it("is told where it is an error", async () => {
    const denied = meddling((back) => {
      back.delete("code");
      back.set("error", "access_denied");
      back.set("error_description", "not today");
    });
    await expect(attempted(denied)).rejects.toThrow("access_denied (not today)");
  });

  it("is not even shown where it is an error of another issuer", async () => {
    const denied = meddling((back) => {
      back.delete("code");
      back.set("iss", "https://evil.example");
      back.set("error", "access_denied");
      back.set("error_description", "call this number");
    });
    const sent = attempted(denied);
    await expect(sent).rejects.toThrow("iss");
    await expect(sent).rejects.not.toThrow("call this number");
  });
});

describe("the exchange of the code", () => {
  it("does not follow a redirect with it", async () => {
    server.pages.set("/token", (_asked, response) =>
      response.writeHead(307, { location: `${server.url}/thief` }).end(),
    );
    await expect(attempted(consenting())).rejects.toThrow("a redirect, which is not followed here");
    expect(server.at("/thief")).toEqual([]);
  });

  it.each([
    ["no token", { token_type: "Bearer" }, "access_token"],
    [
      "a token that would end a header",
      { access_token: "a\r\nx: y", token_type: "Bearer" },
      "cannot stand in a header",
    ],
    ["a token of another kind", { access_token: "a", token_type: "mac" }, "token_type"],
    ["a token for a key that was never shown", { access_token: "a", token_type: "DPoP" }, "oauth({ dpop: true })"],
  ])("takes nothing but what it asked for: %s", async (_what, body, text) => {
    server.pages.set("/token", (_asked, response) => json(response, 200, body));
    await expect(attempted(consenting())).rejects.toThrow(text);
  });

  it.each([
    ["our own fetch", {}],
    ["a fetch of the program's", { fetch: globalThis.fetch }],
  ])("reads no endless answer, by %s", async (_what, how) => {
    server.pages.set("/token", (_asked, response) => json(response, 200, { access_token: "a".repeat(2_000_000) }));
    await expect(send(oauth({ redirect: consenting(), ...how }), end.url)).rejects.toThrow("1048576 bytes");
  });
});

describe("the way of the person", () => {
  it("keeps what the server's address had in its query", async () => {
    server.metadata["authorization_endpoint"] = `${server.url}/authorize?tenant=one`;
    const redirect = consenting();
    expect(await attempted(redirect)).toBe(200);
    expect(redirect.visited[0]?.searchParams.get("tenant")).toBe("one");
  });

  it("carries only the name of the request where the server wants the request beforehand", async () => {
    server.metadata["require_pushed_authorization_requests"] = true;
    server.metadata["pushed_authorization_request_endpoint"] = `${server.url}/par`;
    let pushed = new URLSearchParams();
    server.pages.set("/par", ({ form }, response) => {
      pushed = form;
      json(response, 201, { request_uri: "urn:request:1", expires_in: 60 });
    });
    server.pages.set("/authorize", (asked, response) => {
      server.pages.delete("/authorize");
      server.answer({ ...asked, query: pushed }, response);
    });
    const redirect = consenting();
    expect(await attempted(redirect)).toBe(200);
    expect([...(redirect.visited[0]?.searchParams.keys() ?? [])]).toEqual(["client_id", "request_uri", "state"]);
    expect(pushed.get("code_challenge_method")).toBe("S256");
  });

  it("does not come back in the open over a network", async () => {
    const redirect = consenting("http://app.example/callback");
    await expect(attempted(redirect)).rejects.toThrow("must be https, or http on this machine");
    expect(server.at("/register")).toEqual([]);
  });

  it("that fails is told without where it led", async () => {
    const redirect: Redirect = {
      uri: "http://127.0.0.1:9/callback",
      visit: () => Promise.reject(new Error("no browser")),
    };
    await expect(attempted(redirect)).rejects.toThrow(
      `waiting for a person to come back from ${server.url}: no browser`,
    );
  });
});

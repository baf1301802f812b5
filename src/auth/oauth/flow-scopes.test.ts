// Which scopes are asked for on the way to a token, how a token is widened, and when that ends.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type AuthorizationServer,
  consenting,
  openAuthorizationServer,
} from "../../../test/support/authorization-server.ts";
import { openServer, type ProtectedServer, send } from "../../../test/support/protected-end.ts";
import { oauth } from "./oauth.ts";

let server: AuthorizationServer;
let end: ProtectedServer;

beforeEach(async () => {
  server = await openAuthorizationServer();
  end = await openServer(server);
});

afterEach(async () => {
  await Promise.all([server.close(), end.close()]);
});

describe("scopes", () => {
  const asked = (redirect: { visited: readonly URL[] }): (string | null)[] =>
    redirect.visited.map((url) => url.searchParams.get("scope"));

  it("takes what the refusal names, not what the metadata lists", async () => {
    const redirect = consenting();
    end.metadata = { ...end.metadata, scopes_supported: ["listed"] };
    end.needs = () => ["named"];
    await send(oauth({ redirect }), end.url);
    expect(asked(redirect)).toEqual(["named"]);
  });

  it("takes what the metadata lists where the refusal names none, and adds what the program wants", async () => {
    const redirect = consenting();
    end.metadata = { ...end.metadata, scopes_supported: ["one", "two"] };
    await send(oauth({ redirect, scopes: ["mine"] }), end.url);
    expect(asked(redirect)).toEqual(["one two mine"]);
  });

  it("asks for offline_access, and for consent to it, only of a server that lists it", async () => {
    const redirect = consenting();
    end.needs = () => ["read"];
    await send(oauth({ redirect }), end.url);
    server.metadata["scopes_supported"] = ["read", "offline_access"];
    await send(oauth({ redirect }), end.url);
    expect(asked(redirect)).toEqual(["read", "read offline_access"]);
    expect(redirect.visited.map((url) => url.searchParams.get("prompt"))).toEqual([null, "consent"]);
  });

  it("widens a token that is too narrow, and keeps what it could do", async () => {
    const redirect = consenting();
    const auth = oauth({ redirect });
    end.needs = ({ method }) => (method === "POST" ? ["write"] : ["read"]);
    expect(await send(auth, end.url, "GET")).toBe(200);
    expect(await send(auth, end.url, "POST")).toBe(200);
    expect(asked(redirect)).toEqual(["read", "read write"]);
    expect(server.at("/register")).toHaveLength(1);
  });

  it("does not ask twice for what was not granted", async () => {
    const redirect = consenting();
    server.grants = () => "read";
    end.needs = () => ["admin"];
    const sent = send(oauth({ redirect }), end.url);
    await expect(sent).rejects.toThrow(/wants the scope "admin" for this: .* gave only "read"/);
    expect(redirect.visited).toHaveLength(1);
  });

  it.each([
    [undefined, 3],
    [1, 1],
    [5, 5],
  ])("gives up an end that always wants more (%s: %i authorizations)", async (maxStepUps, count) => {
    const redirect = consenting();
    let wish = 0;
    end.needs = () => [`wish-${(wish += 1)}`];
    const auth = oauth({ redirect, ...(maxStepUps === undefined ? undefined : { maxStepUps }) });
    await expect(send(auth, end.url)).rejects.toThrow("given up");
    expect(redirect.visited).toHaveLength(count);
  });
});

// Who is let in over HTTP by the commands: by a config's token, by one that is made where code can be evaluated, or
// without any. Nothing is listened on here.

import { describe, expect, it } from "vitest";
import type { Authenticator } from "../../core/authentication.ts";
import type { Handler } from "../../core/handler.ts";
import { EVALUATES_CODE } from "../../core/evaluates-code.ts";
import { admission } from "./admission.ts";

const plain: Handler = async () => ({});
const live: Handler = async () => ({});
Object.defineProperty(live, EVALUATES_CODE, { value: true });

async function lets(auth: Authenticator | false | undefined, token: string): Promise<boolean> {
  if (auth === undefined || auth === false) throw new Error("Nobody is asked");
  const headers = { authorization: `Bearer ${token}` };
  return auth.authenticate({ headers, endpoint: "http://127.0.0.1/mcp" }).then(
    () => true,
    () => false,
  );
}

describe("who is let in", () => {
  it("is everybody where no code is run", async () => {
    expect(await admission(plain, { isUnasked: false })).toEqual({ http: {}, told: {} });
    expect(await admission(plain, { isUnasked: true })).toEqual({ http: {}, told: {} });
  });

  it.each([plain, live])("is whoever has the token of the config, which is not told", async (handler) => {
    const { http, told } = await admission(handler, { token: "s3cret", path: "catenary.json", isUnasked: false });
    expect(told).toEqual({ tokenIn: "catenary.json", isLive: handler === live });
    expect(await lets(http.auth, "s3cret")).toBe(true);
    expect(await lets(http.auth, "s3cre")).toBe(false);
  });

  it("is whoever has the token that is made where code can be run, another each time", async () => {
    const made = [await admission(live, { isUnasked: false }), await admission(live, { isUnasked: false })];
    const [first = "", second = ""] = made.map(({ told }) => told.token);
    expect(first).toMatch(/^[\w-]{43}$/);
    expect(second).not.toBe(first);
    expect(await lets(made[0]?.http.auth, first)).toBe(true);
    expect(await lets(made[0]?.http.auth, second)).toBe(false);
  });

  it("hears where a token that was made is found", async () => {
    const { auth } = (await admission(live, { isUnasked: false })).http;
    if (auth === undefined || auth === false) throw new Error("Nobody is asked");
    const endpoint = "http://127.0.0.1/mcp";
    await expect(auth.authenticate({ headers: {}, endpoint })).rejects.toMatchObject({
      status: 401,
      message: "A token is needed to call this; it was printed when the server was started",
    });
    await expect(auth.authenticate({ headers: { authorization: "Bearer wrong" }, endpoint })).rejects.toMatchObject({
      status: 401,
      message: "The token is not known here; it was printed when the server was started",
    });
  });

  it("is everybody where a person wants it so, but not against the config", async () => {
    expect(await admission(live, { isUnasked: true })).toEqual({
      http: { auth: false },
      told: { isLive: true, isOpen: true },
    });
    await expect(admission(live, { token: "s3cret", path: "catenary.json", isUnasked: true })).rejects.toThrow(
      "--no-token: catenary.json asks for one, under listen.token; take it out there",
    );
  });
});

// Who may call over HTTP: with the token of the config, with a generated one if callers can run code, or without any.

import { expect, it } from "vitest";
import type { Authenticator } from "../../core/authentication.ts";
import type { Handler } from "../../core/handler.ts";
import { EVALUATES_CODE } from "../../core/handler-marks.ts";
import { setUpToken } from "./token.ts";

const plain: Handler = async () => ({});
const live: Handler = async () => ({});
Object.defineProperty(live, EVALUATES_CODE, { value: true });

async function accepts(auth: Authenticator | false | undefined, token: string): Promise<boolean> {
  if (auth === undefined || auth === false) throw new Error("No authenticator");
  const headers = { authorization: `Bearer ${token}` };
  return auth.authenticate({ headers, endpoint: "http://127.0.0.1/mcp" }).then(
    () => true,
    () => false,
  );
}

it("access is open if no code can be run", async () => {
  const howToRequire = "--require-token";
  expect(await setUpToken(plain, { noToken: false })).toEqual({ http: {}, banner: { howToRequire } });
  const required = await setUpToken(plain, { generated: "kept", isRequired: true, noToken: false });
  expect(required).toMatchObject({ http: { auth: {} }, banner: { token: "kept", evaluatesCode: false } });
  expect(await setUpToken(plain, { noToken: true })).toEqual({ http: {}, banner: {} });
});

it.each([plain, live])("access needs the token of the config, which is not shown", async (handler) => {
  const { http, banner } = await setUpToken(handler, { token: "s3cret", path: "catenary.json", noToken: false });
  expect(banner).toEqual({ tokenIn: "catenary.json", evaluatesCode: handler === live });
  expect(await accepts(http.auth, "s3cret")).toBe(true);
  expect(await accepts(http.auth, "s3cre")).toBe(false);
});

it("access needs the token of a caller, whose name is its identity; callers may change", async () => {
  let callers = new Map([
    ["ada", { token: "ada-key" }],
    ["bob", { token: "bob-key" }],
  ]);
  const options = { token: "s3cret", callers: () => callers, path: "catenary.json", noToken: false };
  const { http } = await setUpToken(plain, options);
  const { auth } = http;
  if (auth === undefined || auth === false) throw new Error("No authenticator");
  const who = async (token: string): Promise<string> => {
    const headers = { authorization: `Bearer ${token}` };
    return (await auth.authenticate({ headers, endpoint: "http://127.0.0.1/mcp" })).principal;
  };
  expect([await who("ada-key"), await who("bob-key")]).toEqual(["ada", "bob"]);
  expect(await who("s3cret")).toBe("bearer of the token");
  callers = new Map([["ada", { token: "new-key" }]]);
  expect(await who("new-key")).toBe("ada");
  for (const token of ["ada-key", "bob-key", "", "ada"]) expect(await accepts(auth, token)).toBe(false);
  const alone = { callers: () => callers, path: "catenary.json", noToken: false };
  expect((await setUpToken(plain, alone)).banner).toMatchObject({ tokenKey: "the token of a caller" });
  await expect(setUpToken(plain, { ...alone, noToken: true })).rejects.toThrow("--no-token contradicts callers in");
});

it("access needs a generated token if code can be run, another one each time", async () => {
  const made = [await setUpToken(live, { noToken: false }), await setUpToken(live, { noToken: false })];
  const [first = "", second = ""] = made.map(({ banner }) => banner.token);
  expect(first).toMatch(/^[\w-]{43}$/);
  expect(second).not.toBe(first);
  expect(await accepts(made[0]?.http.auth, first)).toBe(true);
  expect(await accepts(made[0]?.http.auth, second)).toBe(false);
});

it("access is refused with a hint where to find a generated token", async () => {
  const { auth } = (await setUpToken(live, { noToken: false })).http;
  if (auth === undefined || auth === false) throw new Error("No authenticator");
  const endpoint = "http://127.0.0.1/mcp";
  await expect(auth.authenticate({ headers: {}, endpoint })).rejects.toMatchObject({
    status: 401,
    message: "A token is required; it was printed when the server was started",
  });
  await expect(auth.authenticate({ headers: { authorization: "Bearer wrong" }, endpoint })).rejects.toMatchObject({
    status: 401,
    message: "The token is unknown; it was printed when the server was started",
  });
});

it("access is refused with a hint where a token of the config goes", async () => {
  const callers = new Map([["ada", { token: "ada-key" }]]);
  const { auth } = (await setUpToken(plain, { callers: () => callers, path: "c.json", noToken: false })).http;
  if (auth === undefined || auth === false) throw new Error("No authenticator");
  await expect(auth.authenticate({ headers: {}, endpoint: "http://127.0.0.1/mcp" })).rejects.toMatchObject({
    status: 401,
    message: expect.stringMatching(/^A token is required; send the header Authorization: Bearer TOKEN, .*callers/),
  });
});

it("access is open with --no-token, unless the config has a token", async () => {
  expect(await setUpToken(live, { noToken: true })).toEqual({
    http: { auth: false },
    banner: { evaluatesCode: true, isOpen: true },
  });
  await expect(setUpToken(live, { token: "s3cret", path: "catenary.json", noToken: true })).rejects.toThrow(
    "--no-token contradicts listen.token in catenary.json; remove one of them",
  );
});

// Where we do not ask, whoever names the address: by plain http, in private networks, on this machine for an end that
// is not on it.

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

const connected = (): Promise<number> => send(oauth({ redirect: consenting() }), end.url);

describe("addresses without https", () => {
  it("are not asked for an end elsewhere: not its metadata, not its server", async () => {
    const asked: string[] = [];
    const fetch = (url: string): Promise<Response> => {
      asked.push(url);
      return Promise.reject(new Error("must not be asked"));
    };
    const url = new URL("http://end.example/mcp");
    const sending = { method: "POST", url, signal: new AbortController().signal };
    const auth = oauth({ redirect: consenting(), fetch });
    const refused = auth.refused({ ...sending, status: 401, headers: {}, sent: {}, attempt: 1 });
    await expect(refused).rejects.toThrow("connect by https");
    expect(asked).toEqual([]);
  });

  it("are not asked for an end on this machine where the server is elsewhere", async () => {
    end.metadata = { ...end.metadata, authorization_servers: ["http://public.example"] };
    await expect(connected()).rejects.toThrow("https is needed");
  });
});

describe("addresses of private networks", () => {
  const elsewhere = { method: "POST", url: new URL("https://end.example/mcp"), signal: new AbortController().signal };
  const refused = (place: string): Promise<boolean> => {
    const headers = { "www-authenticate": `Bearer resource_metadata="${place}"` };
    const auth = oauth({ redirect: consenting() });
    return auth.refused({ ...elsewhere, status: 401, headers, sent: {}, attempt: 1 });
  };

  it.each([
    ["https://169.254.169.254/latest/meta-data", "link-local"],
    ["https://10.0.0.1/metadata", "private network"],
    ["https://localhost/metadata", "on this machine"],
    ["https://[::ffff:127.0.0.1]/metadata", "on this machine"],
  ])("are not asked for an end elsewhere: %s", async (place, why) => {
    await expect(refused(place)).rejects.toThrow(why);
  });

  it("are not asked for an end on this machine either", async () => {
    end.metadata = { ...end.metadata, authorization_servers: ["https://10.0.0.1"] };
    await expect(connected()).rejects.toThrow("allowPrivateNetwork allows that");
    server.metadata["token_endpoint"] = "https://169.254.169.254/token";
    end.metadata = { ...end.metadata, authorization_servers: [server.url] };
    await expect(connected()).rejects.toThrow("link-local");
  });
});

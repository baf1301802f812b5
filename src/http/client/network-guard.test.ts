// A table of addresses that could be used for server-side request forgery, and what happens to each. Without a network:
// names are looked up in a table.

import type { LookupAddress } from "node:dns";
import { expect, it } from "vitest";
import { ConnectionError } from "../../core/errors.ts";
import { networkGuard, type AllLookup, type NetworkGuard } from "./network-guard.ts";

const AFAR = new URL("https://mcp.example.com/mcp");
const HERE = new URL("http://127.0.0.1:3000/mcp");

/** The kind of an address, which decides if it is allowed. */
type Kind = "public" | "loopback" | "private" | "link-local" | "metadata" | "reserved" | "scheme" | "userinfo";

const SAYS: Readonly<Record<Exclude<Kind, "public">, RegExp>> = {
  loopback: /it is a loopback address/,
  private: /it is a private address; set allowPrivateNetwork to allow it/,
  "link-local": /it is a link-local address, which is never allowed/,
  metadata: /it is a cloud metadata address, which is never allowed/,
  reserved: /it is a reserved address, which is never allowed/,
  scheme: /it is not https/,
  userinfo: /it contains credentials/,
};

/** Spellings of hosts by kind. */
const HOSTS: Readonly<Record<Exclude<Kind, "scheme" | "userinfo">, readonly string[]>> = {
  public: [
    "example.com",
    "example.com.",
    "EXAMPLE.com",
    "xn--bcher-kva.example",
    "localhost.example.com",
    "notlocalhost",
    "127.0.0.1.example.com",
    "10.example",
    "8.8.8.8",
    "8.8.8.8.",
    "134744072", // 8.8.8.8
    "0x08080808",
    "010.8.8.8", // octal: 8.8.8.8
    "1.1",
    "172.15.255.255",
    "172.32.0.1",
    "192.167.1.1",
    "100.63.255.255",
    "100.128.0.1",
    "169.253.0.1",
    "11.0.0.1",
    "126.255.255.255",
    "128.0.0.1",
    "223.255.255.255",
    "[2606:4700:4700::1111]",
    "[2001:4860:4860::8888]",
    "[2a00:1450:4001:81b::200e]",
    "[::ffff:8.8.8.8]",
    "[64:ff9b::8.8.8.8]",
    "[2002:808:808::1]",
  ],
  loopback: [
    "localhost",
    "LocalHost",
    "localhost.",
    "app.localhost",
    "a.b.localhost.",
    "127.0.0.1",
    "127.0.0.1.",
    "127.1",
    "127.0.1",
    "127.255.255.254",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "017700000001",
    "0177.0.0.1",
    "0177.0x0.0.1",
    "\uFF11\uFF12\uFF17.0.0.1", // fullwidth digits
    "127\u30020\u30020\u30021", // ideographic full stops
    "%31%32%37.0.0.1",
    "\u24DB\u24DE\u24D2\u24D0\u24DB\u24D7\u24DE\u24E2\u24E3", // localhost in circles
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[0000:0000:0000:0000:0000:0000:0000:0001]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[::7f00:1]",
    "[::ffff:0:127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "[2002:7f00:0001:0:0:0:0:1]",
  ],
  private: [
    "10.0.0.1",
    "10.255.255.255",
    "10.1",
    "167772161", // 10.0.0.1
    "0x0a000001",
    "012.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "192.168.1",
    "192.168.1.254",
    "3232235777", // 192.168.1.1
    "0xC0A80101",
    "0300.0250.1.1",
    "100.64.0.1",
    "100.127.255.255",
    "[fc00::1]",
    "[fd12:3456:789a::1]",
    "[fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]",
    "[fec0::1]",
    "[::ffff:10.0.0.1]",
    "[::ffff:a00:1]",
    "[::ffff:192.168.1.1]",
    "[::10.0.0.1]",
    "[::ffff:0:10.0.0.1]",
    "[64:ff9b::10.0.0.1]",
    "[64:ff9b::c0a8:101]",
    "[2002:a00:1::1]",
    "[2002:c0a8:101::]",
  ],
  "link-local": [
    "169.254.0.1",
    "169.254.169.254",
    "169.254.169.254.",
    "169.254.43518",
    "2852039166", // 169.254.169.254
    "0xA9FEA9FE",
    "0251.0376.0251.0376",
    "0xa9.0xfe.0xa9.0xfe",
    "169.254.170.2",
    "[fe80::1]",
    "[febf:ffff::1]",
    "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "[::169.254.169.254]",
    "[64:ff9b::169.254.169.254]",
    "[64:ff9b::a9fe:a9fe]",
    "[2002:a9fe:a9fe::1]",
  ],
  metadata: [
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "[fd00:ec2::254]",
    "[FD00:0EC2:0:0:0:0:0:254]",
    "[fd20:ce::254]",
    "[::ffff:100.100.100.200]",
  ],
  reserved: [
    "0.0.0.0",
    "0",
    "0.1.2.3",
    "192.0.0.1",
    "192.0.2.1",
    "192.88.99.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "4294967295",
    "[::]",
    "[::ffff:0.0.0.0]",
    "[::2]", // the older form of 0.0.0.2
    "[100::1]",
    "[64:ff9b:1::1]",
    "[2001::1]", // Teredo
    "[2001:0:53aa:64c:0:fbd1:f5ff:fffe]",
    "[2001:2::1]",
    "[2001:10::1]",
    "[2001:20::1]",
    "[2001:db8::1]",
    "[3fff::1]",
    "[5f00::1]",
    "[4000::1]",
    "[ff02::1]",
    "[::ffff:224.0.0.1]",
  ],
};

const TABLE = Object.entries(HOSTS).flatMap(([kind, hosts]) =>
  hosts.map((host): [url: string, kind: Kind] => [`https://${host}/`, kind as Kind]),
);

const ODD: readonly [url: string, kind: Kind][] = [
  ["https://example.com:8443/a?b=c#d", "public"],
  ["https://127.0.0.1:8443/", "loopback"],
  ["https://[::1]:8443/x", "loopback"],
  ["https://localhost:1/", "loopback"],
  ["https:\\\\10.0.0.1\\x", "private"],
  ["https:10.0.0.1", "private"],
  ["https://10.0.0.1:443/", "private"],
  ["https://example.com@10.0.0.1/", "userinfo"],
  ["https://user:password@example.com/", "userinfo"],
  ["https://:password@169.254.169.254/", "userinfo"],
  ["http://example.com/", "scheme"],
  ["http://8.8.8.8/", "scheme"],
  ["http://10.0.0.1/", "scheme"],
  ["http://169.254.169.254/latest/meta-data/", "scheme"],
  ["http://metadata.google.internal/", "scheme"],
  ["ftp://example.com/", "scheme"],
  ["ws://example.com/", "scheme"],
  ["file:///etc/passwd", "scheme"],
  ["data:application/json,{}", "scheme"],
  ["blob:https://example.com/1", "scheme"],
  ["about:blank", "scheme"],
  ["unix:/var/run/docker.sock", "scheme"],
];

function verdict(guard: NetworkGuard, url: string): ConnectionError | undefined {
  try {
    guard.check(new URL(url));
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error).toMatchObject({ kind: "refused", mayHaveRun: false });
    return error as ConnectionError;
  }
}

it("a URL from a server is tested with more than a hundred cases", () => {
  expect(TABLE.length + ODD.length).toBeGreaterThan(150);
});

it.each([...TABLE, ...ODD])("a URL from a server: %s is %s", (url, kind) => {
  const plain = verdict(networkGuard({ target: AFAR }), url);
  if (kind === "public") expect(plain).toBeUndefined();
  else expect(plain?.message).toMatch(SAYS[kind]);

  const withPrivate = verdict(networkGuard({ target: AFAR, allowPrivate: true }), url);
  expect(withPrivate === undefined).toBe(kind === "public" || kind === "private");

  const local = verdict(networkGuard({ target: HERE }), url);
  expect(local === undefined).toBe(kind === "public" || kind === "loopback");
});

it.each([
  ["http://127.0.0.1:9000/as", true],
  ["http://localhost:9000/as", true],
  ["http://[::1]:9000/as", true],
  ["http://2130706433/", true],
  ["http://example.com/", false],
  ["http://10.0.0.1/", false],
  ["http://127.0.0.1.example.com/", false],
])("a URL from a server with http, for a local server: %s", (url, isAllowed) => {
  for (const target of ["http://127.0.0.1:3000/mcp", "http://localhost:3000/mcp", "https://[::1]/mcp"]) {
    const error = verdict(networkGuard({ target: new URL(target), allowPrivate: true }), url);
    expect(error === undefined).toBe(isAllowed);
  }
});

it.each(["https://10.0.0.1/", "https://0.0.0.0/", "https://localhost.example.com/", "https://169.254.1.1/"])(
  "a URL from a server does not allow loopback for the server %s",
  (target) => {
    expect(verdict(networkGuard({ target: new URL(target), allowPrivate: true }), "https://127.0.0.1/")).toBeDefined();
  },
);

it("a URL from a server is named in the error without its secrets", () => {
  const error = verdict(networkGuard({ target: AFAR }), "https://10.1.2.3:8443/token?secret=1#x");
  expect(error?.message).toContain("https://10.1.2.3:8443: ");
  expect(error?.message).not.toContain("secret");
  const other = verdict(networkGuard({ target: AFAR }), "https://me:hidden@example.com/");
  expect(other?.message).not.toMatch(/hidden|me:/);
});

/** Looks up a name through the guard, as node:net does. */
function find(
  guard: NetworkGuard,
  name: string,
  options: { all?: boolean; family?: 4 | 6 | "IPv6" } = { all: true },
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    guard.lookup(name, options, (error, address, family) => {
      if (error) reject(error);
      else resolve(family === undefined ? address : { address, family });
    });
  });
}

const family = (address: string): LookupAddress => ({ address, family: address.includes(":") ? 6 : 4 });

const naming =
  (...addresses: string[]): AllLookup =>
  (_name, _options, callback) =>
    setImmediate(callback, null, addresses.map(family));

it.each([
  ["8.8.8.8", true],
  ["2606:4700:4700::1111", true],
  ["10.0.0.1", false],
  ["127.0.0.1", false],
  ["::1", false],
  ["0.0.0.0", false],
  ["::ffff:10.0.0.1", false],
  ["fe80::1%eth0", false],
  ["169.254.169.254", false],
  ["fd00::1", false],
  ["not an address", false],
])("a host name from a server that resolves to %s", async (address, isAllowed) => {
  const found = find(networkGuard({ target: AFAR, lookup: naming(address) }), "name.test");
  if (isAllowed) await expect(found).resolves.toEqual([family(address)]);
  else await expect(found).rejects.toMatchObject({ name: "ConnectionError", kind: "refused", mayHaveRun: false });
});

it("a host name from a server is refused if any of its addresses is", async () => {
  for (const addresses of [
    ["8.8.8.8", "10.0.0.1"],
    ["10.0.0.1", "8.8.8.8"],
    ["2606:4700::1", "::1"],
  ]) {
    const guard = networkGuard({ target: AFAR, lookup: naming(...addresses) });
    for (const options of [{ all: true }, {}, { family: 4 as const }]) {
      await expect(find(guard, "both.test", options)).rejects.toThrow(/Refused to connect to both\.test \(/);
    }
  }
});

it("a host name from a server may be private or local if allowed, but never link-local", async () => {
  const options = { target: HERE, allowPrivate: true };
  await expect(find(networkGuard({ ...options, lookup: naming("10.0.0.1") }), "a.test")).resolves.toBeDefined();
  await expect(find(networkGuard({ ...options, lookup: naming("127.0.0.1", "::1") }), "b.test")).resolves.toHaveLength(
    2,
  );
  await expect(find(networkGuard({ ...options, lookup: naming("169.254.169.254") }), "c.test")).rejects.toThrow(
    "link-local",
  );
});

it("a host name from a server resolves to the first address if one is requested", async () => {
  const guard = networkGuard({ target: AFAR, lookup: naming("8.8.8.8", "1.1.1.1") });
  await expect(find(guard, "one.test", {})).resolves.toEqual({ address: "8.8.8.8", family: 4 });
});

it("a host name from a server is looked up once per request, with the requested family", async () => {
  const asked: unknown[] = [];
  const lookup: AllLookup = (name, options, callback) => {
    asked.push({ name, ...options });
    callback(null, [family("2606:4700::1")]);
  };
  await find(networkGuard({ target: AFAR, lookup }), "six.test", { all: true, family: "IPv6" });
  expect(asked).toEqual([{ name: "six.test", all: true, family: 6 }]);
});

it("a host name from a server that is unknown or has no address is not found", async () => {
  const unknown = Object.assign(new Error("queryA ENOTFOUND"), { code: "ENOTFOUND" });
  const failing: AllLookup = (_name, _options, callback) => callback(unknown, []);
  await expect(find(networkGuard({ target: AFAR, lookup: failing }), "x.test")).rejects.toBe(unknown);
  await expect(find(networkGuard({ target: AFAR, lookup: naming() }), "x.test")).rejects.toMatchObject({
    code: "ENOTFOUND",
  });
});

it("a host name from a server is looked up by the system by default", async () => {
  await expect(find(networkGuard({ target: AFAR }), "localhost")).rejects.toThrow("it is a loopback address");
  await expect(find(networkGuard({ target: HERE }), "localhost")).resolves.toBeDefined();
});

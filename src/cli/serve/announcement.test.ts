// What a person reads when a server over HTTP is ready. Nothing is listened on here: an address beyond this machine
// is only talked about.

import { describe, expect, it } from "vitest";
import { readyLines, warningLines } from "./announcement.ts";

const ready = (host: string): Parameters<typeof readyLines>[0] => ({
  url: "http://127.0.0.1:3000/mcp",
  what: "./notes.js",
  name: "notes",
  host,
});

describe("what is said when it is ready", () => {
  it("is where it is, and an entry that can be pasted", () => {
    const [where = "", entry = ""] = readyLines(ready("127.0.0.1"));
    expect(where).toBe("Serving ./notes.js at http://127.0.0.1:3000/mcp");
    expect(JSON.parse(entry.slice(entry.indexOf("{")))).toEqual({
      mcpServers: { notes: { type: "http", url: "http://127.0.0.1:3000/mcp" } },
    });
  });

  it("is that a token is wanted, but not which", () => {
    const [, entry = "", remark] = readyLines({ ...ready("0.0.0.0"), tokenIn: "catenary.json" });
    expect(entry).toContain('"headers":{"Authorization":"Bearer TOKEN"}');
    expect(remark).toBe("TOKEN stands for what catenary.json says under listen.token.");
    expect(warningLines({ host: "0.0.0.0", tokenIn: "catenary.json" })).toEqual([]);
  });

  it("is the token itself where it was made for this run, and that it is told once", () => {
    const made = { ...ready("127.0.0.1"), token: "made-token", isLive: true };
    const [, entry = "", remark] = readyLines(made);
    expect(JSON.parse(entry.slice(entry.indexOf("{")))).toEqual({
      mcpServers: {
        notes: {
          type: "http",
          url: "http://127.0.0.1:3000/mcp",
          headers: { Authorization: "Bearer made-token" },
        },
      },
    });
    expect(remark).toBe("The token is for this run, and is told once: whoever has it can run code here.");
    expect(warningLines(made)).toEqual([]);
  });

  it("is every address where it listens on all", () => {
    const of = (address: string, more: object = {}) =>
      ({ address, family: "IPv4", netmask: "", mac: "", cidr: null, internal: false, ...more }) as const;
    const six = { family: "IPv6", scopeid: 0 };
    const found = {
      lo: [of("127.0.0.1", { internal: true })],
      eth0: [of("192.0.2.2"), of("2001:db8::2", six), of("fe80::2", { ...six, scopeid: 2 })],
    } as Parameters<typeof readyLines>[1];
    const serving = "Serving ./notes.js at http://127.0.0.1:3000/mcp";
    const all = `${serving}, and on every other address of this machine`;
    expect(readyLines(ready("0.0.0.0"), found)[0]).toBe(`${all}: http://192.0.2.2:3000/mcp`);
    expect(readyLines(ready("::"), found)[0]).toBe(`${all}: http://192.0.2.2:3000/mcp, http://[2001:db8::2]:3000/mcp`);
    expect(readyLines(ready("0.0.0.0"), {})[0]).toBe(all);
    expect(readyLines(ready("192.0.2.2"), found)[0]).toBe(serving);
  });

  it.each([{ token: "made-token" }, { tokenIn: "catenary.json" }])(
    "warns where code can be evaluated from the network, with %o too",
    (asked) => {
      const text = warningLines({ host: "0.0.0.0", isLive: true, ...asked }).join(" ");
      expect(text).toContain("code is evaluated here, and 0.0.0.0 can be reached from the network");
      expect(text).toContain("the token goes over the wire in the clear");
      expect(text).not.toContain("made-token");
      expect(warningLines({ host: "127.0.0.1", isLive: true, ...asked })).toEqual([]);
    },
  );

  it.each([
    ["127.0.0.1", "every program on this machine"],
    ["0.0.0.0", "whoever reaches 0.0.0.0"],
  ])("warns on %s where anybody may evaluate code", (host, who) => {
    const text = warningLines({ host, isOpen: true }).join(" ");
    expect(text).toContain(`nobody is asked for a token: ${who} can run what it likes in your name`);
    expect(text).toContain("Leave out --no-token");
  });

  it.each(["127.0.0.1", "127.8.8.8", "localhost", "::1"])("warns of nothing on %s", (host) => {
    expect(warningLines(ready(host))).toEqual([]);
  });

  it.each(["0.0.0.0", "::", "192.168.0.7", "example.com", "127.0.0.1.example.com"])("warns on %s", (host) => {
    const text = warningLines(ready(host)).join(" ");
    expect(text).toContain(`${host} can be reached from the network`);
    expect(text).toContain("nobody is asked who they are");
    expect(text).toContain("bearer");
    expect(text).toContain('{"listen": {"token": "${MY_TOKEN}"}}');
  });
});

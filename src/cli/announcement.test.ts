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

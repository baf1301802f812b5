// Which end a command line means, and what is said of one that means none.

import { describe, expect, it } from "vitest";
import { REVISIONS } from "../../protocol/revisions/index.ts";
import { NotFoundError, UsageError } from "../exit-codes.ts";
import { upstreamName, headersOf, readLine, rootsOf } from "./target.ts";

const line = (...args: readonly string[]): ReturnType<typeof readLine> => readLine("try", args, {}, "Usage: try\n");
const URL_TEXT = "http://127.0.0.1:3000/mcp?key=secret";

describe("a target", () => {
  it("is a URL", () => {
    const { end, words } = line(URL_TEXT, "echo", "text=hi", "--json");
    expect(end).toEqual(new URL(URL_TEXT));
    expect(words).toEqual(["echo", "text=hi"]);
    expect(upstreamName(end)).toBe("127.0.0.1:3000/mcp");
  });

  it("is whatever follows --, flags and all", () => {
    const { end, words, values } = line(
      "echo",
      "--json",
      "--env",
      "A=b=c",
      "--env=D=",
      "--cwd",
      "x",
      "--",
      "a/node",
      "-e",
      "--",
      "--json",
    );
    expect(end).toEqual({ command: "a/node", args: ["-e", "--", "--json"], env: { A: "b=c", D: "" }, cwd: "x" });
    expect(words).toEqual(["echo"]);
    expect(values.json).toBe(true);
    expect(upstreamName(end)).toBe("node");
  });

  it.each([
    [[], "try needs a target\n\nUsage: try\n"],
    [["notes"], "notes is no target: a target is a URL such as"],
    [["ftp://x/y"], "ftp://x/y is no target"],
    [["http://"], "http:// is no target"],
    [["http://ann:secret@x/mcp"], "A name and a password do not belong into a URL"],
    [["http://x/mcp", "--", "node"], "A URL or a command: one target, not both"],
    [["--"], "-- needs a command behind it"],
    [["--", "https://x/mcp"], "https://x/mcp is a URL, which stands in front, without --"],
    [["--token", "t", "--", "node"], "--token goes with a URL, not with a command"],
    [["--header", "A: b", "--", "node"], "--header goes with a URL"],
    [["--scope", "s", "--", "node"], "--scope goes with a URL"],
    [[URL_TEXT, "--env", "A=b"], "--env goes with a command"],
    [[URL_TEXT, "--cwd", "/"], "--cwd goes with a command"],
    [["--env", "A", "--", "node"], "--env A is no variable: write KEY=VALUE"],
    [["--env", "--", "node"], "--env needs a variable: KEY=VALUE"],
    [[URL_TEXT, "--timeout", "soon"], "--timeout soon is no number of seconds"],
    [[URL_TEXT, "--timeout", "-1"], "--timeout needs a number of seconds"],
    [[URL_TEXT, "--revision", "1999-01-01"], "--revision: Unknown revision 1999-01-01; known are"],
    [[URL_TEXT, "--log-level", "warn"], "--log-level warn is no level; did you mean warning?"],
    [[URL_TEXT, "--log-level", "loud"], "--log-level loud is no level; there are debug"],
    [[URL_TEXT, "--quiet", "--verbose"], "one of them, not both"],
    [[URL_TEXT, "--jsn"], "There is no option --jsn; did you mean --json?"],
  ])("%j is refused", (args, words) => {
    expect(() => line(...args)).toThrow(UsageError);
    expect(() => line(...args)).toThrow(words);
  });

  it("may stand beside an address that is to be read", () => {
    const { end, words } = readLine("read", ["http://x/page", "--", "node"], {}, "");
    expect({ end, words }).toEqual({ end: { command: "node", args: [], env: {} }, words: ["http://x/page"] });
  });

  it("may be spoken to in any revision that there is", () => {
    for (const { name } of REVISIONS) expect(line(URL_TEXT, "--revision", name).values.revision).toBe(name);
  });
});

describe("headers", () => {
  it("are read as they are written", () => {
    expect(headersOf({ header: ["X-A: b: c ", "x-d:e", "x-empty:"] })).toEqual({
      "X-A": "b: c",
      "x-d": "e",
      "x-empty": "",
    });
    expect(headersOf({})).toEqual({});
  });

  it.each(["no colon", ": value", "bad name: x", "A: b\r\nC: d", "A: \u65e5", "A: \u0000"])(
    "%j is refused, and not repeated",
    (header) => {
      expect(() => headersOf({ header: [header] })).toThrow(
        new UsageError("--header must be written 'Name: value', on one line, in Latin letters"),
      );
    },
  );
});

describe("roots", () => {
  it("are folders that are there", async () => {
    const [root] = await rootsOf({ root: ["src"] });
    expect(root?.uri).toMatch(/^file:\/\/\/.*\/src$/);
    expect(root?.name).toBe("src");
    await expect(rootsOf({ root: ["nowhere"] })).rejects.toThrow(NotFoundError);
    await expect(rootsOf({ root: ["package.json"] })).rejects.toThrow("There is no folder package.json");
  });
});

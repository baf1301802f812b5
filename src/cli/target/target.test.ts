// Parsing of the target and its flags.

import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { REVISIONS } from "../../protocol/revisions/index.ts";
import { boolean } from "../../core/fields.ts";
import { NotFoundError, UsageError } from "../command.ts";
import { flag, splitAtCommand } from "../flags.ts";
import { parseHeaders, parseTargetLine, resolveRoots, targetName } from "./target.ts";

const line = (...args: readonly string[]): ReturnType<typeof parseTargetLine> =>
  parseTargetLine("try", args, {}, "Usage: try\n");
const URL_TEXT = "http://127.0.0.1:3000/mcp?key=secret";

it("a target is a URL", () => {
  const { target, words } = line(URL_TEXT, "echo", "text=hi", "--json");
  expect(target).toEqual(new URL(URL_TEXT));
  expect(words).toEqual(["echo", "text=hi"]);
  expect(targetName(target)).toBe("127.0.0.1:3000");
});

it("a target is a config", () => {
  const { target, words } = line("a/servers.json", "echo", "--timeout", "5");
  expect(target).toEqual({ config: "a/servers.json" });
  expect(words).toEqual(["echo"]);
  expect(targetName(target)).toBe("a/servers.json");
  expect(line("~/.codex/config.toml").target).toEqual({ config: "~/.codex/config.toml" });
});

it("a target is everything after --, including flags", () => {
  const { target, words, values } = line(
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
  expect(target).toEqual({ command: "a/node", args: ["-e", "--", "--json"], env: { A: "b=c", D: "" }, cwd: "x" });
  expect(words).toEqual(["echo"]);
  expect(values.json).toBe(true);
  expect(targetName(target)).toBe("node");
});

it.each([
  [[], "try needs a target\n\nUsage: try\n"],
  [["notes"], "There is no catenary.json here that could have a server notes: go to its folder, or make one"],
  [["./notes"], "./notes is not a valid target: write a URL such as"],
  [["a.json", "--env", "A=b"], "--env needs a URL or a command as the target; a config sets it in its entries"],
  [["a.json", "--token", "t"], "--token needs a URL or a command as the target"],
  [["a.json", "--revision", REVISIONS[0]?.name ?? ""], "--revision needs a URL or a command as the target"],
  [[fileURLToPath(import.meta.url)], "is not a config; to start it, put -- node "],
  [["ftp://x/y"], "ftp://x/y is not a valid target"],
  [["http://"], "http:// is not a valid target"],
  [["http://ann:secret@x/mcp"], "The URL contains a user name or password"],
  [["http://x/mcp", "--", "node"], "Give one target: a URL or a command, not both"],
  [["--"], "-- needs a command after it"],
  [["--", "https://x/mcp"], "https://x/mcp is a URL: write it in TARGET's place, without --"],
  [["--token", "t", "--", "node"], "--token needs a URL as the target, not a command"],
  [["--header", "A: b", "--", "node"], "--header needs a URL"],
  [["--scope", "s", "--", "node"], "--scope needs a URL"],
  [[URL_TEXT, "--env", "A=b"], "--env needs a command"],
  [[URL_TEXT, "--cwd", "/"], "--cwd needs a command"],
  [["--env", "A", "--", "node"], "--env A is not a variable: write KEY=VALUE"],
  [["--env", "--", "node"], "--env needs a variable: KEY=VALUE"],
  [[URL_TEXT, "--timeout", "soon"], "--timeout soon is not a number of seconds"],
  [[URL_TEXT, "--timeout", "-1"], "--timeout needs a number of seconds"],
  [[URL_TEXT, "--revision", "1999-01-01"], "--revision: Unknown revision 1999-01-01; supported:"],
  [[URL_TEXT, "--log-level", "warn"], "--log-level warn is not a valid level; did you mean warning?"],
  [[URL_TEXT, "--log-level", "loud"], "--log-level loud is not a valid level; the levels are debug"],
  [[URL_TEXT, "--quiet", "--verbose"], "Give --quiet or --verbose, not both"],
  [[URL_TEXT, "--jsn"], "There is no option --jsn; did you mean --json?"],
])("a target: %j is refused", (args, message) => {
  expect(() => line(...args)).toThrow(UsageError);
  expect(() => line(...args)).toThrow(message);
});

it("a target may come with the URI of a resource that is a URL", () => {
  const { target, words } = parseTargetLine("read", ["http://x/page", "--", "node"], {}, "");
  expect({ target, words }).toEqual({ target: { command: "node", args: [], env: {} }, words: ["http://x/page"] });
});

it("a target may use any known revision", () => {
  for (const { name } of REVISIONS) expect(line(URL_TEXT, "--revision", name).values.revision).toBe(name);
});

it("headers are parsed", () => {
  expect(parseHeaders({ header: ["X-A: b: c ", "x-d:e", "x-empty:"] })).toEqual({
    "X-A": "b: c",
    "x-d": "e",
    "x-empty": "",
  });
  expect(parseHeaders({})).toEqual({});
});

it.each(["no colon", ": value", "bad name: x", "A: b\r\nC: d", "A: \u65e5", "A: \u0000"])(
  "headers: %j is refused, and not repeated",
  (header) => {
    expect(() => parseHeaders({ header: [header] })).toThrow(
      new UsageError("--header must be 'Name: value', on one line of Latin-1 characters"),
    );
  },
);

it("roots are existing folders", async () => {
  const [root] = await resolveRoots({ root: ["src"] });
  expect(root?.uri).toMatch(/^file:\/\/\/.*\/src$/);
  expect(root?.name).toBe("src");
  await expect(resolveRoots({ root: ["nowhere"] })).rejects.toThrow(NotFoundError);
  await expect(resolveRoots({ root: ["package.json"] })).rejects.toThrow("There is no folder package.json");
});

const FLAGS = { http: flag("ADDRESS", ""), json: boolean("") };

it.each([
  [
    ["--http", ":0", "--", "npx", "-y", "x"],
    ["--http", ":0"],
    ["npx", "-y", "x"],
  ],
  [
    ["--http", ":0", "npx", "-y", "x", "--", "--json"],
    ["--http", ":0"],
    ["npx", "-y", "x", "--", "--json"],
  ],
  [
    ["--http=:0", "--json", "npx", "--help"],
    ["--http=:0", "--json"],
    ["npx", "--help"],
  ],
  [["--json", "--"], ["--json"], []],
  [["--json"], ["--json"], []],
  [["-y", "x"], ["-y"], ["x"]],
])("a command in %j begins after -- or at the first word that is not an option", (args, ownWords, command) => {
  expect(splitAtCommand(args, FLAGS)).toEqual({ ownWords, command });
});

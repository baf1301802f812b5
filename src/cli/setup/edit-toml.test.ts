// Edits of TOML: a table is added, replaced or removed, and every other byte stays.

import { parse } from "smol-toml";
import { expect, it } from "vitest";
import { editToml } from "./edit-toml.ts";

const PATH = ["mcp_servers", "catenary"];
const VALUE = { command: "catenary", args: ["serve", "/a b/c.json"] };
const TABLE = '[mcp_servers.catenary]\ncommand = "catenary"\nargs = [ "serve", "/a b/c.json" ]\n';

const BEFORE = `# Codex
model = "gpt-5"   # the best
notify = [
  "a",
  "[mcp_servers.catenary]",
]
note = """
[mcp_servers.catenary]
"""

[mcp_servers.files] # files
command = 'npx'
args = ["-y", "files"]

[mcp_servers.files.env]
KEY = "a # b"
`;
const AFTER = `
# The last one
[profiles.fast]
model = "mini"
`;

it("a table is written at the end", () => {
  expect(editToml("", PATH, VALUE)).toBe(TABLE);
  expect(editToml(BEFORE + AFTER, PATH, VALUE)).toBe(`${BEFORE}${AFTER}\n${TABLE}`);
  expect(editToml("a = 1", PATH, VALUE)).toBe(`a = 1\n\n${TABLE}`);
  expect(editToml("a = 1\r\n", PATH, { command: "x" })).toBe(
    'a = 1\r\n\r\n[mcp_servers.catenary]\r\ncommand = "x"\r\n',
  );
});

it("a table is replaced where it is, with its subtables", () => {
  const old = '[mcp_servers."catenary"]\ncommand = "old"\n\n[mcp_servers.catenary.env]\nA = "1"\n';
  const edited = editToml(`${BEFORE}\n${old}${AFTER}`, PATH, VALUE);
  expect(edited).toBe(`${BEFORE}\n${TABLE}${AFTER}`);
});

it("a table ends with a long string whose last line looks like a comment, and has no table in a string or an array", () => {
  const old = '[mcp_servers.catenary]\nnote = """\n[a]\n# end"""\nlist = [\n[1],\n[2]\n]\n';
  expect(editToml(`${BEFORE}${old}${AFTER}`, PATH, undefined)).toBe(BEFORE + AFTER);
  const last = '[mcp_servers.catenary]\nnote = """\n[a]\n# end"""\n# about the next\n';
  expect(editToml(`${BEFORE}${last}${AFTER}`, PATH, undefined)).toBe(`${BEFORE}# about the next\n${AFTER}`);
});

it("a table is found also if the comment after its header has other line ends of Unicode", () => {
  expect(editToml("[mcp_servers.catenary] # a\u2028b\nx = 1\n", PATH, undefined)).toBe("");
});

it("a table is not looked for in a long string with many lines that look like headers", () => {
  const text = `x = '''\n${"[section]\nkey\n".repeat(2_000)}'''\n[mcp_servers.catenary]\ny = 1\n`;
  expect(() => editToml(text, PATH, undefined)).toThrow("change it by hand");
  expect(editToml(text.replace(/(?:\[section\]\nkey\n){1900}/, ""), PATH, undefined)).not.toContain("y = 1");
});

it("a table is removed, and the rest is as it was", () => {
  const all = `${BEFORE}\n${TABLE}${AFTER}`;
  expect(editToml(all, PATH, undefined)).toBe(BEFORE + AFTER);
  expect(editToml(BEFORE + AFTER, PATH, undefined)).toBe(BEFORE + AFTER);
  expect(parse(editToml(all, ["mcp_servers", "files"], undefined))).toMatchObject({
    mcp_servers: { catenary: VALUE },
    profiles: { fast: { model: "mini" } },
  });
});

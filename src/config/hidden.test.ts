// Hiding a server or a tool in the text of a config: only the keys that say so change, and what a pattern hides is left to
// a person.

import { join } from "node:path";
import { parse } from "jsonc-parser";
import { describe, expect, it } from "vitest";
import { editHidden, entryHides, HidingError } from "./hidden.ts";
import { checkConfig, loadConfigText } from "./load.ts";

const TEXT = `{
  // All of them.
  "mcpServers": {
    "notes": { "command": "notes" }, // mine
    "files": {
      "command": "files",
      "exclude": [
        "delete_*", // never
        "move",
      ],
    },
    "git": { "programs": ["git", "docker"], "exclude": ["git push *"] },
    "old": { "command": "old", "disabled": true }
  }
}
`;

function hidden(server: string, tool?: string, text: string = TEXT): string {
  return editHidden(text, { server, tool }, true);
}

function shown(server: string, tool?: string, text: string = TEXT): string {
  return editHidden(text, { server, tool }, false);
}

describe("a server", () => {
  it("is disabled, and enabled again with the text as it was", () => {
    const text = hidden("notes");
    expect(text).toBe(TEXT.replace('"command": "notes" }', '"command": "notes", "disabled": true }'));
    expect(shown("notes", undefined, text)).toBe(TEXT);
    expect(hidden("notes", undefined, text)).toBe(text);
  });

  it("that another key disables is enabled too", () => {
    expect(shown("old")).toBe(TEXT.replace(', "disabled": true', ""));
    expect(shown("old", undefined, TEXT.replace('"disabled": true', '"enabled": false'))).toBe(
      TEXT.replace(', "disabled": true', ""),
    );
  });

  it("that is not there or is the last one is refused with advice", () => {
    expect(() => hidden("note")).toThrow(expect.objectContaining({ isNotFound: true, hint: "did you mean notes?" }));
    const alone = '{"servers": {"a": {"command": "a"}}}';
    expect(() => hidden("a", undefined, alone)).toThrow(HidingError);
    expect(() => hidden("a", undefined, '{"mcp_servers": {"a": {}}}')).toThrow(
      /no servers under mcpServers or servers/,
    );
  });
});

describe("a tool", () => {
  it("is added to exclude, and removed with the key if it was the only one", () => {
    const text = hidden("notes", "search");
    expect(text).toBe(TEXT.replace('"command": "notes" }', '"command": "notes", "exclude": ["search"] }'));
    expect(shown("notes", "search", text)).toBe(TEXT);
  });

  it("is added to the key that the entry has, beside comments", () => {
    const text = hidden("files", "copy");
    expect(text).toBe(TEXT.replace('        "move",\n', '        "move",\n        "copy",\n'));
    expect(shown("files", "copy", text)).toBe(TEXT);
    const foreign = TEXT.replace('"exclude": [\n', '"disabledTools": [\n');
    expect(hidden("files", "copy", foreign)).toContain(
      '"disabledTools": [\n        "delete_*", // never\n        "move",\n        "copy",',
    );
  });

  it("that a pattern hides is hidden already, and is not shown", () => {
    expect(hidden("files", "delete_all")).toBe(TEXT);
    expect(() => shown("files", "delete_all")).toThrow(/hidden by the rule "delete_\*"/);
    expect(() => hidden("files", "a*")).toThrow(/stands for any characters/);
  });

  it("of programs is hidden by a filter, since exclude has command lines there", () => {
    const text = hidden("git", "docker");
    const git = { programs: ["git", "docker"], exclude: ["git push *"] };
    const filtered = (exclude: readonly string[]): object => ({ ...git, use: [{ filter: { tools: { exclude } } }] });
    const entry = (of: string): unknown => (parse(of) as { mcpServers: Record<string, unknown> }).mcpServers["git"];
    expect(entry(text)).toEqual(filtered(["docker"]));
    expect(shown("git", "docker", text)).toBe(TEXT);
    const both = hidden("git", "git", text);
    expect(entry(both)).toEqual(filtered(["docker", "git"]));
    expect(entry(shown("git", "git", both))).toEqual(filtered(["docker"]));
  });
});

/** Names as a server may choose them: each would be something else in a config if it were written as it is. */
const NAMES = [
  "${input:nosuch}",
  "${X}",
  "${X:-default}",
  "${file:/dev/zero}",
  "${workspaceFolder}",
  "${/}",
  "${a b}",
  "${",
  "$$",
  "$${",
  "$$${X}",
  "$${X}${Y}",
  "${${X}}",
  "${A:-$${B}}",
  "a$",
  "$X",
  "{env:X}",
];
const OWN = join(import.meta.dirname, "catenary.json");

describe.each(NAMES)("a tool with a name like a variable: %s", (name) => {
  const program = JSON.stringify(process.execPath);
  const config = `{
  // Mine.
  "mcpServers": {
    "one": { "command": ${program}, "exclude": ["\${HOME_OF_RULES:-none}_*", "$\${kept}"] }, // one
    "two": { "command": ${program} },
    "three": { "programs": ["node"], "exclude": ["node push *"] }
  }
}
`;

  it.each(["one", "two", "three"])(
    "is hidden by this very name, and shown with the text as it was: %s",
    async (server) => {
      const text = editHidden(config, { server, tool: name }, true, OWN);
      expect((await checkConfig(text, OWN, { env: {} })).map(({ message }) => message)).toEqual([]);
      // Other values of variables change nothing.
      for (const env of [{}, { X: "x", Y: "y", A: "a" }]) {
        const { upstreams } = await loadConfigText(text, OWN, { env });
        const entry = upstreams.get(server);
        if (entry === undefined) throw new Error(`${server} is not in the config`);
        expect(entry.missing).toBeUndefined();
        const others = [...NAMES, "", "x", "default", import.meta.dirname].filter((other) => other !== name);
        expect(entryHides(entry, name)).toBe(true);
        expect(others.filter((other) => entryHides(entry, other))).toEqual([]);
      }
      expect(editHidden(text, { server, tool: name }, true, OWN)).toBe(text);
      expect(editHidden(text, { server, tool: name }, false, OWN)).toBe(config);
    },
  );
});

it("compares items of a list as they are read", () => {
  const file = (...exclude: readonly string[]): string => JSON.stringify({ servers: { a: { command: "a", exclude } } });
  expect(hidden("a", "${X}_all", file("$${X}_*"))).toBe(file("$${X}_*"));
  expect(() => shown("a", "${X}_all", file("$${X}_*"))).toThrow(/hidden by the rule "\$\$\{X\}_\*"/);
  // The value of a variable is not known, so the rule of a person stays, and is not taken for the name.
  expect(JSON.parse(hidden("a", "${X}", file("${X}")))).toEqual(JSON.parse(file("${X}", "$${X}")));
  expect(() => shown("a", "${X}", file("${X}"))).toThrow(/hidden by the rule "\$\{X\}"/);
  expect(shown("a", "${Y}", file("${X}", "$${Y}"))).toBe(file("${X}"));
});

it("refuses a name that a file of a client has no way to write", () => {
  const [gemini, opencode] = ["/home/me/.gemini/settings.json", "/home/me/opencode.json"];
  const hide = (tool: string, file?: string): string => editHidden(TEXT, { server: "notes", tool }, true, file);
  expect(() => hide("$HOME", gemini)).toThrow(/a variable in a file of Gemini CLI/);
  expect(() => hide("$${HOME$X}", gemini)).toThrow(HidingError);
  expect(() => hide("a{env:HOME}", opencode)).toThrow(/a variable in a file of opencode/);
  expect(() => hide("{file:/etc/hostname}", opencode)).toThrow(HidingError);
  expect(() => hide("${env:HOME}", opencode)).toThrow(HidingError);
  expect(hide("${HOME}", gemini)).toContain('"exclude": ["$${HOME}"]');
  expect(hide("$HOME", opencode)).toContain('"exclude": ["$HOME"]');
  // A file of which nothing is known may be one of these.
  expect(() => hide("$HOME")).toThrow(HidingError);
  expect(() => hide("{env:HOME}")).toThrow(HidingError);
  expect(() => hide(" ", OWN)).toThrow(/is blank/);
});

it.each(["/home/me/.gemini/settings.json", "/home/me/opencode.json"])(
  "a name that is hidden in a file of a client is read as it is: %s",
  async (path) => {
    const config = JSON.stringify({ mcpServers: { a: { command: process.execPath } } });
    const written = NAMES.flatMap((tool) => {
      try {
        return [{ tool, text: editHidden(config, { server: "a", tool }, true, path) }];
      } catch (error) {
        if (!(error instanceof HidingError)) throw error;
        return [];
      }
    });
    expect(written.length).toBeGreaterThan(10);
    for (const { tool, text } of written) {
      const { upstreams } = await loadConfigText(text, path, { env: { X: "x" } });
      const entry = upstreams.get("a");
      expect(entry?.missing).toBeUndefined();
      expect(NAMES.filter((name) => entry !== undefined && entryHides(entry, name))).toEqual([tool]);
    }
  },
);

it("does not change what is not a config", () => {
  expect(() => hidden("a", undefined, "{")).toThrow(/not a valid JSON object/);
});

it("does not make a config long by names that no tool has", () => {
  expect(() => hidden("git", "x".repeat(1_001), TEXT)).toThrow(/more than 1000 characters/);
});

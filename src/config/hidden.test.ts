// Hiding a server or a tool in the text of a config: only the keys that say so change, and what a pattern hides is left to
// a person.

import { parse } from "jsonc-parser";
import { describe, expect, it } from "vitest";
import { editHidden, HidingError } from "./hidden.ts";

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

it("does not change what is not a config", () => {
  expect(() => hidden("a", undefined, "{")).toThrow(/not a valid JSON object/);
});

it("does not make a config long by names that no tool has", () => {
  expect(() => hidden("git", "x".repeat(1_001), TEXT)).toThrow(/more than 1000 characters/);
});

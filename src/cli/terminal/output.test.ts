// Messages of ours, with commands as the user starts them.

import { afterEach, expect, it } from "vitest";
import { hintFor, ownCommand, setCommands } from "./output.ts";

const script = process.argv[1] ?? "";
afterEach(() => {
  process.argv[1] = script;
});

const hint = (path: string, text: string, isTTY = true): string => {
  setCommands(["add", "doctor"]);
  process.argv[1] = path;
  return hintFor({ isTTY }, text);
};

it.each([
  ["/usr/bin/catenary", "catenary: run `catenary doctor x`", "catenary: run `catenary doctor x`"],
  ["/home/a/.npm/_npx/1/catenary", "run `catenary doctor x`", "run `npx catenary doctor x`"],
  ["main.js", "catenary: catenary add NAME, or catenary --help", "catenary: PROGRAM add NAME, or PROGRAM --help"],
  [
    "main.js",
    "/opt/catenary add, npx catenary add, catenary.json",
    "/opt/catenary add, npx catenary add, catenary.json",
  ],
  ["main.js", "the package catenary adds nothing", "the package catenary adds nothing"],
])("commands in a message of a program that is started as %s: %s", (path, text, expected) => {
  const shown = hint(path, text);
  expect(shown).toBe(expected.replaceAll("PROGRAM", ownCommand()));
});

it("commands in a message stay as they are where no terminal shows them", () => {
  expect(hint("main.js", "run catenary doctor\u001b", false)).toBe("run catenary doctor\u001b");
  expect(hint("main.js", "run catenary doctor\u001b")).toBe(`run ${ownCommand()} doctor\\x1b`);
});

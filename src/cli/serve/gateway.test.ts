// Asking for the inputs of a config at the terminal, and finding the module that a stray exception comes from.

import { expect, it } from "vitest";
import type { Dialog } from "../terminal/prompter.ts";
import type { Config } from "../../config/index.ts";
import { askInput, inputsFrom, moduleIn } from "./gateway.ts";

/** A dialog that answers with these lines, then closes the input; and what it showed. */
function scriptedDialog(...lines: string[]): { dialog: Dialog; shown: string[] } {
  const shown: string[] = [];
  const answer = (how: string) => (prompt: string) => {
    shown.push(`${how} ${prompt}`);
    return Promise.resolve(lines.shift());
  };
  const print = (text: string): void => void shown.push(text);
  return { dialog: { print, ask: answer("?"), confirm: answer("!"), askSecret: answer("*") }, shown };
}

it("an input is asked for with its description and default", async () => {
  const { dialog, shown } = scriptedDialog("", "typed");
  const input = { id: "city", type: "promptString", description: "Which\ncity", default: "Rome" } as const;
  expect(await askInput(dialog, input)).toBe("Rome");
  expect(await askInput(dialog, { id: "city", type: "promptString" })).toBe("typed");
  expect(await askInput(dialog, input)).toBeUndefined();
  expect(shown).toEqual(["? Which city [Rome]: ", "? city: ", "? Which city [Rome]: "]);
});

it("an input that is a password is not echoed, and its default is not shown", async () => {
  const { dialog, shown } = scriptedDialog(" as typed ");
  const input = { id: "key", type: "promptString", password: true, default: "hidden" } as const;
  expect(await askInput(dialog, input)).toBe(" as typed ");
  expect(shown).toEqual(["* key [default in the config]: "]);
});

it("an input with options is chosen by number or name", async () => {
  const { dialog, shown } = scriptedDialog("3", "blue", "2", "red");
  const input = { id: "colour", type: "pickString", options: ["red", "green"] } as const;
  expect(await askInput(dialog, input)).toBe("green");
  expect(await askInput(dialog, input)).toBe("red");
  expect(shown.slice(0, 5)).toEqual([
    "  1) red",
    "  2) green",
    "? colour (number or name): ",
    "3 is not in the list; type a number from 1 to 2",
    "? colour (number or name): ",
  ]);
});

it("an input is taken from the environment, and not asked for if stdin belongs to a client", async () => {
  const answer = inputsFrom({ CATENARY_INPUT_API_KEY: "given" }, true);
  expect(await answer({ id: "api-key", type: "promptString" })).toBe("given");
  expect(await answer({ id: "other", type: "promptString" })).toBeUndefined();
});

it("finds the middleware or server whose module a stray exception comes from", () => {
  const config = {
    chain: [
      { kind: "named", name: "log" },
      { kind: "module", file: "/srv/my gate/audit.mjs", name: "journal" },
      { kind: "module", file: "/srv/count.ts" },
    ],
    upstreams: new Map([["notes", { name: "notes", settings: { module: "/srv/notes.mjs" }, use: [] }]]),
  } as unknown as Config;
  const stack = (place: string): string =>
    `Error: no\n    at Timeout._onTimeout (${place})\n    at node:internal/timers:1`;
  expect(moduleIn(stack("file:///srv/my%20gate/audit.mjs?v=1:3:9"), config)).toBe("the middleware journal");
  expect(moduleIn(stack("/srv/count.ts:3:9"), config)).toBe("the middleware count");
  expect(moduleIn(stack("file:///srv/notes.mjs:3:9"), config)).toBe("the server notes");
  expect(moduleIn(stack("file:///srv/other.mjs:3:9"), config)).toBeUndefined();
});

// The inputs of a config, asked of a person: who types nothing has the default, and a choice is one of the list.

import { describe, expect, it } from "vitest";
import { asked, inputsFrom } from "./inputs.ts";
import type { Talk } from "./person.ts";

/** A person who types these lines, then ends the input; and what they saw. */
function person(...lines: string[]): { talk: Talk; seen: string[] } {
  const seen: string[] = [];
  const answer = (how: string) => (prompt: string) => {
    seen.push(`${how} ${prompt}`);
    return Promise.resolve(lines.shift());
  };
  const tell = (text: string): void => void seen.push(text);
  return { talk: { tell, ask: answer("?"), confirm: answer("!"), secret: answer("*") }, seen };
}

describe("an input", () => {
  it("is asked for by its description, and may have a default", async () => {
    const { talk, seen } = person("", "typed");
    const input = { id: "city", type: "promptString", description: "Which\ncity", default: "Rome" } as const;
    expect(await asked(talk, input)).toBe("Rome");
    expect(await asked(talk, { id: "city", type: "promptString" })).toBe("typed");
    expect(await asked(talk, input)).toBeUndefined();
    expect(seen).toEqual(["? Which city [Rome]: ", "? city: ", "? Which city [Rome]: "]);
  });

  it("that is a password is not shown, and neither is its default", async () => {
    const { talk, seen } = person(" as typed ");
    const input = { id: "key", type: "promptString", password: true, default: "hidden" } as const;
    expect(await asked(talk, input)).toBe(" as typed ");
    expect(seen).toEqual(["* key [as the file has it]: "]);
  });

  it("that is a choice is chosen by number or by name", async () => {
    const { talk, seen } = person("3", "blue", "2", "red");
    const input = { id: "colour", type: "pickString", options: ["red", "green"] } as const;
    expect(await asked(talk, input)).toBe("green");
    expect(await asked(talk, input)).toBe("red");
    expect(seen.slice(0, 5)).toEqual([
      "  1) red",
      "  2) green",
      "? colour (a number or a name): ",
      "There is no 3 in the list; type a number from 1 to 2",
      "? colour (a number or a name): ",
    ]);
  });

  it("is taken from the environment, and asked of nobody where stdin is a client's", async () => {
    const answer = inputsFrom({ CATENARY_INPUT_API_KEY: "given" }, true);
    expect(await answer({ id: "api-key", type: "promptString" })).toBe("given");
    expect(await answer({ id: "other", type: "promptString" })).toBeUndefined();
  });
});

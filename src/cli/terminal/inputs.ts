// The inputs that a config asks for instead of holding them (VS Code's `inputs`): taken from the environment, or asked
// of the person at the terminal. Where stdin is the wire of a client there is nobody to ask. What was typed is kept
// nowhere, and a password is not shown.

import { inputVariable, type AskInput, type Environment, type Input } from "../../config/index.ts";
import { EXIT } from "../exit-codes.ts";
import { oneLine } from "./harmless.ts";
import { leave } from "./output.ts";
import { Person, type Talk } from "./person.ts";
import { ProgressLine } from "./progress-line.ts";

/** Who answers for inputs: the environment, or the person. Nobody is asked where stdin is a client's (`isWire`). */
export function inputsFrom(env: Environment, isWire: boolean): AskInput {
  const { signal } = new AbortController();
  let person: Person | undefined;
  return async (input) => {
    const given = env[inputVariable(input.id)];
    if (given !== undefined || isWire || !Person.isThere()) return given;
    person ??= new Person(new ProgressLine(process.stderr, { quiet: true }), () => leave(EXIT.interrupted));
    return person.talk(signal, (talk) => asked(talk, input));
  };
}

/** Asks until it is answered; undefined where the person has ended the input. */
export async function asked(talk: Talk, input: Input): Promise<string | undefined> {
  const { id, description, default: usual, password, options = [] } = input;
  options.forEach((option, at) => talk.tell(`  ${at + 1}) ${oneLine(option)}`));
  const how = options.length === 0 ? "" : " (a number or a name)";
  const shown = usual === undefined ? "" : password === true ? " [as the file has it]" : ` [${oneLine(usual)}]`;
  const prompt = `${oneLine(description ?? id)}${how}${shown}: `;
  for (;;) {
    const line = await (password === true ? talk.secret(prompt) : talk.ask(prompt));
    if (line === undefined) return undefined;
    if (line === "" && usual !== undefined) return usual;
    if (options.length === 0) return line;
    const option = options.find((one) => one === line) ?? options[Number(line) - 1];
    if (option !== undefined) return option;
    talk.tell(`There is no ${oneLine(line)} in the list; type a number from 1 to ${options.length}`);
  }
}

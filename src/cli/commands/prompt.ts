// `catenary prompt TARGET NAME key=value ...`: the messages of one prompt. A single message is printed bare, so that it
// can be piped on; several have the role of each above it.

import type { Prompt, PromptMessage } from "../../protocol/model/index.ts";
import { isObject } from "../../core/objects.ts";
import { ARGUMENTS_HELP, readArguments } from "../target/arguments.ts";
import { showContent, type Showing } from "../show/content.ts";
import { errand } from "../target/errand.ts";
import { EXIT, UsageError } from "../exit-codes.ts";
import { reporting } from "../show/failure.ts";
import { oneLine } from "../terminal/harmless.ts";
import type { Command } from "../main.ts";
import { missingUpstreams, remarkOn } from "../serve/missing-ends.ts";
import { notFound, sound } from "../target/names.ts";
import { paint } from "../terminal/output.ts";
import { printJson, printOwn } from "../terminal/print.ts";
import { destination, SAVE_FLAGS, SAVE_HELP, Saver } from "../show/saving.ts";
import { EXIT_HELP, readLine, TARGET_HELP } from "../target/target.ts";
import { promptArguments } from "../target/tool-arguments.ts";

const USAGE = `Usage: catenary prompt TARGET NAME [key=value ...] [OPTIONS]
       catenary prompt NAME [key=value ...] [OPTIONS] -- COMMAND ARGS...
`;

const HELP = `${USAGE}
Gets a prompt, filled in with arguments, which are all texts. Its messages go to stdout: a single
one bare, several with the role of each above it. With --json: the result.

${ARGUMENTS_HELP}
${SAVE_HELP}
${TARGET_HELP}
${EXIT_HELP}`;

async function run(args: readonly string[]): Promise<number> {
  const wanted = readLine("prompt", args, { args: { type: "string", dash: true }, ...SAVE_FLAGS }, USAGE);
  const { values, words } = wanted;
  const [name, ...pairs] = words;
  if (name === undefined) throw new UsageError(`prompt needs the NAME of a prompt\n\n${USAGE}`);
  const saver = new Saver(await destination(values));
  const given = await readArguments(pairs, values.args);
  return errand(wanted, async ({ client, call, busy, note, done }) => {
    busy("Listing prompts");
    const listed = await client.listPrompts(call);
    const prompts = sound<Prompt>(listed.prompts, "name");
    const prompt = prompts.find((one) => one.name === name);
    if (prompt === undefined) {
      remarkOn(missingUpstreams(listed), note);
      throw notFound(
        "prompt",
        name,
        prompts.map((one) => one.name),
      );
    }
    const args = promptArguments(prompt, given);
    busy(`Getting ${name}`);
    const result = await client.getPrompt(name, args, call);
    done();
    if (values.json === true) printJson(result);
    else await show(result.messages, { saver, note });
    return EXIT.ok;
  });
}

async function show(messages: unknown, showing: Showing): Promise<void> {
  const found = sound<PromptMessage>(messages, "role").filter(({ content }) => isObject(content));
  for (const [at, { role, content }] of found.entries()) {
    const heading = paint("bold", `${oneLine(role)}:`, process.stdout);
    if (found.length > 1) printOwn(`${at === 0 ? "" : "\n"}${heading}\n`);
    await showContent([content], showing);
  }
}

export const promptCommand: Command = { help: HELP, run: (args) => reporting(args, () => run(args)) };

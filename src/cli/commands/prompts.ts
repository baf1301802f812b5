// `catenary prompts TARGET [NAME]`: what prompts an end has, or one of them with all its arguments.

import type { Prompt } from "../../protocol/model/index.ts";
import { errand } from "../target/errand.ts";
import { EXIT } from "../exit-codes.ts";
import { reporting } from "../show/failure.ts";
import { promptDetail, promptList } from "../show/lists.ts";
import type { Command } from "../main.ts";
import { notFound, sound, surplus } from "../target/names.ts";
import { metaOf, missingUpstreams, remarkOn } from "../serve/missing-ends.ts";
import { listStyle } from "../terminal/output.ts";
import { printJson, printOwn } from "../terminal/print.ts";
import { EXIT_HELP, readLine, TARGET_HELP } from "../target/target.ts";

const USAGE = `Usage: catenary prompts TARGET [NAME] [OPTIONS]
       catenary prompts [NAME] [OPTIONS] -- COMMAND ARGS...
`;

const HELP = `${USAGE}
Lists the prompts of a server: each with its name, what it is for, and its arguments as one writes
them for \`catenary prompt\`; those in brackets may be left out. With NAME: that prompt in full.
With --json: {"prompts": [...]}, or the prompt.

${TARGET_HELP}
${EXIT_HELP}`;

async function run(args: readonly string[]): Promise<number> {
  const wanted = readLine("prompts", args, {}, USAGE);
  const [name, ...more] = wanted.words;
  if (more.length > 0) throw surplus("prompts", more, USAGE);
  return errand(wanted, async ({ client, call, busy, note, done }) => {
    busy("Listing prompts");
    const listed = await client.listPrompts(call);
    const { prompts } = listed;
    done();
    const missing = missingUpstreams(listed);
    const found = sound<Prompt>(prompts, "name");
    const style = listStyle();
    if (name !== undefined) {
      const prompt = found.find((one) => one.name === name);
      if (prompt === undefined) {
        remarkOn(missing, note);
        throw notFound(
          "prompt",
          name,
          found.map((one) => one.name),
        );
      }
      if (wanted.values.json === true) printJson(prompt);
      else printOwn(promptDetail(prompt, style));
      return EXIT.ok;
    }
    if (wanted.values.json === true) printJson({ prompts, ...metaOf(missing) });
    else if (found.length > 0) printOwn(promptList(found, style));
    else note("The server has no prompts");
    remarkOn(missing, note);
    return EXIT.ok;
  });
}

export const promptsCommand: Command = { help: HELP, run: (args) => reporting(args, () => run(args)) };

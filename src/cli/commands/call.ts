// `catenary call TARGET TOOL key=value ...`: one call of one tool. The tool is looked up first, because its schema says
// what the arguments are; what does not fit is said before anything is sent.

import type { Tool } from "../../protocol/model/index.ts";
import { ARGUMENTS_HELP, readArguments } from "../target/arguments.ts";
import { showResult } from "../show/content.ts";
import { errand } from "../target/errand.ts";
import { EXIT, NotFoundError, UsageError } from "../exit-codes.ts";
import { reporting } from "../show/failure.ts";
import type { Command } from "../main.ts";
import { missingUpstreams, remarkOn } from "../serve/missing-ends.ts";
import { notFound, sound } from "../target/names.ts";
import { printJson } from "../terminal/print.ts";
import { destination, SAVE_FLAGS, SAVE_HELP, Saver } from "../show/saving.ts";
import { EXIT_HELP, readLine, TARGET_HELP } from "../target/target.ts";
import { toolArguments } from "../target/tool-arguments.ts";

const USAGE = `Usage: catenary call TARGET TOOL [key=value ...] [OPTIONS]
       catenary call TOOL [key=value ...] [OPTIONS] -- COMMAND ARGS...
`;

const HELP = `${USAGE}
Calls a tool. Its text goes to stdout; where it returns structured content and no text, that goes
there as JSON; progress and everything else goes to stderr. A tool that asks for something in
mid-call asks you, where stdin and stderr are a terminal. With --json: the whole result.
Where the tool says that it failed, what it says is printed all the same, and the exit code is 5.

${ARGUMENTS_HELP}
${SAVE_HELP}
${TARGET_HELP}
${EXIT_HELP}`;

async function run(args: readonly string[]): Promise<number> {
  const wanted = readLine("call", args, { args: { type: "string", dash: true }, ...SAVE_FLAGS }, USAGE);
  const { values, words } = wanted;
  const [name, ...pairs] = words;
  if (name === undefined) throw new UsageError(`call needs the name of a TOOL\n\n${USAGE}`);
  const saver = new Saver(await destination(values));
  const given = await readArguments(pairs, values.args);
  return errand(wanted, async ({ client, call, busy, note, done }) => {
    busy("Listing tools");
    const listed = await client.listTools(call);
    const tools = sound<Tool>(listed.tools, "name");
    const tool = tools.find((one) => one.name === name);
    if (tool === undefined) {
      remarkOn(missingUpstreams(listed), note);
      throw notFound(
        "tool",
        name,
        tools.map((one) => one.name),
      );
    }
    const { args, unknown } = toolArguments(tool, given);
    if (unknown.length > 0) note(`${name} declares no argument ${unknown.join(", ")}; sent all the same`);
    busy(`Calling ${name}`);
    const result = await client.callTool(name, args, call);
    done();
    if (values.json === true) printJson(result);
    else await showResult(result, { saver, note });
    if (result.isError === true) {
      note(`${name} says that it failed`);
      return EXIT.toolFailed;
    }
    if (values.output !== undefined && saver.count === 0) {
      throw new NotFoundError(`Nothing came that could be written to ${values.output}: the result is text alone`);
    }
    return EXIT.ok;
  });
}

export const callCommand: Command = { help: HELP, run: (args) => reporting(args, () => run(args)) };

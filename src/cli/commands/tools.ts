// `catenary tools TARGET [NAME]`: what tools an end has, or one of them in full.

import type { Tool } from "../../protocol/model/index.ts";
import { errand } from "../target/errand.ts";
import { reporting } from "../show/failure.ts";
import { toolDetail, toolList } from "../show/lists.ts";
import type { Command } from "../main.ts";
import { metaOf, missingUpstreams, remarkOn } from "../serve/missing-ends.ts";
import { listStyle } from "../terminal/output.ts";
import { printJson, printOwn } from "../terminal/print.ts";
import { notFound, sound, surplus } from "../target/names.ts";
import { EXIT } from "../exit-codes.ts";
import { EXIT_HELP, readLine, TARGET_HELP } from "../target/target.ts";

const USAGE = `Usage: catenary tools TARGET [NAME] [OPTIONS]
       catenary tools [NAME] [OPTIONS] -- COMMAND ARGS...
`;

const HELP = `${USAGE}
Lists the tools of a server: each with its name, what it does, and its arguments as one writes them
for \`catenary call\`; those in brackets may be left out. With NAME: that tool in full, with its
schemas. With --json: {"tools": [...]}, or the tool.

${TARGET_HELP}
${EXIT_HELP}`;

async function run(args: readonly string[]): Promise<number> {
  const wanted = readLine("tools", args, {}, USAGE);
  const [name, ...more] = wanted.words;
  if (more.length > 0) throw surplus("tools", more, USAGE);
  return errand(wanted, async ({ client, call, busy, note, done }) => {
    busy("Listing tools");
    const listed = await client.listTools(call);
    const { tools } = listed;
    done();
    const missing = missingUpstreams(listed);
    const found = sound<Tool>(tools, "name");
    const style = listStyle();
    if (name !== undefined) {
      const tool = found.find((one) => one.name === name);
      if (tool === undefined) {
        remarkOn(missing, note);
        throw notFound(
          "tool",
          name,
          found.map((one) => one.name),
        );
      }
      if (wanted.values.json === true) printJson(tool);
      else printOwn(toolDetail(tool, style));
      return EXIT.ok;
    }
    if (wanted.values.json === true) printJson({ tools, ...metaOf(missing) });
    else if (found.length > 0) printOwn(toolList(found, style));
    else note("The server has no tools");
    remarkOn(missing, note);
    return EXIT.ok;
  });
}

export const toolsCommand: Command = { help: HELP, run: (args) => reporting(args, () => run(args)) };

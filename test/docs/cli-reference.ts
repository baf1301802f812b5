// Writes the parts of docs/reference/cli.md that the declarations of the commands say: the table of all commands, and in
// the section of a command its usage, its options and its exit codes. `npm run docs` writes the page.

import { COMMANDS } from "../../src/cli/commands/index.ts";
import type { Command } from "../../src/cli/define.ts";
import { label, meaning, type Flags } from "../../src/cli/flags.ts";
import { CHANGE_FLAGS } from "../../src/cli/setup/change-file.ts";
import { TARGET_FLAGS } from "../../src/cli/target/target.ts";
import { writtenTable } from "./markdown.ts";

/** Flags of several commands, which a section of their own describes. */
const SHARED: ReadonlyMap<string, Flags> = new Map<string, Flags>([
  ["Targets", TARGET_FLAGS],
  ["Changes of files", CHANGE_FLAGS],
]);

function optionTable(flags: Flags): string {
  const rows = Object.entries(flags).map(([name, flag]) => [`\`${label(name, flag)}\``, meaning(flag)]);
  return writtenTable(["Option", "Meaning"], rows);
}

/** The flags that no other section describes. */
function ownFlags(flags: Flags): Flags {
  const shared = [...SHARED.values()].filter((others) =>
    Object.keys(others).every((name) => Object.hasOwn(flags, name)),
  );
  const own = Object.entries(flags).filter(([name]) => !shared.some((others) => Object.hasOwn(others, name)));
  return Object.fromEntries(own);
}

/** The forms of the command line. */
function forms({ usage }: Command): string {
  return usage.replaceAll(/^(?:Usage:)? +/gm, "");
}

function commandTable(commands: readonly (readonly [Command, string])[]): string {
  const rows = commands.map(([command, summary]) => {
    const [form = ""] = forms(command).split("\n");
    const short = form.replaceAll(/ \[(?:-|OPTIONS)[^\]]*\]/g, "");
    return [`[\`${short}\`](#catenary-${command.name})`, summary];
  });
  return writtenTable(["Command", "Purpose"], rows);
}

const OPTIONS = /^\| Option +\| Meaning[^]*?\n(?=\n)/m;

function withOptions(heading: string, section: string, flags: Flags): string {
  const isThere = OPTIONS.test(section);
  if (isThere !== Object.keys(flags).length > 0) {
    throw new Error(`docs/reference/cli.md: ${heading} must have ${isThere ? "no" : "a"} table "| Option | Meaning |"`);
  }
  return section.replace(OPTIONS, () => optionTable(flags));
}

/** The page, with these parts written anew. */
export async function cliReference(page: string): Promise<string> {
  const commands = await Promise.all(
    Object.values(COMMANDS).map(async ({ load, summary }) => [await load(), summary] as const),
  );
  const sections = page.split(/^(?=##+ )/m).map((section) => {
    const [, heading = ""] = /^##+ (.*)/.exec(section) ?? [];
    const shared = SHARED.get(heading);
    if (shared !== undefined) return withOptions(heading, section, shared);
    const [command] = commands.find(([{ name }]) => heading === `\`catenary ${name}\``) ?? [];
    if (command === undefined) return section;
    return withOptions(heading, section, ownFlags(command.flags))
      .replace(/(?<=^```sh\n)[^]*?(?=```)/m, () => forms(command))
      .replace(/^Exit codes: .*/m, () => `Exit codes: ${command.exits.replaceAll("\n", " ")}`);
  });
  return sections.join("").replace(/^\| Command +\| Purpose[^]*?\n(?=\n)/m, () => commandTable(commands));
}

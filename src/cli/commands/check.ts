// `catenary check CONFIG`: what is wrong with a config, by line and column, before anything is started by it. What is
// found is what was asked for, so it goes to stdout.

import { examineConfig, type Examined } from "../../config/index.ts";
import { CONFIG, configPath } from "../target/config-path.ts";
import { EXIT } from "../exit-codes.ts";
import { reporting } from "../show/failure.ts";
import { parseFlags } from "../target/flags.ts";
import { fitFor, oneLine } from "../terminal/harmless.ts";
import type { Command } from "../main.ts";
import { surplus } from "../target/names.ts";
import { paint, say } from "../terminal/output.ts";
import { printJson, printOwn } from "../terminal/print.ts";
import { counted, problemLines, tally } from "../show/problems.ts";

const USAGE = "Usage: catenary check [CONFIG] [--json]";

const HELP = `${USAGE}

Looks through a config and explains each mistake with its line and column. Nothing is started,
nobody is asked, and no module that the config uses is loaded. CONFIG is ./${CONFIG} where it is
left out.

  --json   one JSON document on stdout: {"ok", "servers", "links", "problems"}, where a
           problem is {"line", "column", "severity", "message", "hint"}

Exit codes: 0 where it can be used, with warnings perhaps; 1 where it has errors; 2 where there is
no such file.
`;

const FLAGS = { json: { type: "boolean" } } as const;

async function check(args: readonly string[]): Promise<number> {
  const { positionals, values } = parseFlags("check", args, FLAGS);
  const [named, ...more] = positionals;
  if (more.length > 0) throw surplus("check", more, USAGE);
  const path = await configPath(named, "check");
  const examined = await examineConfig(path);
  const { problems, servers, links } = examined;
  const ok = problems.every(({ severity }) => severity !== "error");
  if (values.json === true) printJson({ ok, servers, links, problems });
  else tell(path, examined, ok);
  return ok ? EXIT.ok : EXIT.usage;
}

function tell(path: string, { text, problems, servers, links }: Examined, ok: boolean): void {
  const { stdout } = process;
  for (const line of problemLines(path, text, problems, stdout)) printOwn(`${line}\n`);
  if (problems.length > 0) say(`${path} has ${tally(problems)}`);
  if (!ok) return;
  const found = [named(servers, "server"), ...(links.length === 0 ? [] : [named(links, "link")])].join(", ");
  printOwn(`${paint("green", "ok:", stdout)} ${fitFor(stdout, `${path} has ${found}`)}\n`);
}

function named(names: readonly string[], what: string): string {
  return `${counted(names.length, what)} (${names.map(oneLine).join(", ")})`;
}

export const checkCommand: Command = { help: HELP, run: (args) => reporting(args, () => check(args)) };

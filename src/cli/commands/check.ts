// `catenary check [CONFIG]`: checks a config without starting anything. The problems are the result of the command, so
// they go to stdout.

import { examineConfig, type ConfigReport } from "../../config/index.ts";
import { boolean } from "../../core/fields.ts";
import { EXIT } from "../command.ts";
import { command, type Command } from "../define.ts";
import { plural, problemLines, tally } from "../show/problems.ts";
import { CONFIG, requireConfig } from "../target/target.ts";
import { paint, printJson, printStatus, printTrusted, sanitizeFor } from "../terminal/output.ts";
import { oneLine } from "../terminal/text.ts";

export const checkCommand: Command = command({
  name: "check",
  usage: "[CONFIG] [--json]",
  about: `Checks a config and explains each problem with its line and column. Starts no server, prompts for no input, and
loads no module that the config names. CONFIG defaults to ./${CONFIG}.`,
  flags: {
    json: boolean(
      'Prints `{"ok", "servers", "middleware", "problems"}`. A problem is `{"line", "column", "severity", "message", "hint"}`, where `severity` is `error` or `warning`.',
    ),
  },
  exits: "0 valid, possibly with warnings; 1 errors; 2 no such file.",
  words: 1,
  async run({ words: [file], values }) {
    const path = await requireConfig(file, "check");
    const report = await examineConfig(path);
    const { problems, servers, middleware } = report;
    const ok = problems.every(({ severity }) => severity !== "error");
    if (values.json === true) printJson({ ok, servers, middleware, problems });
    else printReport(path, report, ok);
    return ok ? EXIT.ok : EXIT.usage;
  },
});

function printReport(path: string, { text, problems, servers, middleware }: ConfigReport, ok: boolean): void {
  const { stdout } = process;
  for (const line of problemLines(path, text, problems, stdout)) printTrusted(`${line}\n`);
  if (problems.length > 0) printStatus(`${path} has ${tally(problems)}`);
  if (!ok) return;
  const parts = [
    withNames(plural(servers.length, "server"), servers),
    ...(middleware.length === 0 ? [] : [withNames(`${middleware.length} middleware`, middleware)]),
  ];
  const summary = `${path} has ${parts.join(", ")}`;
  printTrusted(`${paint("green", "ok:", stdout)} ${sanitizeFor(stdout, summary)}\n`);
}

function withNames(count: string, names: readonly string[]): string {
  return `${count} (${names.map(oneLine).join(", ")})`;
}

// `catenary completion SHELL`: prints a script with which a shell completes our commands. The script calls `catenary
// completion --words`, which prints the words that can come next, so that all shells know the same and the script need
// not be renewed after an update. Nothing is started for it. Where no word of ours fits, the shell completes file names.

import { parse } from "jsonc-parser";
import { readConfigText } from "../../config/document.ts";
import { boolean } from "../../core/fields.ts";
import { isObject } from "../../core/values.ts";
import { EXIT, suggest, UsageError } from "../command.ts";
import { command, unexpectedArguments, type Command, type CommandEntry } from "../define.ts";
import { parseFlags } from "../flags.ts";
import { CONFIG } from "../target/target.ts";
import { printTrusted } from "../terminal/output.ts";

type Commands = Readonly<Record<string, CommandEntry>>;

const SHELLS = ["bash", "zsh", "fish", "powershell"] as const;
type Shell = (typeof SHELLS)[number];

/** For the scripts, so the help does not have it. */
const FLAGS = { words: boolean("Prints the words that can come next.") };

const SCRIPTS: Readonly<Record<Shell, string>> = {
  bash: `_catenary() {
  local IFS=$'\\n'
  COMPREPLY=($(compgen -W "$(catenary completion --words -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _catenary catenary
`,
  zsh: `#compdef catenary
_catenary() {
  local -a found
  found=("\${(@f)$(catenary completion --words -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  found=(\${found:#})
  if (( \${#found} )); then compadd -a found; else _files; fi
}
compdef _catenary catenary
`,
  fish: `function __catenary_words
  set -l before (commandline -opc)
  catenary completion --words -- $before[2..-1] (commandline -ct) 2>/dev/null
end
complete -c catenary -a '(__catenary_words)'
`,
  powershell: `Register-ArgumentCompleter -Native -CommandName catenary -ScriptBlock {
  param($word, $ast, $position)
  $before = @($ast.CommandElements | Select-Object -Skip 1 | Where-Object { $_.Extent.EndOffset -lt $position } | ForEach-Object { $_.ToString() })
  catenary completion --words -- @before "$word" 2>$null |
    Where-Object { $_ -like "$word*" } |
    ForEach-Object { [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_) }
}
`,
};

/** The words that can stand where the last of these stands, which may be incomplete. */
async function nextWords(commands: Commands, words: readonly string[]): Promise<readonly string[]> {
  const last = words.at(-1) ?? "";
  const [name = "", ...args] = words.slice(0, -1);
  if (words.length <= 1) return matching(last, [...Object.keys(commands), "help", "--help", "--version"]);
  if (name === "help") return words.length === 2 ? matching(last, Object.keys(commands)) : [];
  const entry = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (entry === undefined || args.includes("--")) return [];
  const command = await entry.load();
  // After its own arguments, the words belong to another program.
  if (command.ownWords(args).length < args.length && name !== "add") return [];
  if (last.startsWith("-")) {
    const options = [...Object.keys(command.flags), "help"].map((option) => `--${option}`);
    return matching(last, options.toSorted());
  }
  const before = args.filter((word) => !word.startsWith("-"));
  return matching(last, before.length === 0 ? await firstWords(command) : []);
}

function matching(start: string, words: readonly string[]): string[] {
  return words.filter((word) => word.startsWith(start));
}

/** What the first argument of a command can be, besides a file, by the first word of its usage. */
async function firstWords({ name, usage }: Command): Promise<readonly string[]> {
  const [, first = ""] = new RegExp(`catenary ${name} \\[?([\\w|]+)`).exec(usage) ?? [];
  if (first === "TARGET" || first === "SERVER" || (first === "NAME" && name !== "add")) return serverNames();
  if (first.startsWith("CLIENT")) return (await import("../../config/clients.ts")).CLIENTS.map((client) => client.name);
  if (first === "LANGUAGE") return (await import("../../live/languages.ts")).LANGUAGE_NAMES;
  return name === "completion" ? SHELLS : [];
}

/** The servers of the config in this folder. */
async function serverNames(): Promise<readonly string[]> {
  const text = await readConfigText(CONFIG).catch(() => "");
  const config: unknown = parse(text, [], { allowTrailingComma: true });
  const { mcpServers, servers } = isObject(config) ? config : {};
  // A name with a space would be several words.
  return [mcpServers, servers]
    .flatMap((group) => Object.keys(isObject(group) ? group : {}))
    .filter((name) => /^[\w.@:/-]+$/.test(name));
}

async function completion(commands: Commands, args: readonly string[]): Promise<number> {
  const { words, values } = parseFlags("completion", args, FLAGS);
  if (values.words === true) {
    for (const word of await nextWords(commands, words)) printTrusted(`${word}\n`);
    return EXIT.ok;
  }
  const [shellName, ...more] = words;
  const { usage } = completionCommand(commands);
  if (more.length > 0) throw unexpectedArguments("completion", more, usage);
  const shell = SHELLS.find((known) => known === shellName || (known === "powershell" && shellName === "pwsh"));
  if (shell === undefined) {
    if (shellName === undefined) throw new UsageError(`completion needs a shell\n\n${usage}`);
    const hint = suggest(shellName, SHELLS, `the shells are ${SHELLS.join(", ")}`);
    throw new UsageError(`There is no shell ${shellName}; ${hint}`);
  }
  printTrusted(SCRIPTS[shell]);
  return EXIT.ok;
}

export function completionCommand(commands: Commands): Command {
  return command({
    name: "completion",
    usage: SHELLS.join("|"),
    about: `Prints a script that completes commands, options, clients, and the servers of ./${CONFIG}. To use it in every new
shell:

  bash        echo 'source <(catenary completion bash)' >> ~/.bashrc
  zsh         echo 'source <(catenary completion zsh)' >> ~/.zshrc   (after compinit)
  fish        catenary completion fish > ~/.config/fish/completions/catenary.fish
  powershell  add to $PROFILE: catenary completion powershell | Out-String | Invoke-Expression`,
    flags: {},
    exits: "0 ok; 1 wrong command line.",
    runArguments: (args) => completion(commands, args),
  });
}

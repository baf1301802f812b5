// `catenary console`: prints a new link to the console of a running gateway, or opens it.

import { boolean } from "../../core/fields.ts";
import { EXIT } from "../command.ts";
import { command, type Command } from "../define.ts";
import { askGateway } from "../serve/control.ts";
import { mayOpenBrowser, openConsole } from "../serve/open-console.ts";
import { CHOICE, GATEWAY_FLAG, theGateway } from "../target/running-gateway.ts";
import { isTerminal, printJson, printStatus, printTrusted } from "../terminal/output.ts";
import { oneLine } from "../terminal/text.ts";

export const consoleCommand: Command = command({
  name: "console",
  usage: "[--no-open] [--gateway WHICH] [--json]",
  about: `Opens the [console](../how-to/console.md) of a running gateway in a browser: the page that shows what agents do. Prints a
link if stdout is not a terminal, or no browser can be opened. A link works once.`,
  flags: {
    "no-open": boolean("Prints the link instead of opening it."),
    ...GATEWAY_FLAG,
    json: boolean('Prints one JSON document: `{"link"}`.'),
  },
  notes: CHOICE,
  exits: "0 ok; 1 wrong command line; 4 no gateway runs, or it has no console.",
  async run({ values }) {
    const { socket } = await theGateway(values.gateway);
    const { link } = (await askGateway(socket, "POST", "/link")) as { readonly link: string };
    const mayOpen =
      values.json !== true && values["no-open"] !== true && isTerminal(process.stdout) && mayOpenBrowser();
    if (mayOpen && (await openConsole(link))) {
      printStatus("The console is open in your browser");
      // The browser reads the file that leads there.
      await new Promise((resolve) => setTimeout(resolve, READ_MS));
    } else if (values.json === true) printJson({ link });
    else printTrusted(`${oneLine(link)}\n`);
    return EXIT.ok;
  },
});

const READ_MS = 5_000;

// Serves the board over HTTP, for clients of every revision at once, and prints commands to try it with.

import { styleText } from "node:util";
import { ConnectionError, serve } from "catenary";
import { commandsFor } from "./commands.js";
import { server } from "./server.js";

const port = Number(process.env.PORT || 3000);
const hasColors = process.stdout.isTTY && !process.env.NO_COLOR;
const bold = (text) => (hasColors ? styleText("bold", text) : text);

let front;
try {
  front = await serve(server, { http: { port } });
} catch (error) {
  // The port is in use, or PORT is not a valid port.
  if (!(error instanceof ConnectionError || error instanceof TypeError)) throw error;
  console.error(`${error.message}\nTo use another port: PORT=${(port || 3000) + 1} node examples/board/main.js`);
  process.exit(1);
}

// The first signal lets calls finish; a second one ends the process at once.
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => void front.close());

console.log(bold(`The board is at ${front.url}`));
for (const [title, command] of Object.entries(commandsFor(front.url)))
  console.log(`\n${bold(`# ${title}`)}\n${command}`);
console.log(`\n${bold("# Press Ctrl-C to stop")}`);

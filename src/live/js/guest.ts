// The entry point of a JavaScript session's process: two threads, connected by a port. The user's code runs in the main
// thread. The controller, a worker thread, talks to the host and interrupts the main thread. The controller takes
// longest to start, so it is started before anything else is loaded. The first argument names the module that evaluates
// another language, or is "-" for JavaScript.

import { writeSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { MessageChannel, Worker } from "node:worker_threads";
import type { ControllerData, Evaluator, EvaluatorModule } from "./messages.ts";

const { port1, port2 } = new MessageChannel();
// The rest of the arguments belongs to the user's program.
const [evaluatorPath = "-"] = process.argv.splice(2, 1);
const evaluatorFile = evaluatorPath === "-" ? undefined : evaluatorPath;
const answers = new MessageChannel();
const signal = new SharedArrayBuffer(4);
const controller = new Worker(new URL("./controller.js", import.meta.url), {
  workerData: {
    port: port2,
    ...(evaluatorFile !== undefined && { answers: { port: answers.port2, signal } }),
  } satisfies ControllerData,
  transferList: evaluatorFile === undefined ? [port2] : [port2, answers.port2],
});

// Without the controller, the host can no longer reach the process.
const end = process.kill.bind(process, process.pid, "SIGKILL");
controller.once("exit", end);
controller.once("error", (error) => {
  writeSync(2, `${error.stack ?? error.message}\n`);
  end();
});

const { UserThread } = await import("./user-thread.ts");
const evaluator = evaluatorFile === undefined ? undefined : await loadEvaluator(evaluatorFile);
new UserThread(port1, evaluator, { port: answers.port1, signal }).listen();

async function loadEvaluator(file: string): Promise<Evaluator> {
  const { createEvaluator } = (await import(pathToFileURL(file).href)) as EvaluatorModule;
  return createEvaluator();
}

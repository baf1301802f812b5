// The entry point of a JavaScript session's process: two threads, connected by a port. The user's code runs in the main
// thread. The controller, a worker thread, talks to the host and interrupts the main thread. The controller takes
// longest to start, so it is started before anything else is loaded.

import { writeSync } from "node:fs";
import { MessageChannel, Worker } from "node:worker_threads";

const { port1, port2 } = new MessageChannel();
const controller = new Worker(new URL("./controller.js", import.meta.url), {
  workerData: port2,
  transferList: [port2],
});

// Without the controller, the host can no longer reach the process.
const end = process.kill.bind(process, process.pid, "SIGKILL");
controller.once("exit", end);
controller.once("error", (error) => {
  writeSync(2, `${error.stack ?? error.message}\n`);
  end();
});

const { UserThread } = await import("./user-thread.ts");
new UserThread(port1).listen();

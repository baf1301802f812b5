// The program of a JavaScript session: two threads and a port between them. The user's code runs in the main thread.
// The controller, a worker thread, talks to the host and stops what runs in the main thread. It is started before
// anything else is loaded, because it takes longest.

import { writeSync } from "node:fs";
import { MessageChannel, Worker } from "node:worker_threads";

const { port1, port2 } = new MessageChannel();
const controller = new Worker(new URL("./controller.js", import.meta.url), {
  workerData: port2,
  transferList: [port2],
});

// Without the controller the process cannot be reached any more.
const end = process.kill.bind(process, process.pid, "SIGKILL");
controller.once("exit", end);
controller.once("error", (error) => {
  writeSync(2, `${error.stack ?? error.message}\n`);
  end();
});

const { UserThread } = await import("./user-thread.ts");
new UserThread(port1).listen();

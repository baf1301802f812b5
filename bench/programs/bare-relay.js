// The baseline for a process between a client and an image: starts the image and only copies bytes.

import { spawn } from "node:child_process";

const [command, ...args] = process.argv.slice(2);
const image = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
process.stdin.on("data", (bytes) => image.stdin.write(bytes)).on("end", () => image.stdin.end());
image.stdout.on("data", (bytes) => process.stdout.write(bytes));

// Images of Pharo, Squeak and Cuis as an engine of Smalltalk sessions: how the bridge (image-bridge.ts) is started, and how
// requests are encoded for the guest in the image (the image-*.st files of this folder).

import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { ConnectionError } from "../../core/errors.ts";
import { packageFile } from "../../core/files.ts";
import { defined } from "../../core/values.ts";
import type { GuestRequest, Runtime } from "../runtime.ts";
import type { SmalltalkGuestOptions } from "./engine.ts";
import { chunkPieces, type Piece } from "./gst-source.ts";
import { encodeParts, findProgram } from "./gst.ts";

/** Sessions in a Pharo image that runs already, through its HTTP server (attach-guest.ts). */
export function attachRuntime({ attach = "", env, inheritEnv, cwd }: SmalltalkGuestOptions): Runtime {
  const args = [packageFile("dist/live/smalltalk/attach-guest.js"), attach];
  return {
    language: "smalltalk",
    stopSteps: ["interrupt"],
    noSandbox: 'their code runs in an image that is not started here; remove "attach" or "sandbox"',
    encode: (request) => JSON.stringify(request),
    start: () => Promise.resolve({ command: process.execPath, args, ...defined({ env, inheritEnv, cwd }) }),
  };
}

export function imageRuntime({ command = "", image = "", env, inheritEnv, cwd }: SmalltalkGuestOptions): Runtime {
  return {
    language: "smalltalk",
    // The image answers for an interrupted evaluation before it unwinds it.
    stopSteps: ["interrupt"],
    encode: (request) => encodeParts(request, piecesOf(request)),
    async start() {
      const program = await findProgram(command, "This session needs the virtual machine of its image", env?.["PATH"]);
      const file = resolve(cwd ?? ".", image);
      await access(file, constants.R_OK).catch(() => {
        throw new ConnectionError("spawn", `The image ${image} cannot be read`, { mayHaveRun: false });
      });
      const args = [packageFile("dist/live/smalltalk/image-bridge.js"), flavourOf(program, file), program, file];
      // The machine may need the files beside it, and the image its sources.
      const reads = [...["dist", "src/live", "package.json"].map(packageFile), dirname(program), dirname(file)];
      return { command: process.execPath, args, reads, ...defined({ env, inheritEnv, cwd }) };
    },
  };
}

/** Which of the systems it is: they take a script in different ways. Squeak's way is that of most other descendants. */
function flavourOf(program: string, image: string): "pharo" | "cuis" | "squeak" {
  for (const flavour of ["pharo", "cuis"] as const)
    if (basename(program).toLowerCase().includes(flavour) || basename(image).toLowerCase().includes(flavour))
      return flavour;
  return "squeak";
}

/** Code for an image is statements or chunks. Its compiler answers the value of the last statement by itself. */
function piecesOf({ op, code, value }: GuestRequest): readonly Piece[] {
  if (op === "eval" || op === "evaluate-in-frame") return chunkPieces(String(code));
  return op === "take-restart" && typeof value === "string" ? chunkPieces(value) : [];
}

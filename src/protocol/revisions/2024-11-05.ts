// The first revision: no audio, no annotations of tools, no words with progress, and completion without a
// capability that announces it. Audio becomes an embedded resource where one may stand; in sampling only
// text and images may, so there it is refused. What can be completed is found out by asking, so to newer callers
// the capability is there wherever prompts or resources are.

import type { Delta } from "../revision.ts";
import {
  block,
  cannotAnswer,
  cannotAsk,
  promptContent,
  sampledContent,
  samplingContent,
  toolContent,
} from "./content.ts";
import { at, drop, items, object } from "./edit.ts";
import type { Edit } from "./edit.ts";

/** A blob needs an address; this one says that there is nothing behind it. */
const NO_ADDRESS = "urn:catenary:audio";

const audioToResource: Edit = block(
  "audio",
  object(({ data, mimeType, ...rest }) => ({
    ...rest,
    type: "resource",
    resource: { uri: NO_ADDRESS, mimeType, blob: data },
  })),
);

const refuseAskedAudio: Edit = block("audio", () => {
  throw cannotAsk("audio in sampling", { sampling: {} });
});

const refuseAnsweredAudio: Edit = block("audio", () => {
  throw cannotAnswer("audio in sampling");
});

export const delta: Delta = {
  name: "2024-11-05",
  style: "session",
  batches: false,
  up: {
    serverCapabilities: object((capabilities) =>
      capabilities.prompts !== undefined || capabilities.resources !== undefined
        ? { ...capabilities, completions: capabilities.completions ?? {} }
        : capabilities,
    ),
  },
  down: {
    request: { "sampling/createMessage": samplingContent(refuseAskedAudio) },
    result: {
      "tools/list": at("tools", items(drop("annotations"))),
      "tools/call": toolContent(audioToResource),
      "prompts/get": promptContent(audioToResource),
      "sampling/createMessage": sampledContent(refuseAnsweredAudio),
    },
    notification: { "notifications/progress": drop("message") },
    serverCapabilities: drop("completions"),
  },
};

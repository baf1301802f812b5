// The first revision: no audio, no tool annotations, no progress messages, and no capability for completion. Audio
// becomes an embedded resource. In sampling, which allows only text and images, audio is refused. Servers cannot
// declare completion, so a client that wants it must send the request.

import type { Delta } from "../revision.ts";
import {
  block,
  cannotAnswer,
  cannotAsk,
  promptContent,
  sampledContent,
  samplingContent,
  toolContent,
  at,
  drop,
  items,
  object,
  type Edit,
} from "./edits.ts";

/** An embedded resource needs a URI. This one cannot be read. */
const AUDIO_URI = "urn:catenary:audio";

const audioToResource: Edit = block(
  "audio",
  object(({ data, mimeType, ...rest }) => ({
    ...rest,
    type: "resource",
    resource: { uri: AUDIO_URI, mimeType, blob: data },
  })),
);

const refuseAudioRequest: Edit = block("audio", () => {
  throw cannotAsk("audio in sampling", { sampling: {} });
});

const refuseAudioResult: Edit = block("audio", () => {
  throw cannotAnswer("audio in sampling");
});

export const delta: Delta = {
  name: "2024-11-05",
  style: "session",
  up: {},
  down: {
    request: { "sampling/createMessage": samplingContent(refuseAudioRequest) },
    result: {
      "tools/list": at("tools", items(drop("annotations"))),
      "tools/call": toolContent(audioToResource),
      "prompts/get": promptContent(audioToResource),
      "sampling/createMessage": sampledContent(refuseAudioResult),
    },
    notification: { "notifications/progress": drop("message") },
    serverCapabilities: drop("completions"),
  },
};

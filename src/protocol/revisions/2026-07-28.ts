// The newest revision: its methods, by sender. The internal model has exactly the messages of this revision. Each
// request is self-contained, without a handshake or session, and requests to the client travel in an `input_required`
// result. Tasks are an official extension, but their methods are listed here because the model has them.

import type { Newest } from "../revision.ts";

export const newest: Newest = {
  name: "2026-07-28",
  style: "stateless",
  vocabulary: {
    requests: [
      "server/discover",
      "tools/list",
      "tools/call",
      "resources/list",
      "resources/templates/list",
      "resources/read",
      "prompts/list",
      "prompts/get",
      "completion/complete",
      "subscriptions/listen",
      "tasks/get",
      "tasks/update",
      "tasks/cancel",
    ],
    clientRequests: ["sampling/createMessage", "elicitation/create", "roots/list"],
    clientNotifications: ["notifications/cancelled"],
    serverNotifications: [
      "notifications/cancelled",
      "notifications/progress",
      "notifications/message",
      "notifications/tools/list_changed",
      "notifications/prompts/list_changed",
      "notifications/resources/list_changed",
      "notifications/resources/updated",
      "notifications/subscriptions/acknowledged",
      "notifications/tasks",
    ],
  },
};

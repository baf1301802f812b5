// The newest revision, written out: the names that exist in it, by who sends them. Its messages are the
// model itself, so there is nothing to change. Requests stand alone (no handshake, no session); what an end
// asks of its caller travels inside an `input_required` result. Tasks are an official extension of it, and stand
// here with the rest, because all that is inside speaks of them.

import type { Newest } from "../revision.ts";

export const newest: Newest = {
  name: "2026-07-28",
  style: "stateless",
  batches: false,
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
    asks: ["sampling/createMessage", "elicitation/create", "roots/list"],
    callerNotifications: ["notifications/cancelled"],
    endNotifications: [
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

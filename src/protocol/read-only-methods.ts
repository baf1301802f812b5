// The methods whose requests may be sent again although they may have run.

export const READ_ONLY_METHODS: ReadonlySet<string> = new Set([
  "server/discover",
  "ping",
  "tools/list",
  "resources/list",
  "resources/templates/list",
  "resources/read",
  "prompts/list",
  "prompts/get",
  "completion/complete",
  "logging/setLevel",
  "tasks/get",
  "tasks/result",
  "tasks/list",
  // These two change a task, but are safe to repeat: the server ignores repeated answers in an update, and
  // a cancelled task stays cancelled.
  "tasks/update",
  "tasks/cancel",
]);

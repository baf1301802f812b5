// The keys of `_meta` that the protocol reserves for itself. They carry, with each request, what a session
// would have said once; only dialogue/ reads and writes them.

export const META = {
  /** The revision a request is written in. */
  revision: "io.modelcontextprotocol/protocolVersion",
  clientCapabilities: "io.modelcontextprotocol/clientCapabilities",
  clientInfo: "io.modelcontextprotocol/clientInfo",
  /** The least urgent log message that the caller wants with this request. */
  logLevel: "io.modelcontextprotocol/logLevel",
  serverInfo: "io.modelcontextprotocol/serverInfo",
  /** On everything that a `subscriptions/listen` sends: the id of that request. */
  subscriptionId: "io.modelcontextprotocol/subscriptionId",
  /** The task that a message of a session belongs to. */
  relatedTask: "io.modelcontextprotocol/related-task",
  progressToken: "progressToken",
} as const;

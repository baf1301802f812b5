// The subpath `catenary/stdio`: the stdio transports and `serveTransport`, for programs with their own streams.

export { serveTransport, type ConnectionOptions, type ServedConnection } from "./dialogue/connection.ts";
export { childTransport, type ChildTransport, type ChildTransportOptions } from "./transport/child-process.ts";
export { stdioTransport, type StdioOptions } from "./transport/stdio.ts";
export type { Inbound, Transport } from "./transport/transport.ts";

// The subpath `catenary/stdio`: the stdio wire by itself, for those who bring their own streams.

export { childTransport } from "./transport/child.ts";
export { stdioTransport } from "./transport/stdio.ts";
export { serveTransport, type ConnectionOptions, type Served } from "./dialogue/connection.ts";
export type { Inbound, Transport } from "./transport/transport.ts";

// The subpath `catenary/stdio`: the stdio transports, and what programs with their own streams or transports need.

export type { CallerIdentity, HttpHead, RawHead, RawPassage, WireObserver, WirePassage } from "./core/handler.ts";
export type { Optional } from "./core/values.ts";
export { serveTransport, type ConnectionOptions, type ServedConnection } from "./dialogue/connection.ts";
export type { ParkedCallsOptions } from "./dialogue/stateless/parked-calls.ts";
export { encode, type Limits } from "./jsonrpc/codec.ts";
export type { ErrorBody, ErrorMessage, Id, Message, ResponseMessage } from "./jsonrpc/message.ts";
export type { Child, Exit } from "./process/child.ts";
export type { InheritEnv } from "./process/program.ts";
export type { Compat } from "./protocol/compat.ts";
export {
  childTransport,
  type Noise,
  type ChildTransport,
  type ChildTransportOptions,
} from "./transport/child-process.ts";
export type { Carrier, CarrierListener } from "./transport/carrier.ts";
export { decodeInbound } from "./transport/decode-inbound.ts";
export { stdioTransport, type StdioOptions } from "./transport/stdio.ts";
export type { Tap, TappedMessage } from "./transport/tap.ts";
export type {
  BatchItem,
  FaultItem,
  Inbound,
  QuietCancel,
  Receive,
  Received,
  SendOptions,
  Transport,
  TransportSource,
} from "./transport/transport.ts";

// Taps a connection that has no transport: one that sends each request by itself.

import { Meter, type Tap } from "../../transport/tap.ts";
import type { UnaryTransport } from "./back.ts";

/** Every message that `transport` sends, and every one that it gets. */
export function tapUnary(transport: UnaryTransport, tap: Tap): UnaryTransport {
  const meter = new Meter(tap);
  return {
    async unary(message, call, receiver) {
      meter.pass("client", message);
      const response = await transport.unary(message, call, {
        receive(notification, forCall) {
          meter.pass("server", notification);
          return receiver.receive(notification, forCall);
        },
      });
      meter.pass("server", response);
      return response;
    },
    notify(message, closed) {
      meter.pass("client", message);
      return transport.notify(message, closed);
    },
  };
}

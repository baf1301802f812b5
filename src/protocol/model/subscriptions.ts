// The one long request by which a caller hears of changes, what it may ask for, and what it is granted.
// Types only.

import type { RequestParams } from "./results.ts";

export interface SubscriptionFilter {
  readonly toolsListChanged?: boolean;
  readonly promptsListChanged?: boolean;
  readonly resourcesListChanged?: boolean;
  /** Addresses of resources whose changes are wanted. */
  readonly resourceSubscriptions?: readonly string[];
  /** Tasks whose changes are wanted, of the extension. */
  readonly taskIds?: readonly string[];
  readonly [key: string]: unknown;
}

export interface ListenParams extends RequestParams {
  readonly notifications: SubscriptionFilter;
}

export interface AcknowledgedParams extends RequestParams {
  /** What of the filter is granted. */
  readonly notifications: SubscriptionFilter;
}

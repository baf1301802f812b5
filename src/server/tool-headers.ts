// The headers of a call held against its arguments, for tools whose schemas say that some stand in both. Only callers of
// exchange style over HTTP mirror them. Loaded with the first such call of such a tool.

import type { Caller, Request } from "../core/handler.ts";
import { McpError } from "../protocol/errors.ts";
import { checkHeaderParams, wereHeld } from "../protocol/header-match.ts";
import type { HeaderParam } from "../protocol/header-params.ts";
import { META } from "../protocol/model/meta.ts";

/** Throws where they do not agree. */
export function checkMirrored(
  mirrored: readonly HeaderParam[],
  { params }: Request,
  headers: NonNullable<Caller["headers"]>,
): void {
  if (params._meta?.[META.revision] === undefined || wereHeld(headers)) return;
  const mismatch = checkHeaderParams(mirrored, params["arguments"], headers);
  if (mismatch !== undefined) throw McpError.of("header_mismatch", mismatch);
}

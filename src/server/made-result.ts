// A tool's result that needs no more work: whoever makes one vouches that JSON can say all of it, and that it is what the
// tool has declared. Such a result is not looked at again, which is most of what a small result costs.

import type { ContentBlock } from "../protocol/model/index.ts";

export class MadeResult {
  readonly content: readonly ContentBlock[];
  readonly structuredContent: object;
  readonly isError: boolean;

  constructor(text: string, structuredContent: object, isError: boolean) {
    this.content = [{ type: "text", text }];
    this.structuredContent = structuredContent;
    this.isError = isError;
  }
}

// Resources: addresses, templates of addresses, and what is read there. Types only; matching an address
// against a template is elsewhere.

import type { Meta } from "../../core/handler.ts";
import type { Annotations, Icon, ResourceContents } from "./content.ts";
import type { CacheableResult, PageResult, RequestParams } from "./results.ts";
import type { AnsweredParams } from "./rounds.ts";

export interface Resource {
  readonly uri: string;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
  /** In bytes. */
  readonly size?: number;
  readonly icons?: readonly Icon[];
  readonly annotations?: Annotations;
  readonly _meta?: Meta;
}

export interface ResourceTemplate {
  /** RFC 6570. */
  readonly uriTemplate: string;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
  readonly icons?: readonly Icon[];
  readonly annotations?: Annotations;
  readonly _meta?: Meta;
}

export interface ListResourcesResult extends PageResult {
  readonly resources: readonly Resource[];
}

export interface ListResourceTemplatesResult extends PageResult {
  readonly resourceTemplates: readonly ResourceTemplate[];
}

export interface ReadResourceParams extends AnsweredParams {
  readonly uri: string;
}

export interface ReadResourceResult extends CacheableResult {
  readonly contents: readonly ResourceContents[];
}

export interface ResourceUpdatedParams extends RequestParams {
  readonly uri: string;
}

/** Types for the parts of an OpenAPI 3.1 document that Cairn's description uses. */
import type { JsonSchema } from './json-schemas.ts';

export interface OpenApiDocument {
  readonly openapi: '3.1.1';
  readonly info: {
    readonly title: string;
    readonly version: string;
    readonly summary: string;
    readonly description: string;
    readonly license: { readonly name: string; readonly identifier: string };
  };
  readonly servers: readonly { readonly url: string; readonly description: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>;
    readonly responses: Readonly<Record<string, ResponseObject>>;
    readonly parameters: Readonly<Record<string, Parameter>>;
    readonly headers: Readonly<Record<string, HeaderObject>>;
    readonly securitySchemes: Readonly<Record<string, object>>;
  };
}

export interface Reference {
  readonly $ref: string;
}

export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  /**
   * Authentication schemes that the operation accepts. The list of each scheme contains the access that the route
   * needs, which is usually the role of the key.
   */
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters?: readonly (Parameter | Reference)[];
  readonly requestBody?: { readonly required: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, ResponseObject | Reference>>;
  /** Whether a request may be sent again if its reply was lost; if left out, the method decides, as HTTP says. */
  readonly 'x-repeatable'?: boolean;
}

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: JsonSchema;
  readonly example?: unknown;
}

export interface ResponseObject {
  readonly description: string;
  readonly headers?: Readonly<Record<string, Reference>>;
  readonly content?: Content;
}

export interface HeaderObject {
  readonly description: string;
  readonly schema: JsonSchema;
  readonly example: unknown;
}

export type Content = Readonly<Record<string, MediaObject>>;
interface MediaObject {
  readonly schema: JsonSchema;
  /** Schemas of the data of server-sent events, by name of the event. OpenAPI 3.1 has no field for them. */
  readonly 'x-events'?: Readonly<Record<string, JsonSchema>>;
  readonly example: unknown;
}

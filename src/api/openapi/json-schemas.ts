import { z } from 'zod';
import { SHOWN_AS } from '../schemas/values.ts';

/** A schema of OpenAPI 3.1, which is JSON Schema 2020-12. */
export type JsonSchema = z.core.JSONSchema.BaseSchema;

/** JSON Schemas that `translateSchemas` made of zod schemas. */
export interface TranslatedSchemas {
  /** The translated schemas, under the names that were given. */
  readonly schemas: Readonly<Record<string, JsonSchema>>;
  /** Schemas that have an `id`, by that id; other schemas refer to them. */
  readonly components: Readonly<Record<string, JsonSchema>>;
}

/**
 * Converts zod schemas to JSON Schemas that share one set of components.
 * @param io `input` for schemas of requests, `output` for schemas of replies. A reply is described as open to further
 *   fields, so that adding one breaks no client; tests check that it has no others.
 */
export function translateSchemas(
  named: Readonly<Record<string, z.ZodType>>,
  io: 'input' | 'output',
): TranslatedSchemas {
  const root = z.toJSONSchema(z.object(named), {
    io,
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => adjust(zodSchema, jsonSchema, io),
  });
  const text = JSON.stringify(root).replaceAll('"#/$defs/', '"#/components/schemas/');
  const { properties = {}, $defs = {} } = JSON.parse(text) as JsonSchema;
  for (const component of Object.values($defs)) delete component.id;
  return { schemas: properties as Record<string, JsonSchema>, components: $defs };
}

function adjust(zodSchema: z.core.$ZodType, json: JsonSchema, io: 'input' | 'output'): void {
  const shown = SHOWN_AS.get(zodSchema as z.ZodType);
  if (shown !== undefined) {
    const { description = shown.description, id } = json;
    for (const key of Object.keys(json)) delete json[key];
    Object.assign(json, shown, description === undefined ? {} : { description }, id === undefined ? {} : { id });
  }
  if (io === 'output' && json.additionalProperties === false) delete json.additionalProperties;
  // A format is easier to read than the pattern that zod checks it with.
  if (json.format !== undefined) delete json.pattern;
  if (json.minimum === Number.MIN_SAFE_INTEGER) delete json.minimum;
  if (json.maximum === Number.MAX_SAFE_INTEGER) delete json.maximum;
  if (json.description === '') delete json.description;
}

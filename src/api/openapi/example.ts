import type { JsonSchema } from './json-schemas.ts';

/**
 * Makes an example of a schema: the schema's own example if it has one, else its constant, default or first choice;
 * else, of an object, the examples of its required fields, of a list one entry, of a number its minimum or 0, and
 * otherwise `false` or the word "text".
 * @param components the schemas to which references point, by the last segment of the reference
 */
export function exampleOf(schema: JsonSchema, components: Readonly<Record<string, JsonSchema>>): unknown {
  const partOf = (part: unknown) => exampleOf(part as JsonSchema, components);
  if (schema.examples !== undefined) return schema.examples[0];
  if (schema.$ref !== undefined) return partOf(components[schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1)]);
  if (schema.const !== undefined) return schema.const;
  if (schema.default !== undefined) return schema.default;
  if (schema.enum !== undefined) return schema.enum[0];
  const choice = schema.anyOf ?? schema.oneOf;
  if (choice !== undefined) return partOf(choice[0]);
  const type = Array.isArray(schema.type) ? (schema.type as string[])[0] : schema.type;
  switch (type) {
    case 'object': {
      const { required = [], properties = {} } = schema;
      return Object.fromEntries(required.map((name) => [name, partOf(properties[name])]));
    }
    case 'array':
      return [partOf(schema.items)];
    case 'boolean':
      return false;
    case 'integer':
    case 'number':
      return schema.minimum ?? 0;
    default:
      return 'text';
  }
}

import type { JsonSchema } from '../src/api/openapi/json-schemas.ts';

/**
 * Lists the fields of an object schema as Markdown, with nested lists for the objects inside it; '' for a schema
 * without fields.
 * @param indent prefix of every line
 */
export function describeFields(schema: JsonSchema, indent = ''): string {
  if (schema.$ref !== undefined) return '';
  const required = new Set(schema.required ?? []);
  return Object.entries(schema.properties ?? {})
    .map(([name, property]) => describeField(name, property as JsonSchema, { isRequired: required.has(name), indent }))
    .join('\n');
}

function describeField(
  name: string,
  schema: JsonSchema,
  { isRequired, indent }: { readonly isRequired: boolean; readonly indent: string },
): string {
  const { description, default: byDefault } = schema;
  const notes = [
    typeOf(schema),
    ...(isRequired ? [] : ['optional']),
    ...(byDefault === undefined ? [] : [`${JSON.stringify(byDefault)} by default`]),
  ];
  const line = `${indent}- \`${name}\` (${notes.join(', ')})${description === undefined ? '' : `: ${description}`}`;
  const inside = describeFields(innermost(schema), `${indent}  `);
  return inside === '' ? line : `${line}\n${inside}`;
}

/** The schema inside a list or an "or null". */
function innermost(schema: JsonSchema): JsonSchema {
  const choices = (schema.anyOf ?? schema.oneOf)?.filter((choice) => choice.type !== 'null');
  if (choices?.length === 1) return innermost(choices[0] as JsonSchema);
  return schema.type === 'array' && schema.items !== undefined ? innermost(schema.items as JsonSchema) : schema;
}

/** Type of a value in a few words. */
export function typeOf(schema: JsonSchema): string {
  const { $ref, anyOf, oneOf, type } = schema;
  if ($ref !== undefined) {
    const name = $ref.slice($ref.lastIndexOf('/') + 1);
    return `[${name}](#${name.toLowerCase()})`;
  }
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``;
  if (schema.enum !== undefined) return joined(schema.enum.map((value) => `\`${String(value)}\``));
  const choices = anyOf ?? oneOf;
  if (choices !== undefined) return joined(choices.map((choice) => typeOf(choice)));
  if (Array.isArray(type)) return joined(type);
  switch (type) {
    case 'array':
      return (
        `list of ${schema.items === undefined ? 'values' : plural(schema.items as JsonSchema)}` + mostEntries(schema)
      );
    case 'integer':
    case 'number':
      return `${type}${range(schema)}`;
    case 'string':
      return `${schema.format === undefined ? 'string' : formatName(schema.format)}${mostCharacters(schema)}`;
    default:
      return type ?? 'any JSON';
  }
}

/** Plural of a type: words for plain types get an s, names of schemas and of values stay unchanged. */
function plural(schema: JsonSchema): string {
  return typeOf(schema).replace(/^(?:string|object|integer|number|UUID)(?=$| )/, '$&s');
}

function joined(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
}

function range({ minimum, maximum }: JsonSchema): string {
  if (minimum === undefined && maximum === undefined) return '';
  return maximum === undefined ? ` from ${minimum}` : ` ${minimum ?? ''}..${maximum}`;
}

function mostEntries({ maxItems }: JsonSchema): string {
  return maxItems === undefined ? '' : `, at most ${maxItems}`;
}

function mostCharacters({ maxLength }: JsonSchema): string {
  return maxLength === undefined ? '' : ` of at most ${maxLength} characters`;
}

function formatName(format: string): string {
  return { uuid: 'UUID', uri: 'URL', date: 'date', 'date-time': 'date and time' }[format] ?? format;
}

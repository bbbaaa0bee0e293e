import type { JsonSchema } from '../src/api/openapi/json-schemas.ts';

/**
 * Writes a JSON Schema as a type of TypeScript.
 * @param isSent whether clients send values of this type: their optional fields may then be `undefined`, too, which a
 *   client leaves out
 */
export function typeScriptOf(schema: JsonSchema, isSent: boolean): string {
  const of = (part: unknown) => typeScriptOf(part as JsonSchema, isSent);
  const { $ref, const: only, type } = schema;
  if ($ref !== undefined) return referredName($ref);
  if (only !== undefined) return JSON.stringify(only);
  if (schema.enum !== undefined) return union(schema.enum.map((value) => JSON.stringify(value)));
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined) return union(choices.map(of));
  if (Array.isArray(type)) return union((type as string[]).map((one) => of({ ...schema, type: one })));
  switch (type) {
    case 'object':
      return objectType(schema, isSent);
    case 'array':
      return `readonly (${schema.items === undefined ? of({}) : of(schema.items)})[]`;
    case 'integer':
    case 'number':
      return 'number';
    case 'string':
      return stringType(schema);
    case 'boolean':
    case 'null':
      return type;
    default:
      return isSent ? 'unknown' : 'Json';
  }
}

/** Name of the component that a reference points to. */
export function referredName(reference: string): string {
  return reference.slice(reference.lastIndexOf('/') + 1);
}

/** Writes a comment of documentation; '' for a schema without a description. */
export function docComment(text: string | undefined): string {
  return text === undefined || text === '' ? '' : `/** ${text.replaceAll('*/', '*\\/').replaceAll('\n', '\n * ')} */\n`;
}

/** In a form, a client sends a file as a `Blob`, and other values than strings as JSON. */
function stringType({ contentMediaType }: JsonSchema): string {
  if (contentMediaType === 'application/octet-stream') return 'Blob';
  return contentMediaType === 'application/json' ? 'object' : 'string';
}

function objectType(schema: JsonSchema, isSent: boolean): string {
  const { properties, additionalProperties, propertyNames } = schema as JsonSchema & { propertyNames?: JsonSchema };
  if (properties === undefined && typeof additionalProperties === 'object') {
    const key = propertyNames?.enum === undefined ? 'string' : typeScriptOf(propertyNames, isSent);
    const record = `Readonly<Record<${key}, ${typeScriptOf(additionalProperties, isSent)}>>`;
    return key === 'string' ? record : `Partial<${record}>`;
  }
  const required = new Set(schema.required);
  const fields = Object.entries(properties ?? {}).map(([name, property]) => {
    const { description } = property as JsonSchema;
    const isOptional = !required.has(name);
    const value = typeScriptOf(property as JsonSchema, isSent);
    const orUndefined = isOptional && isSent && value !== 'unknown' ? ' | undefined' : '';
    return `${docComment(description)}readonly ${propertyName(name)}${isOptional ? '?' : ''}: ${value}${orUndefined};`;
  });
  const others =
    additionalProperties !== undefined && additionalProperties !== false
      ? [`readonly [field: string]: ${isSent ? 'unknown' : 'Json'};`]
      : [];
  return `{\n${[...fields, ...others].join('\n')}\n}`;
}

function propertyName(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
}

/** Joins types by `|`, and leaves out those that another of them includes. */
function union(parts: readonly string[]): string {
  for (const any of ['unknown', 'Json']) if (parts.includes(any)) return any;
  const isText = parts.includes('string');
  return [...new Set(parts)].filter((part) => !(isText && part.startsWith('"'))).join(' | ');
}

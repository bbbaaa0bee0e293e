/** Measures memories that were read. `text-sizes.ts` measures them before they are read. */

import type { Json, Memory } from '../types.ts';
import { jsonOf, JsonText } from './json-text.ts';
import { PART_BYTES } from './text-sizes.ts';

/** The fields of a memory that a caller fills, and whose length differs much from memory to memory. */
type Filled = Pick<Memory, 'content' | 'title' | 'gist' | 'tags' | 'files' | 'entities' | 'value' | 'metadata'>;

/**
 * Returns the weight of a memory as `textWeights` does for a stored one: the bytes of its texts and labels, and
 * `jsonWeight` of its value and its metadata. A memory of an earlier time is weighed as it was then.
 */
export function weightOf(memory: Filled): number {
  const { content, title, gist, tags, files, entities } = memory;
  const labels = [tags, files, entities].reduce((sum, list) => sum + Buffer.byteLength(JSON.stringify(list)), 0);
  const value = jsonOf(memory, 'value');
  return (
    [content, title, gist].reduce((sum, text) => sum + Buffer.byteLength(text), labels) +
    (value === null ? 0 : jsonTextWeight(textOf(value))) +
    jsonTextWeight(textOf(jsonOf(memory, 'metadata')))
  );
}

const textOf = (value: Json) => (value instanceof JsonText ? value.text : JSON.stringify(value));

/** UTF-16 code units of the signs of JSON that count for `PART_BYTES` more: comma, bracket and brace. */
const PARTS: ReadonlySet<number> = new Set([0x2c, 0x5b, 0x7b]);

/** Returns the weight of a JSON text as `jsonWeight` does in SQL. */
function jsonTextWeight(text: string): number {
  let parts = 0;
  for (let at = 0; at < text.length; at += 1) if (PARTS.has(text.charCodeAt(at))) parts += 1;
  return Buffer.byteLength(text) + PART_BYTES * parts;
}

/**
 * Returns the approximate length of a memory as JSON in UTF-16 code units, without the fields that are short in every
 * memory. Escapes are counted only in a value and in metadata that were not parsed yet, which stay unparsed.
 */
export function charactersOf(memory: Filled): number {
  const { content, title, gist, tags, files, entities } = memory;
  const labels = [tags, files, entities].reduce((sum, list) => sum + lengthOf(list), 0);
  return (
    content.length +
    title.length +
    gist.length +
    labels +
    lengthOf(jsonOf(memory, 'value')) +
    lengthOf(jsonOf(memory, 'metadata'))
  );
}

/** Estimates the length of a value as JSON, in UTF-16 code units; without escapes, unless it was not parsed yet. */
function lengthOf(value: Json): number {
  if (value instanceof JsonText) return value.text.length;
  if (typeof value !== 'object' || value === null) return typeof value === 'string' ? value.length + 2 : 8;
  let length = 2;
  for (const [name, inner] of Object.entries(value)) length += name.length + lengthOf(inner);
  return length;
}

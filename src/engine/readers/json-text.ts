/**
 * Passes values and metadata of many parts from a reader thread to the main thread as JSON text. Passed as objects, the
 * 150,000 lists that one answer may hold kept the main thread busy for 60 to 110 ms: it has to make each of them, and
 * then write each as JSON again. A text it only copies.
 */
import type { Hit, Json, Memory, QueryResult } from '../types.ts';

/** Number of parts (lists, objects, other values) above which a field is passed as text. */
const MANY_PARTS = 256;

type Field = 'value' | 'metadata';
const FIELDS: readonly Field[] = ['value', 'metadata'];

/** A field of a hit's memory as JSON text; `place` is the index of the hit. */
export interface FieldText {
  readonly place: number;
  readonly field: Field;
  readonly text: string;
}

/** What `packAnswer` and `unpackAnswer` read and replace of an answer. */
interface Answer {
  readonly result: Pick<QueryResult, 'hits'>;
}

/**
 * Takes the fields of many parts out of the answer to a query.
 * @returns a copy of the answer with null in place of these fields, and their texts; the answer itself and an empty
 *   list if it has no such field
 */
export function packAnswer<A extends Answer>(answer: A): { readonly answer: A; readonly texts: readonly FieldText[] } {
  const texts: FieldText[] = [];
  const hits = answer.result.hits.map((hit, place): Hit => {
    const dense = FIELDS.filter((field) => partsOf(hit.memory[field], MANY_PARTS) > MANY_PARTS);
    if (dense.length === 0) return hit;
    for (const field of dense) texts.push({ place, field, text: JSON.stringify(hit.memory[field]) });
    return { ...hit, memory: { ...hit.memory, ...Object.fromEntries(dense.map((field) => [field, null])) } };
  });
  return texts.length === 0 ? { answer, texts } : { answer: { ...answer, result: { ...answer.result, hits } }, texts };
}

/** Counts the parts of a value (lists, objects, other values). The count ends once it is over `most`. */
function partsOf(value: Json, most: number): number {
  let parts = 1;
  if (typeof value !== 'object' || value === null) return parts;
  for (const part of Object.values(value)) {
    if (parts > most) break;
    parts += partsOf(part, most - parts);
  }
  return parts;
}

/** The texts from which fields of memories are parsed when they are first read. */
const textsOf = new WeakMap<Memory, Map<Field, JsonText>>();

/**
 * Puts the fields back that `packAnswer` took out. Each is parsed when it is first read; `jsonOf` returns its text.
 */
export function unpackAnswer({ result: { hits } }: Answer, texts: readonly FieldText[]): void {
  for (const { place, field, text } of texts) {
    const { memory } = hits[place]!;
    if (!textsOf.has(memory)) textsOf.set(memory, new Map());
    const json = new JsonText(text);
    textsOf.get(memory)!.set(field, json);
    Object.defineProperty(memory, field, { get: () => json.toJSON(), enumerable: true, configurable: true });
  }
}

/** A JSON value as text. `JSON.stringify` writes it as the value; `jsonPieces` of the API copies the text. */
export class JsonText {
  readonly text: string;
  #value: Json | undefined;

  constructor(text: string) {
    this.text = text;
  }

  /** Returns the value, which is parsed once. */
  toJSON(): Json {
    return (this.#value ??= JSON.parse(this.text) as Json);
  }
}

/**
 * Returns a field of a memory for a reply in JSON: the field itself, or a `JsonText` if that is what a reader thread
 * passed. A `JsonText` counts as JSON here, since it is written as the value that it stands for.
 */
export function jsonOf<F extends Field>(memory: Memory, field: F): Memory[F] {
  return (textsOf.get(memory)?.get(field) as Memory[F] | undefined) ?? memory[field];
}

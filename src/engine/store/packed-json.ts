/**
 * Passes JSON of many parts between threads as text. Passed as objects, the 150,000 lists that one message may hold
 * keep the main thread busy for 60 to 110 ms: it has to make or read each of them. A text it only copies.
 */
import type { Json } from '../types.ts';
import { deferJson, deferredFields } from './json-text.ts';

/** Number of parts (lists, objects, other values) above which JSON is passed as text. */
const MANY_PARTS = 256;

// ── Inputs of commands ───────────────────────────────────────────────────────────────────────────────────────────────

/** The input of a command as JSON text. */
interface PackedInput {
  readonly packedJson: string;
}

/**
 * Returns the input of a command as a message can hold it: as JSON text, if it has over 256 parts and all of them are
 * JSON; else the input itself. A field that is undefined is missing afterwards.
 */
export function packInput(input: unknown): unknown {
  const counter = { parts: 0 };
  if (!isJson(input, counter) || counter.parts <= MANY_PARTS) return input;
  return { packedJson: JSON.stringify(input) } satisfies PackedInput;
}

/** Returns the input of a command that arrived in a message: that which `packInput` was given. */
export function unpackInput(message: unknown): unknown {
  if (typeof message !== 'object' || message === null || !Object.hasOwn(message, 'packedJson')) return message;
  return JSON.parse((message as PackedInput).packedJson);
}

/** Tells whether a value is the same after it was written as JSON and parsed, and counts its parts. */
function isJson(value: unknown, counter: { parts: number }): boolean {
  counter.parts += 1;
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return true;
    case 'number':
      return Number.isFinite(value);
    case 'object': {
      if (value === null) return true;
      if (Array.isArray(value)) return value.every((part) => part !== undefined && isJson(part, counter));
      if (!isPlain(value)) return false;
      for (const part of Object.values(value)) if (part !== undefined && !isJson(part, counter)) return false;
      return true;
    }
    default:
      return false;
  }
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

// ── Results of commands ──────────────────────────────────────────────────────────────────────────────────────────────

/** Fields of memories and of items of session logs that hold a caller's JSON. */
const FIELDS: ReadonlySet<string> = new Set(['value', 'metadata', 'item']);
/**
 * Greatest number of keys and indexes that lead from a result to a field with a caller's JSON (`FIELDS`). Deeper fields
 * stay in the result.
 */
const MAX_DEPTH = 6;

/** A field of a result as JSON text; `path` has the keys and indexes that lead to it. */
export interface FieldText {
  readonly path: readonly (string | number)[];
  readonly text: string;
}

/**
 * Takes the fields that hold JSON of many parts, or deferred JSON, out of a result.
 * @returns a copy of the result with null in place of these fields, and their texts; the result itself and an empty
 *   list if it has no such field
 */
export function packResult<Result>(result: Result): { readonly result: Result; readonly texts: readonly FieldText[] } {
  const texts: FieldText[] = [];
  return { result: packed(result, { path: [], texts }) as Result, texts };
}

/**
 * Puts the fields back that `packResult` took out. Each is parsed when it is first read; `jsonOf` returns its text.
 */
export function unpackResult(result: unknown, texts: readonly FieldText[]): void {
  for (const { path, text } of texts) {
    let holder = result as Record<string | number, unknown>;
    for (const key of path.slice(0, -1)) holder = holder[key] as typeof holder;
    deferJson(holder, String(path.at(-1)), text);
  }
}

/** The keys that lead to the node that is being packed, and the texts that were found so far. */
interface Packing {
  readonly path: (string | number)[];
  readonly texts: FieldText[];
}

/** Returns a node of a result without the fields that are passed as text, which are added to `texts`. */
function packed(node: unknown, packing: Packing): unknown {
  if (typeof node !== 'object' || node === null || packing.path.length >= MAX_DEPTH) return node;
  if (Array.isArray(node)) return packedList(node, packing);
  return isPlain(node) ? packedObject(node as Record<string, unknown>, packing) : node;
}

function packedList(list: readonly unknown[], packing: Packing): readonly unknown[] {
  const parts = list.map((part, at) => within(packing, at, () => packed(part, packing)));
  return parts.some((part, at) => part !== list[at]) ? parts : list;
}

function packedObject(node: Readonly<Record<string, unknown>>, packing: Packing): object {
  const deferred = deferredFields(node);
  const changed = new Map<string, unknown>();
  for (const key of Object.keys(node)) {
    const text = deferred?.get(key)?.text ?? textOfDense(node, key);
    if (text !== undefined) {
      packing.texts.push({ path: [...packing.path, key], text });
      changed.set(key, null);
    } else if (!FIELDS.has(key)) {
      const after = within(packing, key, () => packed(node[key], packing));
      if (after !== node[key]) changed.set(key, after);
    }
  }
  if (changed.size === 0) return node;
  return Object.fromEntries(Object.keys(node).map((key) => [key, changed.has(key) ? changed.get(key) : node[key]]));
}

function within<T>({ path }: Packing, key: string | number, pack: () => T): T {
  path.push(key);
  const result = pack();
  path.pop();
  return result;
}

/** Returns a field's JSON text if it holds JSON of many parts; undefined for any other field. */
function textOfDense(node: Readonly<Record<string, unknown>>, key: string): string | undefined {
  if (!FIELDS.has(key)) return undefined;
  const value = node[key] as Json;
  return partsOf(value, MANY_PARTS) > MANY_PARTS ? JSON.stringify(value) : undefined;
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

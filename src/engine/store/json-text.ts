import type { Json } from '../types.ts';
import { parseStored } from './stored-json.ts';

/** A stored JSON value as text. `JSON.stringify` writes it as the value; `jsonPieces` of the API copies the text. */
export class JsonText {
  readonly text: string;
  #value: Json | undefined;

  constructor(text: string) {
    this.text = text;
  }

  /**
   * Returns the value, which is parsed once.
   * @throws EngineError `internal` for a text that is not JSON, as only a damaged file has
   */
  toJSON(): Json {
    return (this.#value ??= parseStored(this.text) as Json);
  }
}

/**
 * Length in UTF-16 code units from which stored JSON is parsed only where it is read: most of it is only passed on, and
 * to parse a value of 256 KiB and to write it again takes some 20 ms.
 */
const LONG_CHARACTERS = 1_024;

/** The texts of deferred fields, by the object that has the fields. */
const textsOf = new WeakMap<object, Map<string, JsonText>>();

/** Makes a field of an object the value of a JSON text, which is parsed when the field is first read. */
export function deferJson(holder: object, field: string, text: string): void {
  const json = new JsonText(text);
  const texts = textsOf.get(holder);
  if (texts === undefined) textsOf.set(holder, new Map([[field, json]]));
  else texts.set(field, json);
  Object.defineProperty(holder, field, { get: () => json.toJSON(), enumerable: true, configurable: true });
}

/**
 * Makes a field of an object the value of a stored JSON text: parsed at once if the text is short, else when the field
 * is first read. Null becomes null.
 */
export function putJson(holder: object, field: string, text: string | null): void {
  if (text !== null && text.length >= LONG_CHARACTERS) return deferJson(holder, field, text);
  (holder as Record<string, unknown>)[field] = text === null ? null : parseStored(text);
}

/** Returns the deferred fields of an object with their texts; undefined if it has none. */
export function deferredFields(holder: object): ReadonlyMap<string, JsonText> | undefined {
  return textsOf.get(holder);
}

/**
 * Returns a field of an object for a reply in JSON: the field itself, or a `JsonText` if it is deferred. A `JsonText`
 * counts as JSON here, since it is written as the value that it stands for.
 */
export function jsonOf<Holder extends object, Field extends keyof Holder & string>(
  holder: Holder,
  field: Field,
): Holder[Field] {
  return (textsOf.get(holder)?.get(field) as Holder[Field] | undefined) ?? holder[field];
}

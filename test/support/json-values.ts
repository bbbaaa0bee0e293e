import fc from 'fast-check';

/**
 * Name that no object may have here. Once it has parsed an object with it, V8 13.6 takes any escaped name of one
 * character for it in objects of the same form, in this test and in all that follow in its process.
 */
const SPOILING = '\\';

/** Names of the fields of an object. */
export const fieldName: fc.Arbitrary<string> = fc.string().filter((name) => name !== SPOILING);

/** Values of JSON, as `fc.jsonValue` makes them, whose names V8 reads as they are written. */
export function jsonValue(constraints: fc.JsonSharedConstraints = {}): fc.Arbitrary<fc.JsonValue> {
  return fc.jsonValue(constraints).filter((value) => !hasSpoilingName(value));
}

/** Such values as texts. */
export function jsonText(constraints?: fc.JsonSharedConstraints): fc.Arbitrary<string> {
  return jsonValue(constraints).map((value) => JSON.stringify(value));
}

function hasSpoilingName(value: fc.JsonValue | undefined): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return Object.hasOwn(value, SPOILING) || Object.values(value).some(hasSpoilingName);
}

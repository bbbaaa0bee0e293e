import type Database from 'better-sqlite3';
import { identifiersOf, indexableText } from '../text/index-text.ts';
import { indexedText, markOf } from './word-index/tokens.ts';

/** What migrations ask for and SQL cannot say. Like them, it is never changed after a release, whatever becomes of its kind elsewhere. */
export function addMigrationFunctions(db: Database.Database): void {
  db.function('int5_of_int8', { deterministic: true }, (vector) => int5OfInt8(vector as Buffer));
  db.function('indexable_text', { deterministic: true }, (text) => indexableText(text as string));
  db.function('indexed_text', { deterministic: true }, (text, seq) =>
    indexedText(text as string, markOf(seq as number)),
  );
  db.function('identifiers_of', { deterministic: true }, (text) => identifiersOf(text as string));
  db.function('context_of', { deterministic: true }, (latest) => contextOf(JSON.parse(latest as string) as string[]));
}

/** For 0010: a signed byte a dimension as a plane of signs and, two dimensions a byte, the lower four bits of a code of five. */
function int5OfInt8(vector: Buffer): Buffer {
  const components = new Int8Array(vector.buffer, vector.byteOffset, vector.byteLength);
  const largest = components.reduce((most, component) => Math.max(most, Math.abs(component)), 1);
  const width = components.length >> 3;
  const int5 = Buffer.alloc(5 * width);
  for (const [i, component] of components.entries()) {
    const steps = Math.trunc((16 * component) / largest);
    const code = component > 0 ? Math.min(31, 16 + steps) : Math.max(0, 15 + steps);
    int5[i >> 3]! |= (code >> 4) << (i & 7);
    int5[width + (i >> 1)]! |= (code & 15) << (4 * (i & 1));
  }
  return int5;
}

/** For 0011: texts, the latest first, as `contextOf` in text.ts joins them. */
function contextOf(latest: readonly string[]): string {
  return latest.toReversed().join('\n').slice(-1_000).toWellFormed();
}

import { TEXT_COLUMNS } from '../types.ts';
import type { Store } from './open-store.ts';

/** Columns of the word index that hold a memory's own words: all of TEXT_COLUMNS but `context`. */
export const OWN_COLUMNS = TEXT_COLUMNS.filter((column) => column !== 'context');

/**
 * The words of a memory that its caller gave or that were derived from them. Words of its neighbours in the session
 * (its context) are not among them.
 */
export interface OwnText {
  /** The memory's text, or the beginning that was asked for. */
  readonly content: string;
  /** The title that the caller gave; '' for none. */
  readonly title: string;
  /** One line about the text that the caller gave; '' for none. */
  readonly gist: string;
  /** JSON array of strings. */
  readonly entities: string;
  /** JSON array of strings. */
  readonly tags: string;
  /** JSON array of paths. */
  readonly files: string;
}

/** Reads the first `characters` of these memories' texts, and all their labels, by memory number. */
function readOwnTexts(store: Store, memoryNos: readonly number[], characters: number): Map<number, OwnText> {
  if (memoryNos.length === 0) return new Map();
  const rows = store
    .prepare(
      `SELECT seq AS memoryNo, substr(content, 1, ?) AS content, title, gist, entities, tags, files
       FROM memories WHERE seq IN (SELECT value FROM json_each(?))`,
    )
    .all(characters, JSON.stringify(memoryNos)) as (OwnText & { memoryNo: number })[];
  return new Map(rows.map((row) => [row.memoryNo, row]));
}

/** Joins title, gist, and the lists of `listedLabelsOf` by line feeds, without empty ones; '' if all are empty. */
export function labelsOf(own: OwnText): string {
  return [own.title, own.gist, listedLabelsOf(own)].filter((label) => label !== '').join('\n');
}

/** Joins entities, tags and files, each as JSON, by line feeds, without empty lists; '' if all are empty. */
export function listedLabelsOf({ entities, tags, files }: OwnText): string {
  if (entities === '[]' && tags === '[]' && files === '[]') return '';
  return [entities, tags, files].filter((list) => list !== '[]').join('\n');
}

/**
 * Reads the first `characters` (Unicode code points) of memories' texts and all their labels, by memory number; unknown
 * numbers are left out. A text that was read whole is not read again, unless fewer characters are wanted.
 */
export type TextReader = (memoryNos: readonly number[], characters: number) => ReadonlyMap<number, OwnText>;

/** Makes a text reader, which may be used on the snapshot at which it is made, and on no other. */
export function createTextReader(store: Store): TextReader {
  const whole = new Map<number, OwnText>();
  return (memoryNos, characters) => {
    const wanted = memoryNos.filter((memoryNo) => (whole.get(memoryNo)?.content.length ?? Infinity) > characters);
    const texts = wanted.length === 0 ? new Map<number, OwnText>() : readOwnTexts(store, wanted, characters);
    for (const memoryNo of memoryNos) {
      const text = texts.get(memoryNo);
      if (text === undefined && whole.has(memoryNo)) texts.set(memoryNo, whole.get(memoryNo)!);
      else if (text !== undefined && text.content.length < characters) whole.set(memoryNo, text);
    }
    return texts;
  };
}

import { TEXT_COLUMNS } from '../types.ts';
import type { Store } from './open-store.ts';

/** The columns of the word index that hold a memory's own words: all of TEXT_COLUMNS but `context`. */
export const OWN_COLUMNS = TEXT_COLUMNS.filter((column) => column !== 'context');

/** A memory's own text and labels. Its context, the text of the memories before it in the session, is not included. */
export interface OwnText {
  /** Text of the memory, or only its beginning if the reader asked for no more. */
  readonly content: string;
  /** Title that the caller stated; '' if there is none. */
  readonly title: string;
  /** One line about the text that the caller stated; '' if there is none. */
  readonly gist: string;
  /** Names that the caller stated, as a JSON array. */
  readonly entities: string;
  /** Tags, as a JSON array. */
  readonly tags: string;
  /** Paths of files, as a JSON array. */
  readonly files: string;
}

/** A row with a memory's own text. */
interface TextRow extends OwnText {
  readonly memoryNo: number;
  /** Size of the whole stored text, in bytes. */
  readonly bytes: number;
}

/**
 * Reads the first `characters` (Unicode code points) of these memories' texts, and all their labels, by memory number;
 * unknown numbers are left out.
 */
function readOwnTexts(store: Store, memoryNos: readonly number[], characters: number): Map<number, OwnText> {
  if (memoryNos.length === 0) return new Map();
  const rows = store
    .prepare(
      `SELECT seq AS memoryNo, substr(content, 1, ?) AS content, octet_length(content) AS bytes,
         title, gist, entities, tags, files
       FROM memories WHERE seq IN (SELECT value FROM json_each(?))`,
    )
    .all(characters, JSON.stringify(memoryNos)) as TextRow[];
  const texts = new Map(rows.map((row): [number, OwnText] => [row.memoryNo, row]));
  const broken = rows.filter(
    ({ content, bytes }) => Buffer.byteLength(content) < bytes && isShorter(content, characters),
  );
  for (const [memoryNo, content] of readBroken(store, broken, characters)) {
    texts.set(memoryNo, { ...texts.get(memoryNo)!, content });
  }
  return texts;
}

/** Tells whether a text has fewer than this number of Unicode code points. */
function isShorter(text: string, characters: number): boolean {
  // A code point takes one or two places.
  if (text.length < characters || text.length >= 2 * characters) return text.length < characters;
  return PAIRED.test(text) && Array.from(text).length < characters;
}

const PAIRED = /[\ud800-\udbff]/;

/** Reads the beginnings of texts that contain U+0000, where SQLite's `substr` would end the text. */
function* readBroken(
  store: Store,
  rows: readonly TextRow[],
  characters: number,
): Generator<[memoryNo: number, content: string]> {
  if (rows.length === 0) return;
  const whole = store
    .prepare('SELECT seq, content FROM memories WHERE seq IN (SELECT value FROM json_each(?))')
    .raw()
    .all(JSON.stringify(rows.map(({ memoryNo }) => memoryNo))) as [number, string][];
  for (const [memoryNo, content] of whole) {
    // A code point takes at most two places.
    yield [
      memoryNo,
      Array.from(content.slice(0, 2 * characters))
        .slice(0, characters)
        .join(''),
    ];
  }
}

/** Joins title, gist and the lists of `listedLabelsOf` by line feeds, without empty ones; '' if all are empty. */
export function labelsOf(own: OwnText): string {
  return [own.title, own.gist, listedLabelsOf(own)].filter((label) => label !== '').join('\n');
}

/** Joins entities, tags and files, each as a JSON array, by line feeds, without empty ones; '' if all are empty. */
export function listedLabelsOf({ entities, tags, files }: OwnText): string {
  if (entities === '[]' && tags === '[]' && files === '[]') return '';
  return [entities, tags, files].filter((list) => list !== '[]').join('\n');
}

/**
 * A function that reads the first `characters` (Unicode code points) of memories' texts, and all their labels, by
 * memory number; unknown numbers are left out. It caches texts that it has read completely.
 */
export type TextReader = (memoryNos: readonly number[], characters: number) => ReadonlyMap<number, OwnText>;

/** Makes a text reader. Use it only on the snapshot on which it was made. */
export function createTextReader(store: Store): TextReader {
  if (store.ahead !== null) return createLongReader(store);
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

/**
 * Number of characters that are read of each text in PostgreSQL, where each SQL statement costs a round trip, if at
 * most `FEW_TEXTS` are wanted. It is as many as any stage of a query asks for, so that the next stage finds them read.
 */
const LONG = 4_000;
/** Greatest number of texts of which more is read than is asked for. */
const FEW_TEXTS = 64;

/** Makes a text reader that reads more of each text than is asked for, and keeps it. */
function createLongReader(store: Store): TextReader {
  const kept = new Map<number, { readonly text: OwnText; readonly characters: number }>();
  return (memoryNos, characters) => {
    const wanted = memoryNos.filter((memoryNo) => (kept.get(memoryNo)?.characters ?? 0) < characters);
    const read = wanted.length > FEW_TEXTS ? characters : Math.max(LONG, characters);
    for (const [memoryNo, text] of readOwnTexts(store, wanted, read)) kept.set(memoryNo, { text, characters: read });
    return new Map(
      memoryNos.flatMap((memoryNo): [number, OwnText][] => {
        const text = kept.get(memoryNo)?.text;
        return text === undefined ? [] : [[memoryNo, { ...text, content: beginningOf(text.content, characters) }]];
      }),
    );
  };
}

/** Returns the first `characters` Unicode code points of a text. */
function beginningOf(text: string, characters: number): string {
  if (text.length <= characters) return text;
  let end = 0;
  for (let count = 0; count < characters && end < text.length; count += 1)
    end += text.codePointAt(end)! > 0xffff ? 2 : 1;
  return text.slice(0, end);
}

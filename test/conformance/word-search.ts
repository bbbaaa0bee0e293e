import fs from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { createRandom } from '../../src/engine/random.ts';
import { openStore, type SqliteStore } from '../../src/engine/store/open-store.ts';
import { clearText, deleteText, putText, type TextRow } from '../../src/engine/store/word-index/memory-text.ts';
import { mergeText } from '../../src/engine/store/word-index/merges.ts';
import { chooseWordIndex, loadWords, openWordSearch } from '../../src/engine/store/word-index/open-word-search.ts';
import { textRewrites } from '../../src/engine/store/word-index/rewrite-log.ts';
import { readSegments } from '../../src/engine/store/word-index/structure.ts';
import { indexedText, PARTITION_ROWS, TOKENIZER } from '../../src/engine/store/word-index/terms.ts';
import type { WordIndexChoice } from '../../src/engine/store/word-index/word-search.ts';
import { identifiersOf } from '../../src/engine/text/index-text.ts';
import { TEXT_COLUMNS } from '../../src/engine/types.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** Weights of the columns of the word index, in the order of `TEXT_COLUMNS`. */
export const WEIGHTS = [0.3, 2, 1, 1, 1.5, 1.5, 1.5];

/**
 * A file whose rows are written twice: to the word index, and to a table of plain FTS5 without partitions, whose
 * results are the expected ones. One connection writes, another one reads.
 */
export interface WordFixture {
  readonly writer: SqliteStore;
  readonly reader: SqliteStore;
  /** Writes or replaces a row. Call inside a write. */
  put(row: TextRow): void;
  /** Deletes a row. Call inside a write. */
  remove(memoryNo: number): void;
  clear(): void;
  /** Checks that a reader finds the rows that plain FTS5 finds for these words and phrases, with the same BM25. */
  expectSame(texts: readonly string[]): void;
  close(): void;
}

/**
 * Opens a file whose rows are also in plain FTS5.
 * @param choice how the second connection reads the index
 * @param contents path of a file that is copied to begin with; empty if left out
 */
export function openWordFixture(choice: WordIndexChoice, contents?: string): WordFixture {
  const file = path.join(tempFolder(), 'words.sqlite');
  if (contents !== undefined) fs.copyFileSync(contents, file);
  const writer = openStore(file, { role: 'worker', create: true });
  const reader = openStore(file, { role: 'reader' });
  chooseWordIndex(reader, choice);
  if (contents === undefined) {
    writer.db.exec(`CREATE VIRTUAL TABLE plain USING fts5 (${TEXT_COLUMNS.join(', ')},
      content = '', contentless_delete = 1, tokenize = "${TOKENIZER}")`);
  }

  const askFts = (texts: readonly string[]): Map<number, number> => {
    const match = texts.map((text) => `"${text}"`).join(' OR ');
    const rows = reader.db
      .prepare(`SELECT rowid, -bm25(plain, ${WEIGHTS.join(', ')}) FROM plain WHERE plain MATCH ? ORDER BY rowid`)
      .raw()
      .all(match) as [number, number][];
    return new Map(rows);
  };
  const askWords = (texts: readonly string[]): Map<number, number> =>
    reader.read(() => {
      const ranked = openWordSearch(reader).best(texts, WEIGHTS, 1e6);
      return new Map(ranked.map(({ memoryNo, bm25 }) => [memoryNo, bm25]));
    });

  return {
    writer,
    reader,
    put(row) {
      putText(writer, row);
      const identifiers = identifiersOf(row.title === '' ? row.content : `${row.title}\n${row.content}`);
      const columns = TEXT_COLUMNS.map((column) =>
        [column === 'identifiers' ? identifiers : row[column]].flat().join('\n'),
      );
      writer
        .prepare(
          `INSERT OR REPLACE INTO plain (rowid, ${TEXT_COLUMNS.join(', ')}) VALUES (?, ${TEXT_COLUMNS.map(() => '?').join(', ')})`,
        )
        .run(row.memoryNo, ...columns.map((text) => indexedText(text, '')));
    },
    remove(memoryNo) {
      deleteText(writer, memoryNo);
      writer.prepare('DELETE FROM plain WHERE rowid = ?').run(memoryNo);
    },
    clear() {
      writer.write(() => {
        clearText(writer);
        writer.db.exec(`INSERT INTO plain (plain) VALUES ('delete-all')`);
      });
    },
    expectSame(texts) {
      const expected = askFts(texts);
      const found = askWords(texts);
      expect([...found.keys()].sort((a, b) => a - b)).toEqual([...expected.keys()]);
      for (const [memoryNo, bm25] of expected) expect(found.get(memoryNo)! / bm25).toBeCloseTo(1, 9);
      // Sums are equal to the last digit, whatever the order of the words.
      expect(askWords([...texts].reverse())).toEqual(found);
      for (const text of texts) {
        const frequency = askFts([text]).size;
        reader.read(() => {
          const words = openWordSearch(reader);
          expect(words.frequencyOf(text)).toBe(frequency);
          if (frequency > 0) expect(words.bytesOf(text)).toBeGreaterThan(0);
        });
      }
    },
    close() {
      reader.close();
      writer.close();
    },
  };
}

/** Makes a row of the index; columns that are left out are empty. */
export function textRow(memoryNo: number, columns: Partial<Record<(typeof TEXT_COLUMNS)[number], string>>): TextRow {
  return {
    memoryNo,
    title: '',
    content: '',
    gist: '',
    files: [],
    context: '',
    ...columns,
    entities: (columns.entities ?? '').split(' '),
    tags: (columns.tags ?? '').split(' '),
  };
}

const PAGED_ROWS = 4_000;
/** Returns the `memoryNo` of the row with this index in `openPagedFixture`; the rows lie in three partitions. */
const pagedMemoryNo = (at: number): number => 80 * at;

let paged: string | undefined;

/**
 * Opens an index of many pages and segments, with rare words, and with common words whose rows take many pages. Some
 * rows begin on one page and end on the next. The file is made once for all tests of this process.
 */
export function openPagedFixture(choice: WordIndexChoice): WordFixture {
  // Another file of tests may have made it, and its folder went with it.
  if (paged === undefined || !fs.existsSync(paged)) paged = fillPages();
  return openWordFixture(choice, paged);
}

/** Fills the file of `openPagedFixture`, which takes as long as all tests of it. @returns the path of the file */
function fillPages(): string {
  const { writer, put, close } = openWordFixture('auto');
  const random = createRandom(5);
  const word = () => `w${Math.floor(2_000 ** random())}`;
  for (let at = 1; at <= PAGED_ROWS;) {
    writer.write(() => {
      for (const last = Math.min(PAGED_ROWS, at + 399); at <= last; at += 1) {
        const words = Array.from({ length: at % 500 === 0 ? 9_000 : 30 }, word).join(' ');
        put(
          textRow(pagedMemoryNo(at), { content: words, title: at % 3 === 0 ? word() : '', context: `the ${word()}` }),
        );
      }
    });
  }
  writer.db.pragma('wal_checkpoint(TRUNCATE)');
  close();
  return writer.path;
}

export const PAGED_TEXTS = [
  ['w0'],
  ['w1', 'w5', 'w1999'],
  ['the'],
  ['w0 w1', 'w7'],
  ['the w0', 'w1 w0 w2'],
  ['nothing', 'w3'],
];
const PAGED_PHRASES = ['w0 w1', 'w1 w0', 'w2 w0', 'w1 w2', 'w5 w0', 'w9 w1'];

/** Words of which random texts are made; the last one is longer than a page of the index. */
const WORDS = ['apple', 'apples', 'pear', 'plum', 'fig', 'one', 'Äpfel', 'don’t', 'x', `long${'er'.repeat(60)}`];
const phrase = fc.array(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 6 }).map((words) => words.join(' '));
const texts = fc.array(phrase, { minLength: 1, maxLength: 4 });
const change = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('put' as const),
      column: fc.constantFrom(...TEXT_COLUMNS),
      text: phrase,
      other: phrase,
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('replace' as const), at: fc.nat(), text: phrase }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('delete' as const), at: fc.nat() }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('merge' as const),
      start: fc.boolean(),
      pages: fc.constantFrom(1, 3, 10, 500),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('look' as const), texts }) },
);
/** Difference between the numbers of two rows: sixty rows then lie in fourteen partitions. */
const ROW_STEP = 30_000;

/** Declares the tests that every reader of the word index must pass. */
export function describeWordSearch(choice: WordIndexChoice): void {
  describe(`${choice} as a reader of the word index`, () => {
    let fixture: WordFixture;
    let writer: SqliteStore;
    let reader: SqliteStore;
    beforeEach(() => {
      fixture = openWordFixture(choice);
      ({ writer, reader } = fixture);
      return () => fixture.close();
    });

    test('rows and BM25 are those of FTS5, whatever another connection writes', () => {
      // Small pages, so that words and their rows begin and end at all places of them.
      writer.db.exec(`INSERT INTO memory_text (memory_text, rank) VALUES ('pgsz', 32)`);
      fc.assert(
        fc.property(fc.array(change, { maxLength: 60 }), texts, (changes, last) => {
          fixture.clear();
          const known: number[] = [];
          let next = 0;
          for (const change of changes) {
            const at = 'at' in change ? known[change.at % Math.max(1, known.length)] : undefined;
            if (change.kind === 'look') fixture.expectSame(change.texts);
            else if (change.kind === 'merge') writer.write(() => mergeText(writer, change));
            else if (change.kind === 'put') {
              const memoryNo = (next += ROW_STEP);
              known.push(memoryNo);
              const columns = { content: change.other, [change.column]: change.text };
              writer.write(() => fixture.put(textRow(memoryNo, columns)));
            } else if (at !== undefined && change.kind === 'replace') {
              writer.write(() => {
                fixture.put(textRow(at, { title: 'fig', content: change.text }));
                textRewrites.note(writer, [at]);
              });
            } else if (at !== undefined) {
              writer.write(() => fixture.remove(at));
              known.splice(known.indexOf(at), 1);
            }
          }
          fixture.expectSame(last);
        }),
        { numRuns: 60 },
      );
    });

    test('rows of a word that is the last on its page', () => {
      for (let from = 1; from <= 3_000; from += 500) {
        writer.write(() => {
          for (let memoryNo = from; memoryNo < from + 500; memoryNo += 1) {
            fixture.put(textRow(memoryNo, { content: memoryNo % 50 === 0 ? 'otter' : 'long'.repeat(1_250) }));
          }
        });
      }
      writer.write(() => writer.db.exec(`INSERT INTO memory_text (memory_text) VALUES ('optimize')`));
      fixture.expectSame(['long'.repeat(1_250), 'otter']);
    });

    test('an index that was made anew is counted anew', () => {
      for (const share of [2, 3, 5]) {
        fixture.clear();
        writer.write(() => {
          for (let memoryNo = 1; memoryNo <= 8_000; memoryNo += 1) {
            fixture.put(textRow(memoryNo, { content: memoryNo % share === 0 ? 'apple' : 'pears' }));
          }
        });
        fixture.expectSame(['apple']);
        fixture.expectSame(['pear']);
      }
    });

    test('what is deleted of segments while they are merged is known to who asked before', () => {
      const each = 400;
      for (let commit = 0; commit < 4; commit += 1) {
        writer.write(() => {
          for (let memoryNo = commit * each + 1; memoryNo <= (commit + 1) * each; memoryNo += 1)
            fixture.put(textRow(memoryNo, { content: `zebra yak only${memoryNo} of${memoryNo % 50}` }));
        });
      }
      writer.write(() => void mergeText(writer, { start: true, pages: 4 }));
      const askAll = (store: SqliteStore) =>
        store.read(() => {
          const words = openWordSearch(store);
          const best = words.best(['of7', 'zebra'], WEIGHTS, 5);
          return { best, frequencies: ['zebra', 'of7', 'only5'].map(words.frequencyOf) };
        });
      expect(reader.read(() => readSegments(reader))!.filter(({ isMerging }) => isMerging)).not.toEqual([]);
      expect(askAll(reader).frequencies).toEqual([4 * each, (4 * each) / 50, 1]);
      for (const upTo of [each / 2, each]) {
        writer.write(() => {
          for (let memoryNo = 1; memoryNo <= upTo; memoryNo += 1) fixture.remove(memoryNo);
        });
        const fresh = openStore(reader.path, { role: 'reader' });
        chooseWordIndex(fresh, choice);
        expect(askAll(reader)).toEqual(askAll(fresh));
        expect(askAll(reader).frequencies).toEqual([4 * each - upTo, (4 * each - upTo) / 50, 0]);
        fresh.close();
      }
    });

    test('words are one word over all partitions of the rows', () => {
      writer.write(() => {
        for (let memoryNo = PARTITION_ROWS - 3; memoryNo <= 3 * PARTITION_ROWS; memoryNo += PARTITION_ROWS / 4)
          fixture.put(
            textRow(memoryNo, { content: memoryNo % 3 === 0 ? 'an apple a day' : 'apples', title: 'the naïve pear' }),
          );
      });
      for (const asked of [['apple'], ['an apple'], ['naïve', 'apples'], ['naive pear', 'day', 'nothing']])
        fixture.expectSame(asked);
    });

    test('an empty index has no rows, and text without letters and digits none in any', () => {
      const look = (text: string) =>
        reader.read(() => {
          const words = openWordSearch(reader);
          const { length } = words.best([text], WEIGHTS, 10);
          return [words.rows, words.bytesOf(text), words.frequencyOf(text), length];
        });
      expect(look('apple')).toEqual([0, 0, 0, 0]);
      writer.write(() => fixture.put(textRow(PARTITION_ROWS + 1, { content: 'apples! or "pears"' })));
      for (const text of ['!?', '""', ' ']) expect(look(text)).toEqual([1, 0, 0, 0]);
      for (const text of ['apple!', 'or "pears"']) expect(look(text)).toEqual([1, expect.any(Number), 1, 1]);
    });

    test('an answer fits the snapshot that it is asked on', () => {
      writer.write(() => fixture.put(textRow(1, { content: 'apple' })));
      const count = () => openWordSearch(reader).frequencyOf('apple');
      reader.read(() => {
        expect(count()).toBe(1);
        writer.write(() => fixture.put(textRow(2, { content: 'apple' })));
        expect(count()).toBe(1);
      });
      expect(reader.read(count)).toBe(2);
    });

    test('no search inside a write, which FTS5 may hold back', () => {
      expect(() => writer.write(() => openWordSearch(writer))).toThrow('on a snapshot');
      expect(() => openWordSearch(reader)).toThrow('on a snapshot');
    });
  });

  describe(`${choice} as a reader of an index of many pages and segments`, () => {
    let fixture: WordFixture;
    let writer: SqliteStore;
    let reader: SqliteStore;
    beforeEach(() => {
      fixture = openPagedFixture(choice);
      ({ writer, reader } = fixture);
      return () => fixture.close();
    });

    test('all of it is read', () => {
      const pages = reader.db.prepare('SELECT count(*) FROM memory_text_data').pluck().get();
      expect(pages).toBeGreaterThan(250);
      expect(reader.read(() => readSegments(reader))!.length).toBeGreaterThan(2);
      for (const asked of PAGED_TEXTS) fixture.expectSame(asked);
    });

    test('of the best rows nothing is missing where no others are asked for', () => {
      for (const asked of [
        ['w1999', 'w0'],
        ['w800', 'w1500', 'the'],
        ['w700 w0', 'w0', 'the'],
        ['w3', 'the'],
      ]) {
        for (const limit of [1, 30, 1_500]) {
          reader.read(() => {
            const words = openWordSearch(reader);
            const all = words.best(asked, WEIGHTS, 1e6);
            expect(all).toEqual(all.toSorted((a, b) => b.bm25 - a.bm25 || a.memoryNo - b.memoryNo));
            const among = all.filter((_, place) => place % 3 === 0);
            const asMemoryNos = [...among.map(({ memoryNo }) => memoryNo).reverse(), 999_999];
            expect(words.bestOf(asked, WEIGHTS, asMemoryNos, limit)).toEqual(among.slice(0, limit));
            expect(words.best(asked, WEIGHTS, limit)).toEqual(all.slice(0, limit));
          });
        }
      }
    });

    test('what was deleted and written again since is left out or read anew', () => {
      for (const asked of PAGED_TEXTS) fixture.expectSame(asked);
      writer.write(() => {
        for (let at = 1; at <= PAGED_ROWS; at += 4) fixture.remove(pagedMemoryNo(at));
        const anew = Array.from({ length: 9 }, (_, place) => pagedMemoryNo(400 * place + 2));
        for (const memoryNo of anew) fixture.put(textRow(memoryNo, { content: 'w0 w1 anew', tags: 'w5' }));
        textRewrites.note(writer, anew);
      });
      const tombstones = reader.read(() => readSegments(reader))!.map(({ tombstonePages }) => tombstonePages);
      expect(Math.max(...tombstones)).toBeGreaterThan(1);
      for (const asked of PAGED_TEXTS) fixture.expectSame(asked);
      // While segments are merged, the words up to one stand in the new segment and the others in the old ones, the
      // first of them on a page that was cut: what was known of where they stand would give other rows.
      for (let start = true; writer.write(() => mergeText(writer, { start, pages: 40 })); start = false) {
        fixture.expectSame(PAGED_PHRASES);
        fixture.expectSame(['w0', 'w1']);
      }
      for (const asked of PAGED_TEXTS) fixture.expectSame(asked);
    });

    test('it is the same for who reads all of it and for who follows', async () => {
      await loadWords(reader);
      fixture.expectSame(['w0', 'w9']);
      // More changes than are kept.
      writer.write(() => {
        for (let round = 0; round < 11; round += 1) {
          const anew = Array.from({ length: 1_000 }, (_, place) => pagedMemoryNo(place + 1));
          if (round > 8)
            for (const memoryNo of anew) fixture.put(textRow(memoryNo, { content: `w0 ${'w1 '.repeat(round)}` }));
          textRewrites.note(writer, anew);
        }
      });
      fixture.expectSame(['w0', 'w1']);
    });
  });
}

import path from 'node:path';
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { createRandom } from '../../../../src/engine/random.ts';
import { openStore, type Store } from '../../../../src/engine/store/open-store.ts';
import { matchingText, OWN_COLUMNS } from '../../../../src/engine/store/word-index/match-text.ts';
import {
  clearText,
  deleteText,
  mergeText,
  putText,
  type TextRow,
  textRewrites,
} from '../../../../src/engine/store/word-index/text.ts';
import { readSegments } from '../../../../src/engine/store/word-index/segments.ts';
import { PARTITION_ROWS, TOKENIZER, tokensOf } from '../../../../src/engine/store/word-index/tokens.ts';
import { loadWords, openWordSearch } from '../../../../src/engine/store/word-index/word-search.ts';
import { identifiersOf, indexableText, queryTerms } from '../../../../src/engine/text/index-text.ts';
import { TEXT_COLUMNS, type TextColumn } from '../../../../src/engine/types.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

/** Of each column in its order. */
const WEIGHTS = [0.3, 2, 1, 1, 1.5, 1.5, 1.5];

let writer: Store;
let reader: Store;
beforeEach(() => {
  const file = path.join(tempFolder(), 'words.sqlite');
  writer = openStore(file, { role: 'worker', create: true });
  reader = openStore(file, { role: 'reader' });
  writer.db.exec(`CREATE VIRTUAL TABLE plain USING fts5 (${TEXT_COLUMNS.join(', ')},
    content = '', contentless_delete = 1, tokenize = "${TOKENIZER}")`);
  return () => {
    reader.close();
    writer.close();
  };
});

/** The same as FTS5 alone has it: nothing is divided. */
function put(row: TextRow): void {
  putText(writer, row);
  const identifiers = identifiersOf(row.title === '' ? row.content : `${row.title}\n${row.content}`);
  const columns = TEXT_COLUMNS.map((column) =>
    [column === 'identifiers' ? identifiers : row[column]].flat().join('\n'),
  );
  writer
    .prepare(
      `INSERT OR REPLACE INTO plain (rowid, ${TEXT_COLUMNS.join(', ')}) VALUES (?, ${TEXT_COLUMNS.map(() => '?').join(', ')})`,
    )
    .run(row.seq, ...columns.map((text) => indexableText(text)));
}

function remove(seq: number): void {
  deleteText(writer, seq);
  writer.prepare('DELETE FROM plain WHERE rowid = ?').run(seq);
}

function clear(): void {
  writer.write(() => {
    clearText(writer);
    writer.db.exec(`INSERT INTO plain (plain) VALUES ('delete-all')`);
  });
}

/** What is found by these words and phrases, and its BM25, all by FTS5. */
function askFts(texts: readonly string[]): Map<number, number> {
  const match = texts.map((text) => `"${text}"`).join(' OR ');
  const rows = reader.db
    .prepare(`SELECT rowid, -bm25(plain, ${WEIGHTS.join(', ')}) FROM plain WHERE plain MATCH ? ORDER BY rowid`)
    .raw()
    .all(match) as [number, number][];
  return new Map(rows);
}

function askWords(texts: readonly string[]): Map<number, number> {
  return reader.read(() => {
    const scores = openWordSearch(reader).score(texts, WEIGHTS);
    return new Map(scores.best(1e6).map(({ seq, bm25 }) => [seq, bm25]));
  });
}

function expectSame(texts: readonly string[]): void {
  const expected = askFts(texts);
  const found = askWords(texts);
  expect([...found.keys()].sort((a, b) => a - b)).toEqual([...expected.keys()]);
  for (const [seq, bm25] of expected) expect(found.get(seq)! / bm25).toBeCloseTo(1, 9);
  for (const text of texts) {
    expect(reader.read(() => openWordSearch(reader).frequencyOf(text))).toBe(askFts([text]).size);
  }
}

const row = (seq: number, columns: Partial<Record<(typeof TEXT_COLUMNS)[number], string>>) => ({
  ...{ seq, title: '', content: '', gist: '', context: '', ...columns },
  entities: (columns.entities ?? '').split(' '),
  tags: (columns.tags ?? '').split(' '),
});

/** Between two rows, so that sixty of them lie in fourteen partitions. */
const ROW_STEP = 30_000;

/** One is longer than a page of the index. */
const WORDS = ['apple', 'apples', 'pear', 'plum', 'fig', 'one', 'Äpfel', 'don’t', 'x', `long${'er'.repeat(60)}`];
const phrase = fc.array(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 6 }).map((words) => words.join(' '));
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
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('look' as const),
      texts: fc.array(phrase, { minLength: 1, maxLength: 4 }),
    }),
  },
);

test('rows and BM25 are those of FTS5, whatever another connection writes', () => {
  // Small pages, so that words and their rows begin and end at all places of them.
  writer.db.exec(`INSERT INTO memory_text (memory_text, rank) VALUES ('pgsz', 32)`);
  fc.assert(
    fc.property(
      fc.array(change, { maxLength: 60 }),
      fc.array(phrase, { minLength: 1, maxLength: 4 }),
      (changes, last) => {
        clear();
        const known: number[] = [];
        let next = 0;
        for (const change of changes) {
          const at = 'at' in change ? known[change.at % Math.max(1, known.length)] : undefined;
          if (change.kind === 'look') expectSame(change.texts);
          else if (change.kind === 'merge') writer.write(() => mergeText(writer, change));
          else if (change.kind === 'put') {
            const seq = (next += ROW_STEP);
            known.push(seq);
            writer.write(() => put(row(seq, { content: change.other, [change.column]: change.text })));
          } else if (at !== undefined && change.kind === 'replace') {
            writer.write(() => {
              put(row(at, { title: 'fig', content: change.text }));
              textRewrites.note(writer, [at]);
            });
          } else if (at !== undefined) {
            writer.write(() => remove(at));
            known.splice(known.indexOf(at), 1);
          }
        }
        expectSame(last);
      },
    ),
    { numRuns: 60 },
  );
});

describe('an index of many pages and segments', () => {
  /** So that nine thousand rows lie in three partitions. */
  const seqOf = (at: number) => 40 * at;

  /** Rare words, and common ones whose rows take many pages; some rows are long enough to cross from page to page. */
  function fill(rows: number): void {
    const random = createRandom(5);
    const word = () => `w${Math.floor(2_000 ** random())}`;
    for (let at = 1; at <= rows;) {
      writer.write(() => {
        for (const last = Math.min(rows, at + 399); at <= last; at += 1) {
          const words = Array.from({ length: at % 500 === 0 ? 9_000 : 30 }, word).join(' ');
          put(row(seqOf(at), { content: words, title: at % 3 === 0 ? word() : '', context: `the ${word()}` }));
        }
      });
    }
  }
  const ASKED = [['w0'], ['w1', 'w5', 'w1999'], ['the'], ['w0 w1', 'w7'], ['the w0', 'w1 w0 w2'], ['nothing', 'w3']];
  const PHRASES = ['w0 w1', 'w1 w0', 'w2 w0', 'w1 w2', 'w5 w0', 'w9 w1'];

  test('is read as it is after more words were asked for than are remembered', () => {
    fill(500);
    expectSame(['w1']);
    const search = reader.read(() => openWordSearch(reader));
    expect(reader.read(() => openWordSearch(reader))).toBe(search);
    const asked = Array.from({ length: 6_000 }, (_, at) => `other${at}`);
    const found = reader.read(() => asked.map(openWordSearch(reader).frequencyOf));
    expect(new Set(found)).toEqual(new Set([0]));
    expect(reader.read(() => openWordSearch(reader))).not.toBe(search);
    for (const texts of ASKED) expectSame(texts);
  });

  test('is read whole', () => {
    fill(6_000);
    const pages = reader.db.prepare('SELECT count(*) FROM memory_text_data').pluck().get();
    expect(pages).toBeGreaterThan(400);
    expect(reader.read(() => readSegments(reader)).length).toBeGreaterThan(2);
    for (const texts of ASKED) expectSame(texts);
  });

  test('and of the best rows nothing is missing where no others are asked for', () => {
    fill(6_000);
    const isEverLeftOut = [
      ['w1999', 'w0'],
      ['w800', 'w1500', 'the'],
      ['w1999', 'w1', 'w0', 'the'],
      ['w700 w0', 'w0', 'the'],
      ['w40', 'w2'],
      ['w0 w1', 'w0'],
      ['w3', 'the'],
    ]
      .flatMap((texts) => [1, 3, 30, 500, 5_000].map((limit) => ({ texts, limit })))
      .map(({ texts, limit }) =>
        reader.read(() => {
          const index = openWordSearch(reader);
          const all = index.score(texts, WEIGHTS).best(1e6);
          const some = index.score(texts, WEIGHTS, limit);
          expect(some.best(limit)).toEqual(all.slice(0, limit));
          return some.best(1e6).length < all.length;
        }),
      );
    expect(isEverLeftOut).toContain(true);
    expect(isEverLeftOut).toContain(false);
  });

  test('and without what was deleted and written again since', () => {
    fill(9_000);
    for (const texts of ASKED) expectSame(texts);
    writer.write(() => {
      for (let at = 1; at <= 9_000; at += 12) remove(seqOf(at));
      const anew = Array.from({ length: 9 }, (_, place) => seqOf(1_000 * place + 2));
      for (const seq of anew) put(row(seq, { content: 'w0 w1 anew', tags: 'w5' }));
      textRewrites.note(writer, anew);
    });
    const tombstones = reader.read(() => readSegments(reader)).map(({ tombstonePages }) => tombstonePages);
    expect(Math.max(...tombstones)).toBeGreaterThan(1);
    for (const texts of ASKED) expectSame(texts);
    // While segments are merged, the words up to one stand in the new segment and the others in the old ones, the first of them on a page that was
    // cut: what was known of where they stand would give other rows.
    for (let start = true; writer.write(() => mergeText(writer, { start, pages: 40 })); start = false) {
      expectSame(PHRASES);
      expectSame(['w0', 'w1']);
    }
    for (const texts of ASKED) expectSame(texts);
  });

  test('is read the same by who reads all of it and who follows', async () => {
    fill(5_000);
    await loadWords(reader);
    expectSame(['w0', 'w9']);
    // More changes than are kept.
    writer.write(() => {
      for (let round = 0; round < 11; round += 1) {
        const anew = Array.from({ length: 1_000 }, (_, place) => seqOf(place + 1));
        for (const seq of anew) put(row(seq, { content: `w0 ${'w1 '.repeat(round)}` }));
        textRewrites.note(writer, anew);
      }
    });
    expectSame(['w0', 'w1']);
  });
});

test('rows of a word that is the last on its page', () => {
  for (let from = 1; from <= 3_000; from += 500) {
    writer.write(() => {
      for (let seq = from; seq < from + 500; seq += 1) {
        put(row(seq, { content: seq % 50 === 0 ? 'otter' : 'long'.repeat(1_250) }));
      }
    });
  }
  writer.write(() => writer.db.exec(`INSERT INTO memory_text (memory_text) VALUES ('optimize')`));
  expectSame(['long'.repeat(1_250), 'otter']);
});

test('an index that was made anew is counted anew', () => {
  for (const share of [2, 3, 5]) {
    clear();
    writer.write(() => {
      for (let seq = 1; seq <= 8_000; seq += 1) {
        put(row(seq, { content: seq % share === 0 ? 'apple' : 'pears' }));
      }
    });
    for (const word of ['apple', 'pear']) {
      const counted = reader.read(() => openWordSearch(reader).frequencyOf(word));
      expect(counted).toBe(askFts([word]).size);
    }
  }
});

test('what is deleted of segments while they are merged is known to who asked before', () => {
  const each = 400;
  for (let commit = 0; commit < 4; commit += 1) {
    writer.write(() => {
      for (let seq = commit * each + 1; seq <= (commit + 1) * each; seq += 1)
        put(row(seq, { content: `zebra yak only${seq} of${seq % 50}` }));
    });
  }
  writer.write(() => void mergeText(writer, { start: true, pages: 4 }));
  const askAll = (store: Store) =>
    store.read(() => {
      const words = openWordSearch(store);
      const best = words.score(['of7', 'zebra'], WEIGHTS, 1).best(5);
      return { best, frequencies: ['zebra', 'of7', 'only5'].map(words.frequencyOf) };
    });
  expect(reader.read(() => readSegments(reader)).filter(({ isMerging }) => isMerging)).not.toEqual([]);
  expect(askAll(reader).frequencies).toEqual([4 * each, (4 * each) / 50, 1]);
  for (const upTo of [each / 2, each]) {
    writer.write(() => {
      for (let seq = 1; seq <= upTo; seq += 1) remove(seq);
    });
    const fresh = openStore(reader.path, { role: 'reader' });
    expect(askAll(reader)).toEqual(askAll(fresh));
    expect(askAll(reader).frequencies).toEqual([4 * each - upTo, (4 * each - upTo) / 50, 0]);
    fresh.close();
  }
});

test('no search inside a write, which FTS5 may hold back', () => {
  expect(() => writer.write(() => openWordSearch(writer))).toThrow('on a snapshot');
  expect(() => openWordSearch(reader)).toThrow('on a snapshot');
});

test('an index that a newer SQLite wrote is refused by name', () => {
  writer.db.unsafeMode(true);
  writer.db.prepare(`UPDATE memory_text_config SET v = 5 WHERE k = 'version'`).run();
  expect(() => reader.read(() => openWordSearch(reader))).toThrow(/word index has a format/);
});

test('tokens are made as the table makes them', () => {
  const { sql } = reader.db.prepare(`SELECT sql FROM sqlite_schema WHERE name = 'memory_text'`).get() as {
    sql: string;
  };
  expect(sql).toContain(`tokenize = "${TOKENIZER}"`);
  expect(tokensOf('"the Ünïcode files!"')).toEqual(['the', 'unicod', 'file']);
  expect(tokensOf('!?')).toEqual([]);
});

test('a row of a later partition has the tokens of one of the first, each with the mark of its own', () => {
  const places = (table: string) =>
    writer.db.prepare(`SELECT term, col, "offset" FROM ${table} ORDER BY col, "offset"`).raw().all() as [
      string,
      string,
      number,
    ][];
  writer.db.exec(`CREATE VIRTUAL TABLE temp.indexed USING fts5vocab (main, memory_text, instance)`);
  const word = fc.oneof(
    fc.constantFrom(
      ...WORDS,
      'running',
      'relational!',
      'y',
      'by!1',
      '!!',
      '我的生日',
      'naïve',
      'Straße',
      '¿qué?',
      ...['ǀ', 'ǂnukhoe', 'ǀgaises', 'getUserǀName.ts', '\u{107b6}files', 'ábced', 'ъing'],
      ...['hoyyed', 'fyying', 'ложками', 'αρχείων', 'الملفات', 'फ़ाइलें', '٣ï\u0345', 'a\0b'],
      '',
    ),
    fc.string({ unit: 'grapheme-ascii', maxLength: 80 }),
    fc.string({ unit: 'grapheme', maxLength: 12 }),
    fc.string({ unit: 'binary', maxLength: 12 }),
    fc.constantFrom(
      'getUserName',
      'src/größe.ts',
      'v1.2.3',
      '서울에서',
      'ガイド',
      'ไทย',
      '𠀀漢',
      'ＡＢＣ',
      'e\u0301t\u0301',
    ),
    fc.stringMatching(/^[a-z]{1,8}(ational|ing|ies|ed|eed|ness|s|ly|y|able)$/),
    fc.constantFrom(62, 63, 64, 65).map((length) => `${'a'.repeat(length - 3)}ing`),
  );
  fc.assert(
    fc.property(fc.array(word, { maxLength: 12 }), fc.nat(1_000), (words, partition) => {
      const text = words.join(' ').toWellFormed();
      const placesIn = (seq: number) => {
        writer.write(() => clearText(writer));
        writer.write(() => putText(writer, { ...row(seq, { content: text, title: words[0] ?? '' }) }));
        return places('indexed');
      };
      const first = placesIn(1);
      const marked = placesIn((partition + 1) * PARTITION_ROWS);
      expect(marked).toEqual(first.map(([term, column, at]) => [`${term}!${partition + 1}`, column, at]));
      expect(first.filter(([term]) => term.includes('!'))).toEqual([]);
    }),
    { numRuns: 500 },
  );
});

test('a word that porter cuts within a letter is one word in a later partition', () => {
  const seq = PARTITION_ROWS;
  writer.write(() => putText(writer, row(seq, { content: 'the abமed thing' })));
  const find = (text: string) => reader.read(() => matchingText(reader, text, [seq]));
  expect([find('abமed thing'), find('ab')]).toEqual([[seq], []]);
});

test('each term of a query is found in memories of all partitions, by column', () => {
  const query = '"我的生日" "in the naïve" running parseRequest 东京 don’t';
  const seqs = [7, PARTITION_ROWS + 1, 11 * PARTITION_ROWS];
  writer.write(() => {
    for (const seq of seqs) putText(writer, row(seq, { content: 'Stop! Nothing else.', context: query }));
    for (const seq of seqs) putText(writer, row(seq + 1, { content: query, title: 'Naïve runs' }));
  });
  const all = seqs.flatMap((seq) => [seq, seq + 1]);
  const own = seqs.map((seq) => seq + 1);
  const find = (term: string, columns?: readonly TextColumn[]) =>
    reader.read(() => matchingText(reader, term, all, columns)).sort((a, b) => a - b);
  const { phrases, words, identifiers } = queryTerms(query);
  expect([phrases.length, words.length, identifiers.length]).toEqual([2, 6, 1]);
  for (const term of [...phrases.map((phrase) => phrase.join(' ')), ...words, ...identifiers]) {
    // Identifiers and their parts are those of a memory's own text.
    expect(find(term), term).toEqual(/^(parse|request)$|ǀ/.test(term) ? own : all);
    expect(find(term, OWN_COLUMNS), term).toEqual(own);
  }
  expect(find('stop', OWN_COLUMNS)).toEqual(seqs);
  expect(find('runs', ['title'])).toEqual(own);
  expect(find('parse', ['title'])).toEqual([]);
  expect(find('stop\0nothing', OWN_COLUMNS)).toEqual(seqs);
});

test('no token has more rows than a partition', () => {
  writer.write(() => {
    for (let seq = PARTITION_ROWS - 3; seq <= 3 * PARTITION_ROWS; seq += PARTITION_ROWS / 4)
      put(row(seq, { content: 'apple' }));
  });
  writer.db.exec(`CREATE VIRTUAL TABLE temp.words USING fts5vocab (main, memory_text, row)`);
  expect(writer.db.prepare('SELECT term, doc FROM words ORDER BY term').raw().all()).toEqual([
    ['appl', 1],
    ['appl!1', 4],
    ['appl!2', 4],
  ]);
  expectSame(['apple']);
});

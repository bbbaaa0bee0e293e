import path from 'node:path';
import type { Statement } from 'better-sqlite3';
import fc from 'fast-check';
import { beforeEach, expect, test, vi } from 'vitest';
import { openStore, type SqliteStore } from '../../../../src/engine/store/open-store.ts';
import { OWN_COLUMNS } from '../../../../src/engine/store/own-texts.ts';
import { matchingText } from '../../../../src/engine/store/word-index/matching-rows.ts';
import { clearText, deleteText, putText } from '../../../../src/engine/store/word-index/memory-text.ts';
import { readTotals } from '../../../../src/engine/store/word-index/structure.ts';
import {
  indexedTerms,
  indexedText,
  MAX_OCCURRENCES,
  PARTITION_ROWS,
  TOKENIZER,
  termsOf,
} from '../../../../src/engine/store/word-index/terms.ts';
import { indexableText, queryTerms } from '../../../../src/engine/text/index-text.ts';
import type { TextColumn } from '../../../../src/engine/types.ts';
import { textRow as row } from '../../../conformance/word-search.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

let writer: SqliteStore;
let reader: SqliteStore;
beforeEach(() => {
  const file = path.join(tempFolder(), 'words.sqlite');
  writer = openStore(file, { role: 'worker', create: true });
  reader = openStore(file, { role: 'reader' });
  return () => {
    reader.close();
    writer.close();
  };
});

/** One is longer than a page of the index. */
const WORDS = ['apple', 'apples', 'pear', 'plum', 'fig', 'one', 'Äpfel', 'don’t', 'x', `long${'er'.repeat(60)}`];

test('terms are made as the table makes them', () => {
  const { sql } = reader.db.prepare(`SELECT sql FROM sqlite_schema WHERE name = 'memory_text'`).get() as {
    sql: string;
  };
  expect(sql).toContain(`tokenize = "${TOKENIZER}"`);
  expect(termsOf('"the Ünïcode files!"')).toEqual(['the', 'unicod', 'file']);
  expect(termsOf('!?')).toEqual([]);
});

test('a row of a later partition has the terms of one of the first, each with the mark of its own', () => {
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
      'ǀ',
      'ǂnukhoe',
      'ǀgaises',
      'getUserǀName.ts',
      '\u{107b6}files',
      'ábced',
      'ъing',
      'hoyyed',
      'fyying',
      'ложками',
      'αρχείων',
      'الملفات',
      'फ़ाइलें',
      '٣ï\u0345',
      'a\0b',
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
      const placesIn = (memoryNo: number) => {
        writer.write(() => clearText(writer));
        writer.write(() => putText(writer, { ...row(memoryNo, { content: text, title: words[0] ?? '' }) }));
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
  const memoryNo = PARTITION_ROWS;
  writer.write(() => putText(writer, row(memoryNo, { content: 'the abமed thing' })));
  const find = (text: string) => reader.read(() => matchingText(reader, text, [memoryNo]));
  expect([find('abமed thing'), find('ab')]).toEqual([[memoryNo], []]);
});

test('each term of a query is found in memories of all partitions, by column', () => {
  const query = '"我的生日" "in the naïve" running parseRequest 东京 don’t';
  const memoryNos = [7, PARTITION_ROWS + 1, 11 * PARTITION_ROWS];
  writer.write(() => {
    for (const memoryNo of memoryNos)
      putText(writer, row(memoryNo, { content: 'Stop! Nothing else.', context: query }));
    for (const memoryNo of memoryNos) putText(writer, row(memoryNo + 1, { content: query, title: 'Naïve runs' }));
  });
  const all = memoryNos.flatMap((memoryNo) => [memoryNo, memoryNo + 1]);
  const own = memoryNos.map((memoryNo) => memoryNo + 1);
  const find = (term: string, columns?: readonly TextColumn[]) =>
    reader.read(() => matchingText(reader, term, all, columns)).sort((a, b) => a - b);
  const { phrases, words, identifiers } = queryTerms(query);
  expect([phrases.length, words.length, identifiers.length]).toEqual([2, 6, 1]);
  for (const term of [...phrases.map((phrase) => phrase.join(' ')), ...words, ...identifiers]) {
    // Identifiers and their parts are those of a memory's own text.
    expect(find(term), term).toEqual(/^(parse|request)$|ǀ/.test(term) ? own : all);
    expect(find(term, OWN_COLUMNS), term).toEqual(own);
  }
  expect(find('stop', OWN_COLUMNS)).toEqual(memoryNos);
  expect(find('runs', ['title'])).toEqual(own);
  expect(find('parse', ['title'])).toEqual([]);
  expect(find('stop\0nothing', OWN_COLUMNS)).toEqual(memoryNos);
});

test('no term has more rows than a partition', () => {
  writer.write(() => {
    for (let memoryNo = PARTITION_ROWS - 3; memoryNo <= 3 * PARTITION_ROWS; memoryNo += PARTITION_ROWS / 4)
      putText(writer, row(memoryNo, { content: 'apple' }));
  });
  writer.db.exec(`CREATE VIRTUAL TABLE temp.words USING fts5vocab (main, memory_text, row)`);
  expect(writer.db.prepare('SELECT term, doc FROM words ORDER BY term').raw().all()).toEqual([
    ['appl', 1],
    ['appl!1', 4],
    ['appl!2', 4],
  ]);
});

/** A text that repeats words as often as each of them is told, in turns, with further words around. */
const repeated = (times: Readonly<Record<string, number>>) =>
  `begins. ${Array.from({ length: Math.max(...Object.values(times)) }, (_, at) =>
    Object.keys(times)
      .filter((word) => at < times[word]!)
      .join(', '),
  ).join(' ')} ends.`;

test('a term stands at most 256 times in a column, in every partition, and all others as often as in the text', () => {
  writer.db.exec(`CREATE VIRTUAL TABLE temp.indexed USING fts5vocab (main, memory_text, instance)`);
  const texts = [
    { q: 5_000, runs: 300, running: 300, fox: MAX_OCCURRENCES },
    // These begin alike and are equally long.
    { abcdé: 200, abceé: 300, abcfé: 200, abcd: 200, abce: 300, abcf: 200, q: 300 },
    { 灯: 700, écluse: MAX_OCCURRENCES + 1, q: 300, abמed: 300, '!': 600, 'e\u0301t': 9 },
  ].map(repeated);
  for (const text of texts) {
    const placesIn = (memoryNo: number) => {
      writer.write(() => clearText(writer));
      writer.write(() => putText(writer, row(memoryNo, { content: text, title: 'q' })));
      return writer.db.prepare(`SELECT term, "offset" FROM indexed WHERE col = 'content' ORDER BY "offset"`).all() as {
        term: string;
      }[];
    };
    const first = placesIn(1).map(({ term }) => term);
    expect(placesIn(PARTITION_ROWS).map(({ term }) => term)).toEqual(indexedTerms(text).map((term) => `${term}!1`));
    expect(first).toEqual(indexedTerms(text));
    const all = Map.groupBy(termsOf(indexableText(text)), (term) => term);
    const kept = Map.groupBy(indexedTerms(text), (term) => term);
    expect([...kept.keys()]).toEqual([...all.keys()]);
    for (const [term, { length }] of all)
      expect([term, kept.get(term)!.length]).toEqual([term, Math.min(MAX_OCCURRENCES, length)]);
    expect(kept.get('q')).toHaveLength(MAX_OCCURRENCES);
  }
});

test('a long text is taken apart once, whether a term stands too often in it or not', () => {
  const rare = Array.from({ length: 3_000 }, (_, no) => `шлюз${no}`).join(' ');
  for (const text of [rare, `${rare} ${repeated({ лето: 300 })}`]) {
    const prepared = indexableText(text);
    indexedText(text, '');
    using read = vi.spyOn(String.prototype, 'codePointAt');
    indexedText(text, '');
    expect(read.mock.calls.length).toBeLessThanOrEqual(prepared.length);
  }
});

test('FTS5 is asked once for all words of a text that only it can stem', () => {
  const listed = (beginning: string) => Array.from({ length: 1_500 }, (_, no) => `${beginning}${no}`);
  termsOf('łyy'); // FTS5 is asked for the block of these characters here.
  const statements = Object.getPrototypeOf(writer.db.prepare('SELECT 1')) as Statement;
  for (const words of [listed('łąka'), listed('hoyyed')]) {
    using all = vi.spyOn(statements, 'all');
    expect(indexedTerms(indexableText(words.join(' ')))).toEqual(words.map((word) => indexableText(word)));
    expect(all).toHaveBeenCalledTimes(1);
  }
});

test('a text without a word that stands more than 256 times is indexed as it is', () => {
  const text = repeated({ q: MAX_OCCURRENCES, run: 200, running: 56, Äpfel: 100, '?': 900 });
  expect(indexedText(text, '')).toBe(indexableText(text));
  expect(indexedTerms(text)).toEqual(termsOf(indexableText(text)));
});

test('a row with more, as earlier versions wrote it, goes with all of it', () => {
  const totals = () => writer.read(() => readTotals(writer));
  const postings = () => writer.db.prepare(`SELECT count(*) FROM indexed`).pluck().get();
  writer.db.exec(`CREATE VIRTUAL TABLE temp.indexed USING fts5vocab (main, memory_text, instance)`);
  const putOld = (memoryNo: number) =>
    writer
      .prepare('INSERT INTO memory_text (rowid, content) VALUES (?, ?)')
      .run(memoryNo, repeated({ q: 5_000, fox: 2 }));
  writer.write(() => putText(writer, row(1, { content: 'the fox' })));
  const before = [totals(), postings()];
  for (const put of [
    () => deleteText(writer, 2),
    () => putText(writer, row(2, { content: repeated({ q: 5_000, fox: 2 }) })),
  ]) {
    writer.write(() => putOld(2));
    expect(postings()).toBe((before[1] as number) + 5_004);
    writer.write(put);
  }
  writer.write(() => deleteText(writer, 2));
  writer.db.exec(`INSERT INTO memory_text (memory_text) VALUES ('optimize')`);
  expect([totals(), postings()]).toEqual(before);
});

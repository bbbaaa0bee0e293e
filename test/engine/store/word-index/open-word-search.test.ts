import { beforeEach, expect, test } from 'vitest';
import type { SqliteStore } from '../../../../src/engine/store/open-store.ts';
import { putText } from '../../../../src/engine/store/word-index/memory-text.ts';
import {
  chooseWordIndex,
  loadWords,
  openWordSearch,
} from '../../../../src/engine/store/word-index/open-word-search.ts';
import { readLevels } from '../../../../src/engine/store/word-index/structure.ts';
import { openWordFixture, textRow, WEIGHTS, type WordFixture } from '../../../conformance/word-search.ts';

let fixture: WordFixture;
let writer: SqliteStore;
let reader: SqliteStore;
beforeEach(() => {
  fixture = openWordFixture('auto');
  ({ writer, reader } = fixture);
  return () => fixture.close();
});

/** Writes the number that FTS5 gives to another format into the file. SQLite itself reads 4 and 5. */
function setFormat(version: number): void {
  writer.db.unsafeMode(true);
  writer.db.prepare(`UPDATE memory_text_config SET v = ? WHERE k = 'version'`).run(version);
  writer.db.unsafeMode(false);
}

const bestOf = (text: string) => reader.read(() => openWordSearch(reader).best([text], WEIGHTS, 5));

test('an index whose format is not known is searched by FTS5 itself, with the same answer, and that is said once', async () => {
  let told = 0;
  chooseWordIndex(reader, 'auto', () => (told += 1));
  writer.write(() => {
    for (let memoryNo = 1; memoryNo <= 200; memoryNo += 1)
      fixture.put(
        textRow(memoryNo, {
          content: `apple ${'pear '.repeat(memoryNo % 7)}`,
          title: memoryNo % 11 === 0 ? 'plum' : '',
        }),
      );
  });
  const before = bestOf('plum');
  expect(before).toHaveLength(5);
  expect(told).toBe(0);

  setFormat(5);
  await loadWords(reader);
  const after = bestOf('plum');
  expect(after.map(({ memoryNo }) => memoryNo)).toEqual(before.map(({ memoryNo }) => memoryNo));
  for (const [place, { bm25 }] of after.entries()) expect(bm25).toBeCloseTo(before[place]!.bm25, 9);
  fixture.expectSame(['apple', 'pear pear']);
  expect(told).toBe(1);

  writer.write(() => fixture.put(textRow(201, { content: 'plums plums plums' })));
  await loadWords(reader);
  expect(bestOf('plum')[0]!.memoryNo).toBe(201);
  expect(told).toBe(1);
});

test('once the format is known again the index is read directly', () => {
  writer.write(() => fixture.put(textRow(1, { content: 'apple' })));
  setFormat(5);
  const slow = reader.read(() => openWordSearch(reader));
  expect(bestOf('apple')).toHaveLength(1);
  setFormat(4);
  const quick = reader.read(() => openWordSearch(reader));
  expect(quick).not.toBe(slow);
  // Six bytes a row is what the plain reader supposes; the other has looked.
  expect(reader.read(() => [slow.bytesOf('apple'), openWordSearch(reader).bytesOf('apple')])).toEqual([6, 5]);
  fixture.expectSame(['apple']);
});

test('a structure that is not known is no other case than an unknown version', () => {
  writer.write(() => fixture.put(textRow(1, { content: 'apple' })));
  const structure = (mark: string) => {
    writer.db.unsafeMode(true);
    writer.db.exec(
      `UPDATE memory_text_data SET block = CAST(substr(block, 1, 4) || x'${mark}' || substr(block, 9) AS BLOB) WHERE id = 10`,
    );
    writer.db.unsafeMode(false);
  };
  structure('ff000002');
  expect(reader.read(() => readLevels(reader))).toBeUndefined();
  structure('ff000001');
  expect(reader.read(() => readLevels(reader))).toHaveLength(1);
});

test('fts5-direct alone refuses an unknown format and names the setting', () => {
  chooseWordIndex(reader, 'fts5-direct');
  writer.write(() => fixture.put(textRow(1, { content: 'apple' })));
  fixture.expectSame(['apple']);
  setFormat(5);
  expect(() => bestOf('apple')).toThrow(/OM_WORD_INDEX=auto/);
});

test('fts5-match reads a format that both know without being told of anything', () => {
  let told = 0;
  chooseWordIndex(reader, 'fts5-match', () => (told += 1));
  writer.write(() => fixture.put(textRow(1, { content: 'apple' })));
  expect(reader.read(() => openWordSearch(reader).bytesOf('apple'))).toBe(6);
  fixture.expectSame(['apple']);
  expect(told).toBe(0);
});

test('an index of an unknown format is written and merged on, if by less exact steps', () => {
  setFormat(5);
  const countSegments = writer.db.prepare('SELECT count(DISTINCT segid) FROM memory_text_idx').pluck();
  let mostSegments = 0;
  for (let commit = 0; commit < 120; commit += 1) {
    writer.write(() => {
      const words = Array.from({ length: 20 }, (_, at) => `w${commit}x${at} w${at}`).join(' ');
      putText(writer, textRow(commit + 1, { content: words }));
    });
    mostSegments = Math.max(mostSegments, countSegments.get() as number);
  }
  // Left alone, FTS5 merges a level only once it has sixteen.
  expect(mostSegments).toBeLessThan(12);
  setFormat(4);
  expect(reader.read(() => openWordSearch(reader).frequencyOf('w7'))).toBe(120);
});

import path from 'node:path';
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Candidate } from '../../../src/engine/retrieve/candidate.ts';
import { completeQuery } from '../../../src/engine/retrieve/options.ts';
import { pack } from '../../../src/engine/retrieve/pack.ts';
import { costsOf, render } from '../../../src/engine/retrieve/prompt.ts';
import { createMemoryReader } from '../../../src/engine/retrieve/memory-reader.ts';
import { readMemories } from '../../../src/engine/store/memories.ts';
import { openStore, type SqliteStore } from '../../../src/engine/store/open-store.ts';
import { readRankingRows } from '../../../src/engine/store/ranking-rows.ts';
import { FORMATS, type MemoryQuery } from '../../../src/engine/types.ts';
import { seedEdge, seedMemories } from '../../support/seed-store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const NOW = Date.UTC(2026, 0, 5);

describe('pack', () => {
  let store: SqliteStore;
  beforeAll(() => {
    store = openStore(path.join(tempFolder(), 'pack.sqlite'), { role: 'worker', create: true });
    return () => store.close();
  });

  /**
   * Memories in the order of their rank, each `name`, or `name < source` for one derived from an earlier one. Their
   * content is the name, repeated where it says so.
   */
  async function rank(names: readonly string[], contents: Readonly<Record<string, string>> = {}) {
    const nodes = names.map((text) => text.split(' < ') as [string, string?]);
    const seeded = await seedMemories(
      store,
      nodes.map(([name]) => ({ content: contents[name] ?? name })),
      NOW,
    );
    const memoryNoOf = new Map(nodes.map(([name], place) => [name, seeded[place]!.memoryNo]));
    store.write(() => {
      for (const [name, source] of nodes) {
        if (source === undefined) continue;
        seedEdge(store, { src: memoryNoOf.get(name)!, dst: memoryNoOf.get(source)!, weight: 1, type: 'derived_from' });
      }
    });
    const rows = readRankingRows(store, [...memoryNoOf.values()]);
    const nameOf = new Map([...memoryNoOf].map(([name, memoryNo]) => [memoryNo, name]));
    const candidates = rows.map((row, place) => ({ row, rawScore: 1 - place / 1000 }) as Candidate);
    const reads: string[][] = [];
    const readNamed: typeof readMemories = (from, memoryNos, now) => {
      reads.push(memoryNos.map((memoryNo) => nameOf.get(memoryNo)!));
      return readMemories(from, memoryNos, now);
    };
    return {
      reads,
      memoryNoOf,
      pack(query: Partial<MemoryQuery>) {
        const { packed, cut } = pack(
          store,
          candidates,
          completeQuery({ query: '', k: 5, filter: {}, ...query }, []),
          createMemoryReader({ store, readMemories: readNamed }, { filter: {} }, NOW),
        );
        return {
          packed: packed.map(({ candidate }) => nameOf.get(candidate.row.memoryNo)!),
          memories: packed.map(({ memory }) => memory),
          cut: Object.fromEntries([...cut].map(([memoryNo, outcome]) => [nameOf.get(memoryNo)!, outcome])),
        };
      },
    };
  }

  test('returns the best k, and reads no more of them', async () => {
    const ranked = await rank(['a', 'b', 'c', 'd', 'e']);
    expect(ranked.pack({ k: 2 })).toMatchObject({
      packed: ['a', 'b'],
      cut: { c: 'beyond_k', d: 'beyond_k', e: 'beyond_k' },
    });
    expect(ranked.reads).toEqual([['a', 'b']]);
  });

  describe('of one document', () => {
    const names = ['report', 'p1 < report', 'p2 < report', 'p3 < p1', 'other', 'q1 < other'];

    test('two are enough while k is small: the root, what is derived from it and what is derived from that', async () => {
      const ranked = await rank(names);
      expect(ranked.pack({ k: 5 })).toMatchObject({
        packed: ['report', 'p1', 'other', 'q1'],
        cut: { p2: 'document_limit', p3: 'document_limit' },
      });
      // The first five were to be read before anything was known to be too much of the report; the last one after.
      expect(ranked.reads.flat()).toEqual(['report', 'p1', 'p2', 'p3', 'other', 'q1']);
    });

    test('and what stands behind many others of one document is found all the same', async () => {
      const chunks = Array.from({ length: 90 }, (_, at) => `chunk ${at} < root`);
      const ranked = await rank(['root', ...chunks, 'a', 'b', 'late chunk < root', 'c']);
      expect(ranked.pack({ k: 5 })).toMatchObject({
        packed: ['root', 'chunk 0', 'a', 'b', 'c'],
        cut: { 'chunk 89': 'document_limit', 'late chunk': 'document_limit' },
      });
    });

    test('as many come as the query allows, and all of them with 0 or a large k', async () => {
      const ranked = await rank(names);
      expect(ranked.pack({ k: 5, perDocument: 1 }).packed).toEqual(['report', 'other']);
      expect(ranked.pack({ k: 6, perDocument: 0 }).packed).toHaveLength(6);
      expect(ranked.pack({ k: 11 }).packed).toHaveLength(6);
    });

    test('what ended in a circle of sources is packed all the same', async () => {
      const ranked = await rank(['x', 'y < x', 'z < y']);
      store.write(() => {
        const [x, , z] = store.db
          .prepare('SELECT seq FROM memories ORDER BY seq DESC LIMIT 3')
          .pluck()
          .all() as number[];
        seedEdge(store, { src: z!, dst: x!, weight: 1, type: 'derived_from' });
      });
      expect(ranked.pack({ k: 3, perDocument: 2 }).packed.length).toBeGreaterThanOrEqual(2);
    });
  });

  describe('the root of a document', () => {
    /** `report` becomes a document: the root of chunks that are derived from it. */
    async function rankDocument(names: readonly string[], contents: Readonly<Record<string, string>> = {}) {
      const ranked = await rank(names, contents);
      store.write(() => {
        const { lastInsertRowid: document } = store.db
          .prepare(
            'INSERT INTO documents (id, user_id, state, created_at, updated_at) VALUES (hex(randomblob(8)), ?, ?, 0, 0)',
          )
          .run('', 'ready');
        const { lastInsertRowid: generation } = store.db
          .prepare(
            `INSERT INTO document_generations (document_no, hidden, created_at, source) VALUES (?, 0, 0, 'upload')`,
          )
          .run(document);
        const parts = names.filter((name) => name === 'report' || name.endsWith('< report'));
        let index = 0;
        for (const part of parts) {
          const memoryNo = ranked.memoryNoOf.get(part.split(' ')[0]!)!;
          store.db
            .prepare(
              'INSERT INTO chunks (generation_no, chunk_index, memory, start_offset, end_offset) VALUES (?, ?, ?, 0, 0)',
            )
            .run(generation, part === 'report' ? -1 : index++, memoryNo);
          store.db.prepare('UPDATE memory_dynamics SET generation_no = ? WHERE seq = ?').run(generation, memoryNo);
        }
      });
      return ranked;
    }

    test('gives way to a chunk of it, and leaves its place to another hit', async () => {
      const ranked = await rankDocument(['report', 'a', 'c1 < report', 'b', 'c2 < report', 'c3 < report']);
      expect(ranked.pack({ k: 4 })).toMatchObject({
        packed: ['a', 'c1', 'b', 'c2'],
        cut: { report: 'document_limit', c3: 'beyond_k' },
      });
      expect(ranked.pack({ k: 20 }).packed).toEqual(['a', 'c1', 'b', 'c2', 'c3']);
    });

    test('gives way even if the document has all of its hits', async () => {
      const one = await rankDocument(['report', 'a', 'c1 < report', 'c2 < report']);
      expect(one.pack({ k: 4, perDocument: 1 })).toMatchObject({
        packed: ['a', 'c1'],
        cut: { report: 'document_limit', c2: 'document_limit' },
      });
      const two = await rankDocument(['report', 'note < report', 'c1 < report', 'c2 < report']);
      store.db.prepare('DELETE FROM chunks WHERE memory = ?').run(two.memoryNoOf.get('note')!);
      expect(two.pack({ k: 4 })).toMatchObject({
        packed: ['note', 'c1'],
        cut: { report: 'document_limit', c2: 'document_limit' },
      });
      // What is no chunk does not replace the root.
      expect(two.pack({ k: 4, perDocument: 1 }).packed).toEqual(['c1']);
    });

    test('gives its bytes back where it gives way', async () => {
      const others = Array.from({ length: 24 }, (_, place) => `t${place}`);
      const large = (name: string) => `${name} `.padEnd(255 * 1024, 'a ');
      const contents = Object.fromEntries(['report', 'c1', ...others].map((name) => [name, large(name)]));
      const ranked = await rankDocument(['report', 'c1 < report', ...others], contents);
      // 24 texts of 255 KiB fit into the 6 MiB that an answer has, and no other one does.
      expect(ranked.pack({ k: 200 })).toMatchObject({
        packed: ['c1', ...others.slice(0, 23)],
        cut: { report: 'document_limit', t23: 'over_budget' },
      });
    });

    test('stands for the document where no chunk has room', async () => {
      const ranked = await rankDocument(['report', 'a', 'c1 < report']);
      expect(ranked.pack({ k: 2 }).packed).toEqual(['report', 'a']);
      const long = await rankDocument(['report', 'a', 'c1 < report'], { c1: 'many words '.repeat(100) });
      expect(long.pack({ k: 3, tokenBudget: 20 })).toMatchObject({
        packed: ['report', 'a'],
        cut: { c1: 'over_budget' },
      });
    });

    test('comes beside its chunks where any number of hits of one document is wanted', async () => {
      const ranked = await rankDocument(['report', 'c1 < report', 'a']);
      expect(ranked.pack({ k: 3, perDocument: 0 }).packed).toEqual(['report', 'c1', 'a']);
    });

    test('makes room for another of its kind', async () => {
      const ranked = await rankDocument(['report', 'e1', 'f1 < e1', 'c1 < report', 'e2', 'f2 < e2']);
      const { packed, cut } = ranked.pack({ k: 6, topK: { episodes: 1 } });
      expect({ packed, cut }).toEqual({
        packed: ['f1', 'c1', 'e2', 'f2'],
        cut: { e1: 'kind_limit', report: 'document_limit' },
      });
    });
  });

  test('bounds knowledge, which is derived, and episodes, from which it is; what is neither is free', async () => {
    const ranked = await rank(['e1', 'f1 < e1', 'e2', 'f2 < e2', 'plain', 'f3 < e2', 'e3', 'f4 < e3']);
    const free = { k: 8, perDocument: 0 };
    expect(ranked.pack({ ...free, topK: { knowledge: 2 } })).toMatchObject({
      packed: ['e1', 'f1', 'e2', 'f2', 'plain', 'e3'],
      cut: { f3: 'kind_limit', f4: 'kind_limit' },
    });
    expect(ranked.pack({ ...free, topK: { episodes: 1, knowledge: 3 } }).packed).toEqual([
      'e1',
      'f1',
      'f2',
      'plain',
      'f3',
    ]);
    expect(ranked.pack({ ...free, topK: { episodes: 0, knowledge: 0 } }).packed).toEqual(['plain']);
  });

  test('without a token budget, the texts of all hits together are bounded where one text is made of them', async () => {
    const names = Array.from({ length: 6 }, (_, place) => `t${place}`);
    const contents = Object.fromEntries(names.map((name) => [name, `${name} `.padEnd(256 * 1024 - 8, 'a ')]));
    const ranked = await rank([...names, 'short'], contents);
    for (const format of ['prompt', 'text'] as const) {
      expect(ranked.pack({ k: 10, format })).toMatchObject({
        packed: ['t0', 't1', 't2', 't3', 'short'],
        cut: { t4: 'over_budget', t5: 'over_budget' },
      });
      expect(ranked.pack({ k: 10, format, tokenBudget: 1_000_000 }).packed).toHaveLength(7);
    }
    expect(ranked.pack({ k: 10 }).packed).toHaveLength(7);
  });

  describe('a token budget', () => {
    test('leaves room for a short memory behind long ones that it has no room for', async () => {
      const names = Array.from({ length: 24 }, (_, place) => `long${place}`);
      const contents = Object.fromEntries(names.map((name) => [name, `${name} `.padEnd(255 * 1024, 'a ')]));
      const ranked = await rank([...names, 'short'], { ...contents, short: 'a short text '.repeat(12) });
      expect(ranked.pack({ k: 50, tokenBudget: 500 }).packed).toEqual(['short']);
    });

    test('skips what does not fit and goes on with what is shorter', async () => {
      const long = 'a long text about harbours and ships and all that sails on them';
      const ranked = await rank(['first', 'long', 'short'], { long });
      expect(ranked.pack({ tokenBudget: 4 })).toMatchObject({
        packed: ['first', 'short'],
        cut: { long: 'over_budget' },
      });
    });

    test('reads nothing more once it is spent', async () => {
      const ranked = await rank(['a', 'b', 'c', 'd'], { a: 'one two three' });
      expect(ranked.pack({ tokenBudget: 4, k: 2 })).toMatchObject({
        packed: ['a'],
        cut: { b: 'over_budget', c: 'over_budget', d: 'over_budget' },
      });
      expect(ranked.reads).toEqual([['a', 'b']]);
    });

    test('stops reading when much was read in vain', async () => {
      const names = Array.from({ length: 200 }, (_, place) => `text number ${place}`);
      const ranked = await rank(names);
      expect(Object.values(ranked.pack({ tokenBudget: 1, k: 5 }).cut)).toEqual(Array(200).fill('over_budget'));
      expect(ranked.reads.flat().length).toBeLessThanOrEqual(70);
    });

    test('is never exceeded, whatever the format, and only what has no room is left out', async () => {
      const words = fc.array(fc.constantFrom('tide', 'harbour', '潮', '\n', '#', '```', 'a'), {
        minLength: 1,
        maxLength: 40,
      });
      await fc.assert(
        fc.asyncProperty(
          fc.array(words, { minLength: 1, maxLength: 12 }),
          fc.integer({ min: 1, max: 300 }),
          fc.constantFrom(...FORMATS),
          fc.integer({ min: 1, max: 12 }),
          async (texts, tokenBudget, format, k) => {
            const names = texts.map((_, place) => `m${place}`);
            const ranked = await rank(
              names,
              Object.fromEntries(texts.map((text, place) => [names[place]!, text.join(' ')])),
            );
            const { memories, packed, cut } = ranked.pack({ tokenBudget, format, k });
            const costs = costsOf(format);
            const cost = memories.reduce((sum, memory) => sum + costs.of(memory), costs.fixed);
            if (packed.length > 0) expect(cost).toBeLessThanOrEqual(tokenBudget + 1e-9);
            if (format !== 'json') {
              const hits = memories.map((memory) => ({ memory, score: 1, rawScore: 1, path: [memory.id] }));
              expect(render({ hits }, format, tokenBudget).tokens).toBeLessThanOrEqual(tokenBudget);
            }
            expect(packed.length).toBeLessThanOrEqual(k);
            expect([...packed, ...Object.keys(cut)].sort()).toEqual([...names].sort());
            if (tokenBudget >= 300 && format === 'json') expect(packed.length).toBeGreaterThan(0);
          },
        ),
        { numRuns: 150 },
      );
    });
  });
});

import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { addEvenly } from '../../bench/peers/add-evenly.ts';
import { openCorpus, SPARE_TEXTS, writeCorpus } from '../../bench/peers/corpus.ts';
import type { SystemName } from '../../bench/peers/system.ts';
import { makeTables, type Figure } from '../../bench/peers/table.ts';
import { createTemplateTexts, shuffledWords } from '../../bench/peers/template-text.ts';
import { createRandom } from '../../src/engine/random.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** What the bench of peers does apart from the peers, which no test installs. */

describe('template texts', () => {
  const texts = createTemplateTexts(2_000);

  test('are the same for the same seed, and no two are equal', () => {
    expect(createTemplateTexts(2_000)).toEqual(texts);
    expect(createTemplateTexts(2_000, 2)).not.toEqual(texts);
    expect(new Set(texts).size).toBe(2_000);
    expect(texts.filter((text) => /[{}]|undefined/.test(text))).toEqual([]);
  });

  test('are of words that stand in many of them, but for a number', () => {
    const counts = new Map<string, number>();
    for (const text of texts)
      for (const word of new Set(text.toLowerCase().match(/\p{L}+/gu))) counts.set(word, (counts.get(word) ?? 0) + 1);
    expect(counts.size).toBeLessThan(200);
    expect(Math.min(...counts.values())).toBeGreaterThan(2_000 / 50);
    for (const word of ['customer', 'project', 'order']) expect(counts.get(word)).toBe(2_000);
  });

  test('are asked for by their own words in another order', () => {
    const question = shuffledWords('Anna moved the lamp, order 100001.', 5, createRandom(1));
    expect(question.split(' ').toSorted()).toEqual(['Anna', 'lamp', 'moved', 'order', 'the']);
    expect(question).not.toBe('Anna moved the lamp order');
    expect(shuffledWords('Anna moved the lamp, order 100001.', 2, createRandom(1)).split(' ')).toHaveLength(2);
  });
});

test.for(['natural', 'template'] as const)('every system is given the same %s texts and questions', async (kind) => {
  const read = async () => {
    const folder = tempFolder();
    writeCorpus(folder, kind, 300);
    const { take, nextQuestion, known } = openCorpus(folder);
    const loaded = await take(300);
    return { loaded, spare: await take(2 * SPARE_TEXTS), questions: Array.from({ length: 100 }, nextQuestion), known };
  };
  const [one, other] = [await read(), await read()];
  expect(other).toEqual(one);
  expect([one.loaded.length, one.spare.length]).toEqual([300, SPARE_TEXTS]);
  expect(one.questions.filter((question) => question.trim() === '')).toEqual([]);
  expect(one.known.filter(({ text }) => !one.loaded.includes(text))).toEqual([]);
});

describe('adds beside questions', () => {
  const texts = Array.from({ length: 60 }, (_, at) => `text ${at}`);

  test('hands over each text once, in order, no more at a time than the system takes', async () => {
    const calls: (readonly string[])[] = [];
    const state = { underWay: 0, most: 0 };
    const add = async (some: readonly string[]) => {
      calls.push(some);
      state.most = Math.max(state.most, (state.underWay += 1));
      await nextTurn();
      state.underWay -= 1;
    };
    const adding = { atOnce: 2, together: 7, everyMs: 0 };
    const added = await addEvenly({ add, adding }, texts, {
      perSecond: 10_000,
      isOver: () => calls.flat().length === texts.length,
    });
    expect(calls.flat()).toEqual(texts);
    expect(Math.max(...calls.map((some) => some.length))).toBeLessThanOrEqual(7);
    expect(state.most).toBeLessThanOrEqual(2);
    expect(added.latencies).toHaveLength(60);
    expect(Math.min(...added.latencies)).toBeGreaterThanOrEqual(0);
  });

  test('ends with the failure of an add', async () => {
    const add = () => Promise.reject(new Error('the disk is full'));
    const adding = { atOnce: 1, together: 1, everyMs: 0 };
    const adds = addEvenly({ add, adding }, texts, { perSecond: 10_000, isOver: () => false });
    await expect(adds).rejects.toThrow('the disk is full');
  });
});

describe('the table', () => {
  const figure = (system: SystemName, name: string, value: number, more: Figure['more'] = {}): Figure => ({
    ...{ system, texts: 'natural', size: 10_000, figure: name, value, more },
  });
  const figures = [
    figure('lancedb', 'loaded_per_s', 4_000),
    figure('lancedb', 'ask_p95_ms', 12, { p50: 3 }),
    figure('lancedb', 'add_p95_ms_beside_asks', 100, { per_s: 150 }),
    figure('lancedb', 'resident_mb', 400, { before: 90.4 }),
    figure('lancedb', 'found', 0.98),
    figure('orama', 'ended_after_s', 600, { reason: 'ended after 10 minutes, with 5,000 memories loaded' }),
    figure('cairn', 'loaded_per_s', 2_000),
    figure('cairn', 'ask_p95_ms', 6, { p50: 4 }),
    figure('cairn', 'found', 1),
  ];

  test('has a row a system, Cairn first, with ratios over 1 where Cairn is better', () => {
    const rows = makeTables(figures).split('\n');
    const cells = (title: string) => rows.find((row) => row.startsWith(`| ${title}`))!.split(' | ');
    expect(rows[0]).toBe('**10,000 memories, natural texts**');
    expect(rows.slice(4).map((row) => row.split(',')[0])).toEqual(
      expect.arrayContaining(['| Cairn', '| LanceDB', '| Orama']),
    );
    expect(cells('Cairn').slice(1, 4)).toEqual(['2,000', '4', '6']);
    expect(cells('LanceDB').slice(1, 5)).toEqual(['4,000 (0.5×)', '3 (0.75×)', '12 (2×)', '–']);
    expect([cells('Cairn').at(-1), cells('LanceDB').at(-1)]).toEqual(['100 % |', '98 % |']);
  });

  test('says why a system has no figures, and which could not keep up', () => {
    const notes = makeTables(figures)
      .split('\n')
      .filter((line) => line.startsWith('- '));
    expect(notes).toEqual([
      expect.stringMatching(/^- LanceDB.* 90 MB are the measuring process\.$/),
      expect.stringMatching(/^- LanceDB.* finished 150 of the 200 adds a second\.$/),
      expect.stringMatching(/^- Orama.*: ended after 10 minutes, with 5,000 memories loaded\.$/),
    ]);
  });

  test('is one for each kind of texts and each size', () => {
    const more = figures.flatMap((one) => [one, { ...one, size: 100_000 }, { ...one, texts: 'template' }]);
    const titles = makeTables(more).match(/^\*\*.*\*\*$/gm);
    expect(titles).toEqual([
      '**10,000 memories, natural texts**',
      '**100,000 memories, natural texts**',
      '**10,000 memories, template texts**',
    ]);
  });
});

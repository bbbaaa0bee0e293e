import { describe, expect, test } from 'vitest';
import { calibrateScores } from '../../../src/engine/upkeep/calibrate-scores.ts';
import { runDueSchedules } from '../../../src/engine/upkeep/schedules.ts';
import { readCosineBase } from '../../../src/engine/store/calibrations.ts';
import { openTestEngine, START, type TestEngine } from '../../support/engine-fixture.ts';
import { notesAbout } from '../../support/topics.ts';

interface Row {
  readonly model_no: number;
  readonly fitted_at: number;
  readonly memories: number;
  readonly parameters: string;
}

const rowsOf = ({ all }: TestEngine) => all<Row>('SELECT * FROM calibrations ORDER BY model_no');

async function remember(fixture: TestEngine, from: number, to: number): Promise<void> {
  for (const { content } of notesAbout('garden', to).slice(from))
    await fixture.add({ content, userId: 'ana', sessionId: `s${content.length % 7}` });
  await fixture.drain();
}

describe('when scores are fitted', () => {
  test('not before there are 50 memories, then at once', async () => {
    await using fixture = await openTestEngine();
    await remember(fixture, 0, 49);
    expect(calibrateScores(fixture.maintenance)).toBe(false);
    expect(rowsOf(fixture)).toEqual([]);
    await remember(fixture, 49, 50);
    expect(await runDueSchedules(fixture.maintenance)).toContain('calibrate');
    expect(rowsOf(fixture)).toMatchObject([{ model_no: 1, fitted_at: START, memories: 50 }]);
  });

  test('again when the memories have doubled, or after a day in which they changed', async () => {
    await using fixture = await openTestEngine();
    await remember(fixture, 0, 50);
    expect(calibrateScores(fixture.maintenance)).toBe(true);
    fixture.clock.advanceDays(2);
    expect(calibrateScores(fixture.maintenance)).toBe(false); // Nothing has changed.
    await remember(fixture, 50, 60);
    expect(calibrateScores(fixture.maintenance)).toBe(true);
    await remember(fixture, 60, 119);
    expect(calibrateScores(fixture.maintenance)).toBe(false); // Neither doubled nor a day later.
    await remember(fixture, 119, 120);
    expect(calibrateScores(fixture.maintenance)).toBe(true);
    expect(rowsOf(fixture)[0]!.memories).toBe(120);
  });

  test('for the live model, whatever the settings ask for by now', async () => {
    const before = await openTestEngine();
    await remember(before, 0, 60);
    calibrateScores(before.maintenance);
    await before.close();
    await using fixture = await openTestEngine({ file: before.file, settings: { OM_VEC_DIM: '512' } });
    expect(calibrateScores(fixture.maintenance)).toBe(false);
    for (const { content } of notesAbout('servers', 60)) await fixture.add({ content, userId: 'ben' });
    await fixture.drain();
    expect(calibrateScores(fixture.maintenance)).toBe(true);
    expect(rowsOf(fixture).map(({ model_no }) => model_no)).toEqual([1]);
    expect(rowsOf(fixture).at(-1)).toMatchObject({ model_no: 1, memories: 120 });
  });

  test('a fit that came before the vectors is made again once they are there', async () => {
    await using fixture = await openTestEngine();
    await using late = await openTestEngine();
    for (const { content } of notesAbout('garden', 120)) {
      const memory = { content, userId: 'ana', sessionId: `s${content.length % 7}` };
      await fixture.add(memory);
      await late.add(memory);
    }
    // One vector makes the space.
    await late.runBatch(1);
    expect(calibrateScores(late.maintenance)).toBe(true);
    expect(rowsOf(late)).toEqual([]);
    expect(calibrateScores(late.maintenance)).toBe(false); // Neither more memories nor enough vectors.
    await late.drain();
    await fixture.drain();
    expect(calibrateScores(late.maintenance)).toBe(true);
    calibrateScores(fixture.maintenance);
    expect(rowsOf(late)).toEqual(rowsOf(fixture));
    expect(rowsOf(late)[0]).toMatchObject({ model_no: 1, memories: 120 });
    expect(calibrateScores(late.maintenance)).toBe(false);
  });

  test('daily also where the number of memories is what it was', async () => {
    await using fixture = await openTestEngine();
    await remember(fixture, 0, 50);
    calibrateScores(fixture.maintenance);
    const [id] = fixture.all<{ id: string }>('SELECT id FROM memories ORDER BY seq LIMIT 1').map((row) => row.id);
    await fixture.tenant.patchMemory(id!, { content: 'Said anew.' });
    await fixture.drain();
    fixture.clock.advanceDays(2);
    expect(calibrateScores(fixture.maintenance)).toBe(true);
    await fixture.tenant.deleteMemory(id!);
    await remember(fixture, 50, 51);
    fixture.clock.advanceDays(2);
    expect(calibrateScores(fixture.maintenance)).toBe(true);
  });

  test('what was fitted goes with the data, once fewer than 50 memories are left', async () => {
    await using fixture = await openTestEngine();
    await remember(fixture, 0, 60);
    calibrateScores(fixture.maintenance);
    expect(rowsOf(fixture)).toHaveLength(1);
    await fixture.tenant.deleteMemories({ userIds: ['ana'] });
    expect(calibrateScores(fixture.maintenance)).toBe(false);
    expect(rowsOf(fixture)).toEqual([]);
    expect(readCosineBase(fixture.store, 1)).toBe(0);
    await remember(fixture, 0, 50);
    expect(calibrateScores(fixture.maintenance)).toBe(true);
  });

  test('a clock that was set back does not hold it up', async () => {
    await using fixture = await openTestEngine();
    await remember(fixture, 0, 50);
    calibrateScores(fixture.maintenance);
    await remember(fixture, 50, 51);
    fixture.clock.set(START - 1);
    expect(calibrateScores(fixture.maintenance)).toBe(true);
  });

  test('without an embedder there is nothing to fit', async () => {
    await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
    await remember(fixture, 0, 50);
    expect(calibrateScores(fixture.maintenance)).toBe(true);
    expect(rowsOf(fixture)).toEqual([]);
    expect(calibrateScores(fixture.maintenance)).toBe(false);
  });
});

describe('what is fitted', () => {
  test('is the same for the same file', async () => {
    await using fixture = await openTestEngine();
    await remember(fixture, 0, 80);
    calibrateScores(fixture.maintenance);
    const first = rowsOf(fixture);
    fixture.store.write(() =>
      fixture.store.db.exec(`DELETE FROM calibrations; DELETE FROM store_info WHERE key = 'calibrated'`),
    );
    calibrateScores(fixture.maintenance);
    expect(rowsOf(fixture)).toEqual(first);
    expect(readCosineBase(fixture.store, 1)).toBeGreaterThanOrEqual(0);
    expect(readCosineBase(fixture.store, 1)).toBeLessThan(1);
  });

  test('is read anew once it has been fitted again', async () => {
    await using fixture = await openTestEngine();
    await remember(fixture, 0, 60);
    expect(readCosineBase(fixture.store, 1)).toBe(0);
    calibrateScores(fixture.maintenance);
    fixture.store.write(() =>
      // At the same time, as where the clock stood still.
      fixture.store.db.exec(`UPDATE calibrations SET parameters = json_set(parameters, '$.cosineBase', 0.4)`),
    );
    expect(readCosineBase(fixture.store, 1)).toBe(0.4);
  });

  test('holds numbers only, nothing of what was said', async () => {
    await using fixture = await openTestEngine();
    await remember(fixture, 0, 60);
    calibrateScores(fixture.maintenance);
    expect(rowsOf(fixture)).toHaveLength(1);
    for (const { parameters } of rowsOf(fixture))
      expect(Object.values(JSON.parse(parameters) as object).every((value) => typeof value === 'number')).toBe(true);
  });

  test('many users with a memory each are compared with one another', async () => {
    await using fixture = await openTestEngine();
    for (const [place, { content }] of notesAbout('garden', 60).entries())
      await fixture.add({ content, userId: `user ${place}` });
    await fixture.drain();
    calibrateScores(fixture.maintenance);
    expect(rowsOf(fixture)).toMatchObject([{ model_no: 1, memories: 60 }]);
  });
});

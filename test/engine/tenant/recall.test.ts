import { describe, expect, test } from 'vitest';
import { createManualClock, dumpTables, openTestEngine, START, type TestEngine } from '../../support/engine-fixture.ts';

interface Seen {
  readonly salience: number;
  readonly salience_at: number;
  readonly access_count: number;
  readonly last_seen_at: number;
}

const seen = (fixture: TestEngine, memoryNo: number): Seen =>
  fixture.get('SELECT salience, salience_at, access_count, last_seen_at FROM memory_dynamics WHERE seq = ?', memoryNo);

/** Recalls are applied some time after the answer, at the latest when the engine closes. */
async function reopenAfter(fixture: TestEngine): Promise<TestEngine> {
  await fixture.close();
  return openTestEngine({ file: fixture.file, clock: fixture.clock });
}

test('reinforce: false changes no row of any table but those of the recall log', async () => {
  const fixture = await openTestEngine({ settings: { OM_RECALL_DAYS: '0' } });
  const { memoryNo } = await fixture.add({ content: 'The wallaby hops across the road.' });
  await fixture.add({ content: 'The wallaby hops across the long road.' });
  await fixture.drain();
  fixture.clock.advanceDays(3);
  const before = dumpTables(fixture.store);
  for (let n = 0; n < 5; n += 1) {
    const { hits } = await fixture.tenant.query({ query: 'wallaby road', k: 10, filter: {}, reinforce: false });
    expect(hits).toHaveLength(2);
  }
  await using after = await reopenAfter(fixture);
  expect(dumpTables(after.store)).toEqual(before);
  expect(seen(after, memoryNo).access_count).toBe(0);
});

describe('reinforce: true', () => {
  test('applies once a recall to each memory that was returned, and to no other', async () => {
    const fixture = await openTestEngine();
    const wallaby = await fixture.add({ content: 'The wallaby hops across the road.' });
    const rates = await fixture.add({ content: 'Interest rates rose sharply.' });
    await fixture.drain();
    fixture.clock.advanceDays(10);
    const { hits } = await fixture.tenant.query({ query: 'wallaby', k: 1, filter: {}, reinforce: true });
    expect(hits.map((hit) => hit.memory.id)).toEqual([wallaby.id]);
    await using after = await reopenAfter(fixture);
    const faded = 0.4 * Math.exp(-0.05);
    expect(seen(after, wallaby.memoryNo)).toEqual({
      salience: expect.closeTo(faded + 0.1, 10) as number,
      salience_at: fixture.clock.now(),
      access_count: 1,
      last_seen_at: fixture.clock.now(),
    });
    expect(seen(after, rates.memoryNo)).toEqual({
      salience: 0.4,
      salience_at: START,
      access_count: 0,
      last_seen_at: START,
    });
    expect((await after.tenant.getMemory(wallaby.id)).strength).toBeCloseTo(Math.exp(-0.1), 10);
  });

  test('raises the salience of a memory no further in one hour than the settings allow', async () => {
    await using fixture = await openTestEngine({ settings: { OM_DECAY_LAMBDA: '0', OM_REINFORCE_PER_HOUR: '0.3' } });
    const { id } = await fixture.add({ content: 'The wallaby hops across the road.', importance: 0.1 });
    const reinforce = async () => {
      for (let n = 0; n < 20; n += 1) await fixture.tenant.reinforceMemory(id, 0.25);
      return (await fixture.tenant.getMemory(id)).salience;
    };
    expect(await reinforce()).toBeCloseTo(0.4, 5);
    await fixture.tenant.query({ query: 'wallaby', k: 1, filter: {} });
    expect((await fixture.tenant.getMemory(id)).salience).toBeCloseTo(0.4, 5);
    fixture.clock.advance(-2 * 3_600_000);
    expect(await reinforce()).toBeCloseTo(0.4, 5);
    fixture.clock.advance(3 * 3_600_000);
    expect(await reinforce()).toBeCloseTo(0.7, 5);
  });

  test('many times in a row stops at 1 and counts each', async () => {
    const fixture = await openTestEngine({ settings: { OM_REINFORCE_PER_HOUR: '1' } });
    const { memoryNo } = await fixture.add({ content: 'The wallaby hops across the road.' });
    await fixture.drain();
    for (let n = 0; n < 100; n += 1) {
      fixture.clock.advance(1);
      await fixture.tenant.query({ query: 'wallaby', k: 1, filter: {} });
    }
    await using after = await reopenAfter(fixture);
    expect(seen(after, memoryNo)).toMatchObject({ access_count: 100, last_seen_at: START + 100 });
    expect(seen(after, memoryNo).salience).toBeCloseTo(1, 3);
    expect(seen(after, memoryNo).salience).toBeLessThanOrEqual(1);
  });

  test('uses the time of the recall, not that of the write', async () => {
    const fixture = await openTestEngine();
    const { memoryNo } = await fixture.add({ content: 'The wallaby hops across the road.' });
    await fixture.tenant.query({ query: 'wallaby', k: 1, filter: {} });
    fixture.clock.advanceDays(2);
    await using after = await reopenAfter(fixture);
    expect(seen(after, memoryNo)).toMatchObject({ last_seen_at: START, salience_at: START });
  });

  test('strengthens the waypoint that was walked by 0.05, at most to 1', async () => {
    const clock = createManualClock();
    let fixture = await openTestEngine({ clock });
    const source = await fixture.add({ content: 'A quokka.', userId: 'u' });
    const reached = await fixture.add({ content: 'Interest rates rose sharply.', userId: 'u' });
    await fixture.drain();
    fixture.store.db
      .prepare(
        `INSERT INTO edges (src, dst, type, similarity, weight, automatic, created_at, updated_at) VALUES (?, ?, 'waypoint', 0.8, 0.9, 1, ?, ?)`,
      )
      .run(reached.memoryNo, source.memoryNo, START, START);
    const weights: number[] = [];
    for (let recall = 1; recall <= 3; recall += 1) {
      clock.advance(1);
      const { hits } = await fixture.tenant.query({ query: 'quokka', k: 5, filter: {}, vectorWeight: 0 });
      expect(hits.map((hit) => hit.path)).toEqual([[source.id], [source.id, reached.id]]);
      fixture = await reopenAfter(fixture);
      const edge = fixture.get<{ weight: number; similarity: number; updated_at: number }>(
        'SELECT weight, similarity, updated_at FROM edges',
      );
      expect(edge).toMatchObject({ similarity: 0.8, updated_at: clock.now() });
      weights.push(edge.weight);
      expect(seen(fixture, reached.memoryNo).access_count).toBe(recall);
    }
    await fixture.close();
    expect(weights).toEqual([expect.closeTo(0.95), expect.closeTo(1), 1]);
  });

  test('passes over what was deleted since', async () => {
    const fixture = await openTestEngine();
    const { id } = await fixture.add({ content: 'The wallaby hops.' });
    const stays = await fixture.add({ content: 'The wallaby stays.' });
    await fixture.tenant.query({ query: 'wallaby', k: 5, filter: {} });
    await fixture.tenant.deleteMemory(id);
    await using after = await reopenAfter(fixture);
    expect(seen(after, stays.memoryNo).access_count).toBe(1);
    expect(after.get('SELECT count(*) FROM memory_dynamics')).toBe(1);
  });

  test('is what the setting says where the query says nothing', async () => {
    const fixture = await openTestEngine({ settings: { OM_DECAY_REINFORCE_ON_QUERY: 'false' } });
    const { memoryNo } = await fixture.add({ content: 'The wallaby hops.' });
    await fixture.tenant.query({ query: 'wallaby', k: 5, filter: {} });
    await using after = await reopenAfter(fixture);
    expect(seen(after, memoryNo).access_count).toBe(0);
  });
});

test('the score is 0.7 similarity, 0.1 salience, 0.1 recency and 0.1 waypoint, each as of now, before later stages move it', async () => {
  await using fixture = await openTestEngine();
  await fixture.add({ content: 'The wallaby hops across the road.', metadata: { sector: 'emotional' } });
  await fixture.drain();
  for (const [days, recency] of [
    [0, 1],
    [1, 0.9512],
    [30, 0.2231],
  ] as const) {
    fixture.clock.set(START);
    fixture.clock.advanceDays(days);
    const query = { query: 'wallaby', k: 1, filter: {}, rerank: 'none', reinforce: false, explain: true } as const;
    const [hit] = (await fixture.tenant.query(query)).hits;
    const { features, weights } = hit!.explain!;
    expect(weights).toEqual({ similarity: 0.7, salience: 0.1, recency: 0.1, waypoint: 0.1 });
    expect(features.recency).toBeCloseTo(recency, 4);
    expect(features.salience).toBeCloseTo(0.4 * Math.exp(-0.02 * days), 10);
    expect(hit!.rawScore).toBeCloseTo(
      0.7 * features.similarity + 0.1 * features.salience + 0.1 * features.recency + 0.1 * features.waypoint,
      10,
    );
  }
});

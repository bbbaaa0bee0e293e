import { describe, expect, test, vi } from 'vitest';
import { settleLinkBases } from '../../../src/engine/steps/settle-link-bases.ts';
import { findLinkBase, putLinkBase } from '../../../src/engine/store/link-bases.ts';
import { calibrateScores } from '../../../src/engine/upkeep/calibrate-scores.ts';
import { newMemory, openTestEngine, type TestEngine } from '../../support/engine-fixture.ts';
import { notesAbout } from '../../support/topics.ts';

const NOTES = notesAbout('garden', 120).map(({ content }) => content);
/** Of the way from the base to 1. The notes share a language and a subject, so their base is above 0. */
const THRESHOLD = 0.65;

const open = () =>
  openTestEngine({ embedder: (embedder) => ({ ...embedder, isAnisotropic: true, waypointThreshold: THRESHOLD }) });

const baseOf = ({ store }: TestEngine) => findLinkBase(store, 1);

function waypointsOf(fixture: TestEngine): { src: number; similarity: number }[] {
  return fixture.all(`SELECT src, dst, similarity FROM edges WHERE type = 'waypoint' ORDER BY src`);
}

async function add(fixture: TestEngine, from: number, to: number): Promise<void> {
  await fixture.tenant.addMemories(
    NOTES.slice(from, to).map((content, place) => newMemory({ content, sessionId: `s${(from + place) % 7}` })),
  );
}

describe('the base from which waypoints count', () => {
  test('is measured at the 50th memory, and takes the waypoints that are too weak by it', async () => {
    await using fixture = await open();
    await add(fixture, 0, 49);
    await fixture.drain();
    expect(baseOf(fixture)).toBeUndefined();
    const before = waypointsOf(fixture);
    await add(fixture, 49, 50);
    await fixture.drain();
    const base = baseOf(fixture)!;
    expect(base).toBeGreaterThan(0);
    const threshold = base + (1 - base) * THRESHOLD;
    const strong = before.filter(({ similarity }) => similarity >= threshold);
    expect(strong.length).toBeLessThan(before.length);
    expect(strong.length).toBeGreaterThan(0);
    expect(waypointsOf(fixture).filter(({ src }) => src <= 49)).toEqual(strong);
  });

  test('and the waypoints do not depend on batches, on the order of embedding, or on when scores are fitted', async () => {
    const ends = [];
    for (const [size, isFitted] of [
      [1, false],
      [7, true],
      [64, true],
    ] as const) {
      await using fixture = await open();
      for (let from = 0; from < 120; from += 30) {
        await add(fixture, from, from + 30);
        await fixture.drain(size);
        if (isFitted) calibrateScores(fixture.maintenance);
      }
      ends.push({ base: baseOf(fixture), waypoints: waypointsOf(fixture) });
    }
    await using late = await open();
    await add(late, 0, 120);
    // Interactive adds overtake bulk ones: here the newest are embedded and linked first.
    late.store.db.exec(`UPDATE jobs SET priority = 1 WHERE memory <= 60`);
    await late.drain(16);
    ends.push({ base: baseOf(late), waypoints: waypointsOf(late) });
    expect(ends[0]!.base).toBeGreaterThan(0);
    for (const end of ends.slice(1)) expect(end.base).toEqual(ends[0]!.base);
    for (const end of ends.slice(1, 3)) expect(end.waypoints).toEqual(ends[0]!.waypoints);
  });

  test('stays when later memories, and the fit of the scores, say otherwise', async () => {
    await using fixture = await open();
    await add(fixture, 0, 50);
    await fixture.drain();
    const base = baseOf(fixture);
    await fixture.tenant.addMemories(
      notesAbout('servers', 200).map(({ content }) => newMemory({ content, userId: 'ben' })),
    );
    await fixture.drain();
    calibrateScores(fixture.maintenance);
    expect(baseOf(fixture)).toBe(base);
  });

  test('is not measured where the embedder leaves unrelated texts near 0', async () => {
    await using fixture = await openTestEngine();
    await add(fixture, 0, 60);
    await fixture.drain();
    expect(baseOf(fixture)).toBeUndefined();
  });
});

test('waypoints that are too weak by a new base are deleted in small commits', async () => {
  await using fixture = await open();
  await add(fixture, 0, 50);
  await fixture.drain();
  const { store } = fixture;
  await fixture.tenant.addMemories(
    notesAbout('servers', 450).map(({ content }) => newMemory({ content, userId: 'ben' })),
  );
  await fixture.drain();
  store.write(() => {
    putLinkBase(store, 1, null);
    store
      .prepare(
        `INSERT OR REPLACE INTO edges (src, dst, type, similarity, weight, automatic, created_at, updated_at)
         SELECT seq, iif(seq = 1, 2, 1), 'waypoint', 0.01, 0.01, 1, 1, 1 FROM memories`,
      )
      .run();
  });
  expect(waypointsOf(fixture)).toHaveLength(500);
  const { store: written } = fixture.batch.open();
  using write = vi.spyOn(written, 'write');
  await settleLinkBases(fixture.batch);
  expect(waypointsOf(fixture)).toEqual([]);
  expect(baseOf(fixture)).toBeGreaterThan(0);
  // 200, 200 and 100 waypoints, and the base.
  expect(write).toHaveBeenCalledTimes(4);
});

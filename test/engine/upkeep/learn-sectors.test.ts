import { expect, test } from 'vitest';
import { fitCorrection } from '../../../src/engine/sectors/fit-correction.ts';
import { readSectorCorrection } from '../../../src/engine/store/sector-corrections.ts';
import { runDueSchedules } from '../../../src/engine/upkeep/schedules.ts';
import type { Sector } from '../../../src/engine/types.ts';
import { DAY_MS } from '../../../src/engine/dynamics.ts';
import { openTestEngine, type TestEngine } from '../../support/engine-fixture.ts';

const THINGS = 'mast keel rope buoy winch rudder cleat jib boom hatch oar anchor sail tiller hull deck stay'.split(' ');
/** Facts by their form, which this tenant calls procedural. */
const ruleOf = (thing: string) => `Rule for the ${thing}: the ${thing} belongs to the crew of the watch.`;

async function addRules(fixture: TestEngine, sector: Sector): Promise<string[]> {
  const ids = [];
  for (const thing of THINGS) {
    for (const boat of ['', 'On the ferry: ']) {
      ids.push((await fixture.add({ content: `${boat}${ruleOf(thing)}`, metadata: { sector } })).id);
    }
  }
  await fixture.drain();
  return ids;
}

async function nextDay({ clock, batch }: TestEngine): Promise<void> {
  clock.advance(DAY_MS + 1);
  expect(await runDueSchedules(batch)).toContain('sectors');
}

const sectorOfNew = async (fixture: TestEngine, content: string) => {
  const { id } = await fixture.add({ content });
  await fixture.drain();
  return (await fixture.tenant.getMemory(id)).primarySector;
};

test('sectors that are stated teach the classifier of the tenant, and are forgotten with their memories', async () => {
  await using fixture = await openTestEngine();
  await runDueSchedules(fixture.batch);
  expect(await sectorOfNew(fixture, ruleOf('galley'))).toBe('semantic');
  const ids = await addRules(fixture, 'procedural');
  expect(await sectorOfNew(fixture, ruleOf('stern'))).toBe('semantic');
  await nextDay(fixture);
  expect(await sectorOfNew(fixture, ruleOf('bow'))).toBe('procedural');
  // What has nothing to do with it stays.
  expect(await sectorOfNew(fixture, 'I am so sad that she left.')).toBe('emotional');
  expect(await sectorOfNew(fixture, 'Yesterday we met Tom at the harbour.')).toBe('episodic');

  const learned = readSectorCorrection(fixture.batch.open().store)!;
  expect(learned.size).toBeLessThanOrEqual(2_000);
  expect([...learned.values()].flat().every((value) => Math.abs(value) <= 2)).toBe(true);
  await nextDay(fixture);
  expect(readSectorCorrection(fixture.batch.open().store)).toEqual(learned);

  for (const id of ids) await fixture.tenant.deleteMemory(id);
  await nextDay(fixture);
  expect(readSectorCorrection(fixture.batch.open().store)).toBeNull();
  expect(await sectorOfNew(fixture, ruleOf('prow'))).toBe('semantic');
});

test('too few statements, and those that teach nothing, leave the classifier as it is', () => {
  const stated = (count: number, sectorOf: (at: number) => Sector) =>
    Array.from({ length: count }, (_, at) => ({ text: ruleOf(THINGS[at % THINGS.length]!), sector: sectorOf(at) }));
  expect(fitCorrection(stated(19, () => 'procedural'))).toBeNull();
  expect(fitCorrection(stated(60, () => 'semantic'))).toBeNull();
  const noise: readonly Sector[] = ['emotional', 'semantic', 'procedural', 'episodic', 'reflective'];
  expect(fitCorrection(stated(60, (at) => noise[(at * 7 + (at >> 2)) % 5]!))).toBeNull();
  expect(fitCorrection(stated(40, () => 'procedural'))).not.toBeNull();
});

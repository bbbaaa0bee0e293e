import { expect, onTestFinished, test } from 'vitest';
import { fitCorrection } from '../../../src/engine/sectors/fit-correction.ts';
import { sectorWordsOf } from '../../../src/engine/sectors/words-to-classify.ts';
import { textOfMemory } from '../../../src/engine/steps/text-of-memory.ts';
import { listStatedSectors, readSectorCorrection } from '../../../src/engine/store/sector-corrections.ts';
import { learnSectors } from '../../../src/engine/upkeep/learn-sectors.ts';
import { runDueSchedules } from '../../../src/engine/upkeep/schedules.ts';
import type { Sector } from '../../../src/engine/types.ts';
import { DAY_MS } from '../../../src/engine/dynamics.ts';
import { openTestEngine, type TestEngine } from '../../support/engine-fixture.ts';
import { startFakeProvider } from '../../support/fake-provider.ts';

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

const statedIn = ({ batch }: TestEngine, pause = noPause) => listStatedSectors(() => batch.open().store, 10, pause);

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

test('a correction that is learned while memories are erased is learned anew, or deleted in the end', async () => {
  await using fixture = await openTestEngine();
  const ids = await addRules(fixture, 'procedural');
  const { config, open } = fixture.batch;
  /** Learns, and erases a memory during each of the first attempts. */
  const learn = async (erased: number) => {
    let [opened, erasedAt] = [0, 0];
    const context = { config, open: () => ((opened += 1), open()) };
    await learnSectors(context, async () => {
      if (erasedAt === opened || erased === 0) return;
      [erasedAt, erased] = [opened, erased - 1];
      await fixture.tenant.deleteMemory(ids.pop()!);
    });
    return readSectorCorrection(open().store);
  };
  const anew = await learn(1);
  expect(anew).toEqual(await learn(0));
  expect(anew?.size).toBeGreaterThan(0);
  expect(await learn(3)).toBeNull();
});

test('a correction is deleted once the classifier does not learn', async () => {
  await using fixture = await openTestEngine();
  await addRules(fixture, 'procedural');
  const { config, open } = fixture.batch;
  await learnSectors({ config, open }, noPause);
  expect(readSectorCorrection(open().store)).not.toBeNull();
  await learnSectors({ config: { ...config, OM_SECTOR_CLASSIFIER: 'patterns' }, open }, noPause);
  expect(readSectorCorrection(open().store)).toBeNull();
});

const noPause = async () => {};

test('too few statements, and those that teach nothing, leave the classifier as it is', async () => {
  const stated = (count: number, sectorOf: (at: number) => Sector) =>
    Array.from({ length: count }, (_, at) => ({ text: ruleOf(THINGS[at % THINGS.length]!), sector: sectorOf(at) }));
  expect(
    await fitCorrection(
      stated(19, () => 'procedural'),
      noPause,
    ),
  ).toBeNull();
  expect(
    await fitCorrection(
      stated(60, () => 'semantic'),
      noPause,
    ),
  ).toBeNull();
  const noise: readonly Sector[] = ['emotional', 'semantic', 'procedural', 'episodic', 'reflective'];
  expect(
    await fitCorrection(
      stated(60, (at) => noise[(at * 7 + (at >> 2)) % 5]!),
      noPause,
    ),
  ).toBeNull();
  expect(
    await fitCorrection(
      stated(40, () => 'procedural'),
      noPause,
    ),
  ).not.toBeNull();
});

test('learning lets others have the thread, and of long texts reads only what the classifier examines', async () => {
  await using fixture = await openTestEngine();
  const contents = ['é', '🚢 '].map((mark) => {
    const lines = Array.from({ length: 10_000 }, (_, at) => `${mark}${ruleOf(`${THINGS[at % 17]} ${at}`)}`);
    return lines.join('\n').slice(0, 200_000);
  });
  for (const content of contents) await fixture.add({ content, title: 'Ünder way', metadata: { sector: 'semantic' } });
  const stated = await statedIn(fixture);
  for (const [at, row] of stated.entries()) {
    expect(row.content.length).toBeLessThan(9_000);
    const whole = textOfMemory({ title: 'Ünder way', content: contents[at]! });
    expect(sectorWordsOf(textOfMemory(row))).toEqual(sectorWordsOf(whole));
  }
  let paused = 0;
  const rows = THINGS.flatMap((thing) => [0, 1].map(() => ({ text: ruleOf(thing), sector: 'procedural' as const })));
  await fitCorrection(rows, async () => void (paused += 1));
  expect(paused).toBe(72);
});

test('stated sectors are searched a few thousand memories at a time, the newest first', async () => {
  await using fixture = await openTestEngine();
  await fixture.add({ content: ruleOf('mast'), metadata: { sector: 'semantic' } });
  fixture.store.write(() => fixture.store.prepare('UPDATE sqlite_sequence SET seq = 5000').run());
  await fixture.add({ content: ruleOf('keel'), metadata: { sector: 'procedural' } });
  let paused = 0;
  const stated = await statedIn(fixture, async () => void (paused += 1));
  expect(stated.map(({ sector }) => sector)).toEqual(['semantic', 'procedural']);
  expect(paused).toBe(2);
});

test('of a long text with a U+0000 no more is read than of others', async () => {
  await using fixture = await openTestEngine();
  const content = `\0${'harbour '.repeat(25_000)}`;
  await fixture.add({ content, metadata: { sector: 'semantic' } });
  const short = `a\0${ruleOf('mast')}`;
  await fixture.add({ content: short, metadata: { sector: 'semantic' } });
  const stated = await statedIn(fixture);
  expect(stated[0]!.content.length).toBeLessThan(16_001);
  expect(stated[1]!.content).toBe(short);
});

test('the sector of a reflection is stated by nobody', async () => {
  const { chat, url, close } = await startFakeProvider({ dimensions: 256 });
  onTestFinished(close);
  await using fixture = await openTestEngine({ settings: { OM_LLM_MODEL: 'a-model', OM_LLM_BASE_URL: url } });
  await fixture.add({ content: ruleOf('galley'), userId: 'ana', metadata: { sector: 'semantic' } });
  await fixture.add({ content: ruleOf('stern'), userId: 'ana' });
  await fixture.drain();
  chat.say(JSON.stringify([{ insight: 'All that floats belongs to the crew', memories: [1, 2] }]));
  await fixture.tenant.reflect({ userId: 'ana', sessionId: null });
  await fixture.askQuestions();
  expect(await fixture.tenant.listReflections('ana', 10)).toMatchObject([{ metadata: { sector: 'reflective' } }]);
  expect(await statedIn(fixture)).toMatchObject([{ sector: 'semantic' }]);
});

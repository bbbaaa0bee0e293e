/** Chains of more memories than one commit should move: the writes of all tenants wait for a commit. */

import { expect, test } from 'vitest';
import { deleteMemory } from '../../../src/engine/commands/erase.ts';
import { listChainEnds, MAX_RELABELLED } from '../../../src/engine/store/chains.ts';
import { newMemory, openTestEngine, type TestEngine } from '../../support/engine-fixture.ts';
import { runCommand } from '../../support/run-command.ts';

const LONG = MAX_RELABELLED + 60;

/** Adds memories of which each supersedes the one before. @returns their ids, the oldest first */
async function addChain({ tenant }: TestEngine, name: string, length: number): Promise<string[]> {
  const { outcomes } = await tenant.addMemories(
    Array.from({ length }, (_, place) => newMemory({ content: `${name} has version ${place}` })),
  );
  const ids = outcomes.map((outcome) => (outcome.kind === 'accepted' ? outcome.id : ''));
  for (const [place, newId] of ids.entries())
    if (place > 0) await tenant.supersedeMemory({ oldId: ids[place - 1]!, newId });
  return ids;
}

/** Adds memories of which each is superseded by the one before, and the first one by `end`. */
async function growDown({ tenant }: TestEngine, end: string, name: string, length: number): Promise<string[]> {
  const { outcomes } = await tenant.addMemories(
    Array.from({ length }, (_, place) => newMemory({ content: `${name} had version ${place}` })),
  );
  const ids = outcomes.map((outcome) => (outcome.kind === 'accepted' ? outcome.id : ''));
  for (const [place, oldId] of ids.entries())
    await tenant.supersedeMemory({ oldId, newId: place === 0 ? end : ids[place - 1]! });
  return ids;
}

function endOf(fixture: TestEngine, id: string): number | undefined {
  return listChainEnds(fixture.store, [fixture.memoryNoOf(id)], fixture.clock.now())[0]?.liveEnd;
}

const link = (src: string, dst: string) => ({
  ...({ type: 'link', src, dst, link_type: 'supersedes', similarity: null, weight: 1, winner: null } as const),
  ...{ automatic: false, written_by: null, created_at: null, updated_at: null },
});

test('an import joins no two long chains, and closes no circle', async () => {
  await using fixture = await openTestEngine();
  const [one, other] = [await addChain(fixture, 'one', LONG), await addChain(fixture, 'other', LONG)];
  const [short] = await addChain(fixture, 'short', 3);
  const lines = [
    link(other[0]!, one.at(-1)!),
    link(one[3]!, one.at(-1)!),
    link(one[0]!, one.at(-1)!),
    link(short!, one.at(-1)!),
  ];
  const outcomes = await fixture.tenant.importLines(lines);
  expect(outcomes).toMatchObject([
    { kind: 'refused', error: { code: 'conflict', message: expect.stringMatching(/over 500 memories/) } },
    { kind: 'refused', error: { code: 'conflict', message: 'dst supersedes src already' } },
    { kind: 'refused', error: { code: 'conflict', message: 'dst supersedes src already' } },
    { kind: 'stored' },
  ]);
  expect(endOf(fixture, other[0]!)).toBe(fixture.memoryNoOf(other.at(-1)!));
  expect(endOf(fixture, one[0]!)).toBe(endOf(fixture, short!));
});

test('an item in the middle of a long chain is not put anew, and one near an end is', async () => {
  await using fixture = await openTestEngine();
  const chain = await addChain(fixture, 'the chain', LONG);
  const put = (content: string) =>
    fixture.tenant.putItem({ ...newMemory({ content }), namespace: 'n', key: 'k', value: null });
  const { memory } = await put('an item');
  await fixture.tenant.supersedeMemory({ oldId: chain.at(-1)!, newId: memory.id });
  const [newer] = await addChain(fixture, 'newer', 1);
  await fixture.tenant.supersedeMemory({ oldId: memory.id, newId: newer! });
  expect((await put('an item, again')).memory.status).toBe('active');
  expect(endOf(fixture, chain[0]!)).toBe(fixture.memoryNoOf(memory.id));

  const [end] = await addChain(fixture, 'end', 1);
  await fixture.tenant.supersedeMemory({ oldId: memory.id, newId: end! });
  await growDown(fixture, end!, 'the other branch', LONG);
  // They would be removed in a commit before the one that puts the item.
  const concluded = `FROM edges WHERE type = 'supports' AND automatic = 1`;
  fixture.store.write(() =>
    fixture.store
      .prepare(
        `INSERT INTO edges (src, dst, type, automatic, winner, weight, created_at, updated_at)
         SELECT m.seq, i.seq, 'supports', 1, NULL, 0.5, 1, 1 FROM memories m CROSS JOIN memories i
         WHERE i.id = ? AND m.seq <> i.seq`,
      )
      .run(memory.id),
  );
  const links = fixture.get(`SELECT count(*) ${concluded}`);
  await expect(put('an item, once more')).rejects.toMatchObject({
    code: 'conflict',
    message: expect.stringMatching(/^key: .*over 1000 memories/),
  });
  expect((await fixture.tenant.getMemory(memory.id)).status).toBe('superseded');
  expect(fixture.get(`SELECT count(*) ${concluded}`)).toBe(links);
});

test('the live end of long branches is erased in bounded commits', async () => {
  await using fixture = await openTestEngine();
  const [hub = ''] = await addChain(fixture, 'the hub', 1);
  const branches: string[][] = [];
  for (const name of ['the first', 'the second', 'the third']) branches.push(await growDown(fixture, hub, name, LONG));
  const slices = [1, 2, 3].map(() => runCommand(fixture, (context) => deleteMemory(context, { id: hub })));
  // Each of the first two parts off one branch.
  expect(slices.map(({ isDone }) => isDone)).toEqual([false, false, true]);
  for (const [end, ...others] of branches) {
    expect((await fixture.tenant.getMemory(end!)).status).toBe('active');
    for (const id of others) expect(endOf(fixture, id)).toBe(fixture.memoryNoOf(end!));
  }
});

test('of the branches of an erased live end, the longest keeps its chain', async () => {
  await using fixture = await openTestEngine();
  const [hub = ''] = await addChain(fixture, 'the hub', 1);
  const [long, short, single] = [
    await growDown(fixture, hub, 'the long one', 300),
    await growDown(fixture, hub, 'the short one', 2),
    await growDown(fixture, hub, 'the single one', 1),
  ];
  const changes = () => fixture.get<number>('SELECT total_changes()');
  const before = changes();
  expect(runCommand(fixture, (context) => deleteMemory(context, { id: hub })).isDone).toBe(true);
  expect(changes() - before).toBeLessThan(200);
  expect(endOf(fixture, long.at(-1)!)).toBe(fixture.memoryNoOf(long[0]!));
  expect(endOf(fixture, short[1]!)).toBe(fixture.memoryNoOf(short[0]!));
  expect(endOf(fixture, single[0]!)).toBeUndefined();
  expect(fixture.get('SELECT count(*) FROM chains')).toBe(2);
});

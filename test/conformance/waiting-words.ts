/** A commit writes the words of few long memories anew when contexts change; the others wait for later commits. */
import { expect } from 'vitest';
import { addMemories } from '../../src/engine/commands/accept.ts';
import { deleteMemory } from '../../src/engine/commands/erase.ts';
import { patchMemory } from '../../src/engine/commands/patch.ts';
import { undoChanges } from '../../src/engine/commands/undo-writer.ts';
import type { WriteContext } from '../../src/engine/commands/write-context.ts';
import { DAY_MS } from '../../src/engine/dynamics.ts';
import { indexedBytes } from '../../src/engine/store/word-index/memory-text.ts';
import { newMemory, START, type TestEngine } from '../support/engine-fixture.ts';
import { runCommand } from '../support/run-command.ts';

/** What a check needs: a tenant without data, and the store on which single commands run. */
export type WaitingFixture = Pick<TestEngine, 'engine' | 'tenant' | 'batch' | 'clock'> & {
  readonly store: WriteContext['store'];
};

/** Work of a text of `long`, rather too much: each of its 60,000 characters has three bytes, and each counts four. */
const LONG_WORK = 4 * 3 * 60_000 + 10_000;

const inSession = (content: string, day: number) =>
  newMemory({ content, userId: 'ana', sessionId: 's', eventTime: START + day * DAY_MS });

const long = (day: number) => inSession(`${day} ${'\u9e6d'.repeat(60_000)}`, day);

async function add({ tenant }: WaitingFixture, ...memories: ReturnType<typeof newMemory>[]): Promise<string[]> {
  const ids: string[] = [];
  for (const memory of memories) {
    const { outcomes } = await tenant.addMemories([memory]);
    ids.push((outcomes[0] as { readonly id: string }).id);
  }
  return ids;
}

/** Runs a command, and returns how much work it made for the word index. */
const workOf = (fixture: WaitingFixture, command: (context: WriteContext) => unknown): number =>
  runCommand(fixture as unknown as TestEngine, (context) => {
    command(context);
    return indexedBytes(context.store);
  });

/** Number of memories whose words wait. */
const countWaiting = ({ store }: WaitingFixture): number => {
  const waiting = store.prepare("SELECT value FROM store_info WHERE key = 'contexts_waiting'").pluck().get();
  return waiting === undefined ? 0 : (JSON.parse(waiting as string) as number[]).length;
};

async function countCommits({ engine }: WaitingFixture): Promise<number> {
  const { values } = await engine.metrics.commits.get();
  return values.find(({ metricName }) => metricName?.endsWith('_count'))!.value;
}

/** Checks a PATCH of the time of a short memory: before it were two long memories, and two are after it. */
export async function patchesTime(fixture: WaitingFixture): Promise<void> {
  const [short] = await add(fixture, inSession('short', 1), long(2), long(3), long(11), long(12));
  const patch = { eventTime: START + 10 * DAY_MS };
  expect(workOf(fixture, (context) => patchMemory(context, { id: short!, patch }))).toBeLessThan(1.1 * LONG_WORK);
  expect(countWaiting(fixture)).toBe(3);
  const before = await countCommits(fixture);
  await fixture.tenant.patchMemory(short!, { eventTime: START + DAY_MS });
  // One with the memory and the first of the four, and one for each that waits, as the first one does since before.
  expect((await countCommits(fixture)) - before).toBe(5);
  expect(countWaiting(fixture)).toBe(0);
}

/** Checks a delete of a short memory before two long ones. */
export async function erasesBefore(fixture: WaitingFixture): Promise<void> {
  const [first, second] = await add(fixture, inSession('one', 1), inSession('two', 2), long(3), long(4));
  expect(workOf(fixture, (context) => deleteMemory(context, { id: second! }))).toBeLessThan(1.1 * LONG_WORK);
  expect(countWaiting(fixture)).toBe(1);
  const before = await countCommits(fixture);
  await fixture.tenant.deleteMemory(first!);
  // One for each long memory, and one that closes the receipt.
  expect((await countCommits(fixture)) - before).toBe(3);
  expect(countWaiting(fixture)).toBe(0);
}

/** Checks an add of a short memory before two long ones. */
export async function addsBefore(fixture: WaitingFixture): Promise<void> {
  await add(fixture, long(3), long(4));
  const items = [inSession('one', 1)];
  expect(workOf(fixture, (context) => addMemories(context, { items, options: {} }))).toBeLessThan(1.1 * LONG_WORK);
  expect(countWaiting(fixture)).toBe(1);
  const before = await countCommits(fixture);
  await add(fixture, inSession('two', 2));
  expect((await countCommits(fixture)) - before).toBe(2);
  expect(countWaiting(fixture)).toBe(0);
}

/** Checks that the changes of a key to long memories are undone a few in a commit. */
export async function undoesFew(fixture: WaitingFixture): Promise<void> {
  const ids = await add(fixture, long(1), long(2), long(3), long(4));
  for (const id of ids) await fixture.tenant.as('leaked').patchMemory(id, { tags: ['leaked'] });
  const asked = { writtenBy: 'leaked', after: 0, limit: 4 };
  expect(workOf(fixture, (context) => undoChanges(context, asked))).toBeLessThan(1.1 * LONG_WORK);
  await fixture.tenant.deleteMemories({ writtenBy: ['leaked'] });
  for (const id of ids) expect((await fixture.tenant.getMemory(id)).tags).toEqual([]);
}

/** Words that wait to be written anew, since one commit should not write all of them. */
import fs from 'node:fs';
import { expect, test } from 'vitest';
import { LINE_SCHEMAS } from '../../../src/api/schemas/portable.ts';
import { deleteMemory } from '../../../src/engine/commands/erase.ts';
import { importLines } from '../../../src/engine/commands/import-lines.ts';
import { DAY_MS } from '../../../src/engine/dynamics.ts';
import type { PortableLine } from '../../../src/engine/types.ts';
import { cleanAfterErase } from '../../../src/engine/upkeep/clean-after-erase.ts';
import { addsBefore, erasesBefore, patchesTime, undoesFew } from '../../conformance/waiting-words.ts';
import { idsWithWord, openTestEngine, START } from '../../support/engine-fixture.ts';
import { runCommand } from '../../support/run-command.ts';

test.each([
  ['a memory that moves before and after long ones', patchesTime],
  ['a memory that goes from before long ones', erasesBefore],
  ['a new memory before long ones', addsBefore],
  ['undoing what a key did to long memories', undoesFew],
])('%s makes the word index write few of them in a commit', async (_, check) => {
  await using fixture = await openTestEngine();
  expect.hasAssertions();
  await check(fixture);
});

test('the clean-up after a delete also reaches words in a former context of a memory that waits', async () => {
  await using fixture = await openTestEngine();
  const { id } = await fixture.add({ content: 'Zyxwquokka', userId: 'ana', sessionId: 's', eventTime: START });
  // Two come between the first and the last one, and their words are so many that those of the last one wait.
  const lines = [9, 1, 2].map((day) =>
    LINE_SCHEMAS.memory.parse({
      ...{ type: 'memory', user_id: 'ana', session_id: 's', content: `${day} ${'heron '.repeat(120_000)}` },
      ...{ id: crypto.randomUUID(), event_time: new Date(START + day * DAY_MS).toISOString() },
    }),
  ) as PortableLine[];
  for (const line of lines) runCommand(fixture, (context) => importLines(context, { lines: [line] }));
  // As if the process had ended after this commit.
  runCommand(fixture, (context) => deleteMemory(context, { id }));
  expect(idsWithWord(fixture, 'Zyxwquokka')).toHaveLength(1);
  expect(await cleanAfterErase(fixture.maintenance)).toBe(true);
  expect(idsWithWord(fixture, 'Zyxwquokka')).toEqual([]);
  const files = [fixture.file, `${fixture.file}-wal`].filter((name) => fs.existsSync(name));
  expect(files.filter((name) => fs.readFileSync(name).includes('xwquokka'))).toEqual([]);
});

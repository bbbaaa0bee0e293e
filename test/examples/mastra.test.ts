import { expect, test } from 'vitest';
import { checkTypes, isAbsent, runExample } from '../support/run-example.ts';

const isSkipped = isAbsent('mastra');

test.skipIf(isSkipped)('agents of Mastra remember', async () => {
  expect(await runExample('mastra')).toEqual([
    'ok: capture after the reply',
    'ok: one recall for a turn of two steps',
    'ok: tools',
  ]);
});

test.skipIf(isSkipped)('the adapter of Mastra fits its types', () => checkTypes('mastra'));

import { expect, test } from 'vitest';
import { checkTypes, isAbsent, runExample } from '../support/run-example.ts';

const isSkipped = isAbsent('openai-agents');

test.skipIf(isSkipped)('sessions of the OpenAI Agents SDK are kept by a server', async () => {
  expect(await runExample('openai-agents')).toEqual([
    'ok: a conversation over two runs',
    'ok: a run with an approval',
    'ok: transactions',
  ]);
});

test.skipIf(isSkipped)('the adapter of the OpenAI Agents SDK fits its types', () => checkTypes('openai-agents'));

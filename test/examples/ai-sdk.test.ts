import { expect, test } from 'vitest';
import { checkTypes, isAbsent, runExample } from '../support/run-example.ts';

test.skipIf(isAbsent('ai-sdk'))('models of the AI SDK remember, with a server and without one', async () => {
  expect(await runExample('ai-sdk')).toEqual([
    'ok: capture after the reply',
    'ok: one recall for a turn of two steps',
    'ok: stream',
    'ok: tools',
    'ok: a server that is away',
  ]);
});

test.skipIf(isAbsent('ai-sdk'))('the adapter of the AI SDK fits the types of its packages', () => checkTypes('ai-sdk'));

import { expect, test } from 'vitest';
import { checkTypes, isAbsent, runExample } from '../support/run-example.ts';

const isSkipped = isAbsent('claude-memory-tool');

test.skipIf(isSkipped)("the files of Claude's memory tool are kept by a server", async () => {
  expect(await runExample('claude-memory-tool')).toEqual([
    'ok: a run of the tool',
    'ok: the same answers as files on a disk',
    'ok: folders',
  ]);
});

test.skipIf(isSkipped)("the adapter of Claude's memory tool fits its types", () => checkTypes('claude-memory-tool'));

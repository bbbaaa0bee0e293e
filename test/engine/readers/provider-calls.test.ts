import { expect, test } from 'vitest';
import { silentLogger } from '../../../src/engine/ports.ts';
import type { ToThread } from '../../../src/engine/readers/messages.ts';
import { createProviderCalls } from '../../../src/engine/readers/provider-calls.ts';
import { createSharedFiles } from '../../../src/engine/tenant-file/shared-files.ts';

test('a read that nobody waits for any more costs no provider call', async () => {
  const posted: ToThread[] = [];
  let asked = 0;
  const querySourceOf = () => {
    asked += 1;
    return null;
  };
  const calls = createProviderCalls(
    {
      ...{ logger: silentLogger, tracing: null, querySourceOf, languageModel: null, standby: null },
      ...{ onThreadEnd: () => {}, onUnknownWordFormat: () => {} },
      sharedFiles: createSharedFiles({ vectorIndex: 'auto', maxReaders: 1, maxBytes: 1, maxFiles: 1 }),
    },
    { reads: new Map(), post: (message) => void posted.push(message), onFree: () => {} },
  );
  const space = { provider: 'openai', model: 'small', dimensions: 256, encoding: 'float32' } as const;
  await calls.make({ kind: 'call', id: 1, callId: 7, call: { kind: 'embed', space, text: 'harbour' } });
  expect(posted).toMatchObject([{ kind: 'called', callId: 7, outcome: { ok: false, error: { code: 'unavailable' } } }]);
  expect(asked).toBe(0);
});

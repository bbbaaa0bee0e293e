import { expect, onTestFinished, test } from 'vitest';
import { createParserPool } from '../../../src/engine/adapters/parser-pool.ts';
import { runNextDocument } from '../../../src/engine/batches/run-document.ts';
import { STUB_PARSER } from '../../support/ask-parser.ts';
import { openTestEngine } from '../../support/engine-fixture.ts';
import { newDocument, upload } from '../../support/new-document.ts';

test.each(['deleted', 'cancelled'])('a document that is %s while it is read ends its process', async (deed) => {
  const fixture = await openTestEngine();
  onTestFinished(() => fixture.close());
  const started = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<string>();
  const documentParser = createParserPool({
    size: 1,
    timeoutMs: 600_000,
    heapMb: 128,
    entry: STUB_PARSER,
    onStart: started.resolve,
    onExit: ended.resolve,
  });
  onTestFinished(() => documentParser.close());
  // What the stub does with such a file: it never comes back.
  const { document } = await fixture.tenant.addDocument(newDocument(await upload(fixture.tenant, '["loop"]')));
  const reading = runNextDocument({ ...fixture.batch, documentParser }, { alone: false, onClaimed: () => {} });
  await started.promise;
  if (deed === 'deleted') await fixture.tenant.deleteDocument(document.id);
  else await fixture.tenant.cancelDocument(document.id);
  expect(await ended.promise).toBe('aborted');
  expect(await reading).toBe(true);
});

import { expect } from 'vitest';
import { addDocument, replaceDocument } from '../../src/engine/commands/accept-document.ts';
import type { WriteContext } from '../../src/engine/commands/write-context.ts';
import { removeUpload } from '../../src/engine/documents/uploads.ts';
import { failDocument } from '../../src/engine/store/documents.ts';
import { retryJob } from '../../src/engine/store/job-control.ts';
import type { Store } from '../../src/engine/store/open-store.ts';
import { hasUploadParts, putUploadPart } from '../../src/engine/store/upload-parts.ts';
import { removeFailedUploads } from '../../src/engine/steps/remove-uploads.ts';
import type { TestEngine } from '../support/engine-fixture.ts';
import { newDocument, upload } from '../support/new-document.ts';
import { runCommand } from '../support/run-command.ts';

/** Checks that a document whose file was swept away before the commit is refused, and a known one stays as it is. */
export async function refusesGoneFile({ tenant, batch, clock }: TestEngine): Promise<void> {
  const { store } = batch.open();
  const run = (command: (context: WriteContext) => unknown) =>
    runCommand({ store, batch, clock } as unknown as TestEngine, command);
  const document = newDocument(await upload(tenant, 'A ferry leaves.'), { externalId: 'ferries' });
  const { name } = document.source as { readonly name: string };
  removeUpload(store.path, name);
  const gone = expect.objectContaining({ code: 'unavailable' });
  expect(() => run((context) => addDocument(context, { document }))).toThrow(gone);
  // Of a file in rows all that came before the sweep is gone.
  if (hasUploadParts(store)) store.write(() => putUploadPart(store, { name, part: 1, data: Buffer.from('.') }, 0));
  expect(() => run((context) => addDocument(context, { document }))).toThrow(gone);
  expect(await tenant.listDocuments({}, { limit: 1, offset: 0 })).toEqual({ items: [], total: 0 });

  const known = newDocument(await upload(tenant, 'Two ferries leave.'), { externalId: 'ferries' });
  const { id } = (await tenant.addDocument(known)).document;
  const before = await tenant.getDocument(id);
  expect(before.state).toBe('queued');
  expect(() => run((context) => addDocument(context, { document }))).toThrow(gone);
  expect(() => run((context) => replaceDocument(context, { id, document }))).toThrow(gone);
  expect(await tenant.getDocument(id)).toEqual(before);
}

/** Checks that the file of a failed reading stays if its job is tried again just before the file would be removed. */
export async function keepsRetriedFile(fixture: TestEngine): Promise<void> {
  const { tenant, batch, clock } = fixture;
  const { store } = batch.open();
  const { document, jobId } = await tenant.addDocument(newDocument(await upload(tenant, 'A ferry leaves.')));
  store.write(() => {
    store.prepare(`UPDATE jobs SET state = 'dead', finished_at = ? WHERE step = 'ingest'`).run(clock.now());
    const documentNo = store.prepare('SELECT document_no FROM documents').pluck().get() as number;
    failDocument(store, documentNo, { code: 'too_many_crashes', message: 'it ended', now: clock.now() });
  });
  const retried: Store = {
    ...store,
    write(work) {
      store.write(() => retryJob(store, jobId!, clock.now()));
      return store.write(work);
    },
  };
  removeFailedUploads(retried, clock.now() + 1);
  await fixture.drain();
  expect(await tenant.getDocument(document.id)).toMatchObject({ state: 'ready', error: null });
}

/** The files of documents that wait to be read, as rows in PostgreSQL. */
import fs from 'node:fs';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { uploadsFolder } from '../../src/engine/documents/uploads.ts';
import { putUploadPart } from '../../src/engine/store/upload-parts.ts';
import { tendDocuments } from '../../src/engine/upkeep/tend-documents.ts';
import { keepsRetriedFile, refusesGoneFile } from '../conformance/gone-files.ts';
import { openTestEngine } from '../support/engine-fixture.ts';
import { newDocument, upload } from '../support/new-document.ts';
import { startPostgres, type PostgresServer } from '../support/postgres.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** A text that is stored in three parts, and of which one chunk is made. */
const LONG = `# Runbook\n\nRestart the queue first.\n${'\n'.repeat(600_000)}`;

const server = (await startPostgres()) as PostgresServer;
describe.skipIf(server === undefined)('files of documents in PostgreSQL', () => {
  afterAll(() => server?.stop());

  test('wait as rows of parts, and are gone once they were read, were not needed, or were left behind', async () => {
    const database = await server.createSchema();
    const file = path.join(tempFolder(), 'cairn.sqlite');
    await using fixture = await openTestEngine({ file, settings: { OM_DATABASE_URL: database } });
    const { tenant, clock } = fixture;
    const partsOf = async () =>
      (await server.read(database, 'SELECT part, length(data)::int AS bytes FROM upload_parts ORDER BY part')) as {
        part: string;
        bytes: number;
      }[];
    const filesHere = () => (fs.existsSync(uploadsFolder(file)) ? fs.readdirSync(uploadsFolder(file)) : []);
    const document = async (text: string) => newDocument(await upload(tenant, text), { externalId: 'runbook' });

    await tenant.addDocument(await document(LONG));
    const bytes = (await partsOf()).map((part) => part.bytes);
    expect(bytes).toEqual([262_144, 262_144, Buffer.byteLength(LONG) - 2 * 262_144]);
    expect(filesHere()).toEqual([]);
    await fixture.drain();
    const { hits } = await tenant.query({ query: 'What comes first in the runbook?', k: 1, filter: {}, minScore: 0 });
    expect(hits[0]!.memory.content).toContain('Restart the queue first.');
    expect(await partsOf()).toEqual([]);

    expect((await tenant.addDocument(await document(LONG))).outcome).toBe('unchanged');
    expect(await partsOf()).toEqual([]);

    const { jobId } = await tenant.addDocument(await document('# Runbook\n\nRestart the queue last.\n'));
    await tenant.cancelJob(jobId!);
    expect(await partsOf()).toEqual([]);

    const { store } = fixture.maintenance.open();
    const again = async () => (await tenant.addDocument(await document('# Runbook\n\nRestart it twice.\n'))).outcome;
    expect([await again(), await again()]).toEqual(['replaced', 'unchanged']);
    store.write(() => store.prepare('DELETE FROM upload_parts').run());
    expect(await again()).toBe('replaced');
    await fixture.drain();
    expect(await partsOf()).toEqual([]);

    const name = '01a21887-1b20-737e-9d6d-0ba88eac16f3.upload';
    const left = { name, part: 0, data: Buffer.from('left behind') };
    store.write(() => putUploadPart(store, left, clock.now()));
    await tendDocuments(fixture.maintenance);
    expect(await partsOf()).toHaveLength(1);
    clock.advanceDays(1);
    await tendDocuments(fixture.maintenance);
    expect(await partsOf()).toEqual([]);
  });

  test('that are gone before the commit of their document are refused', async () => {
    const settings = { OM_DATABASE_URL: await server.createSchema() };
    await using fixture = await openTestEngine({ file: path.join(tempFolder(), 'cairn.sqlite'), settings });
    await refusesGoneFile(fixture);
  });

  test('that are about to be removed stay if their document is to be read again', async () => {
    const settings = { OM_DATABASE_URL: await server.createSchema() };
    await using fixture = await openTestEngine({ file: path.join(tempFolder(), 'cairn.sqlite'), settings });
    await keepsRetriedFile(fixture);
  });

  test('another tenant’s file is read without a folder of its own', async () => {
    const settings = { OM_DATABASE_URL: await server.createSchema() };
    await using fixture = await openTestEngine({ file: path.join(tempFolder(), 'cairn.sqlite'), settings });
    fixture.engine.control.createTenant('acme');
    const acme = await fixture.engine.tenant('acme');
    const { outcome } = await acme.addDocument(
      newDocument(await upload(acme, '# Note\n\nThe ferry leaves at noon.\n')),
    );
    expect(outcome).toBe('accepted');
  });
});

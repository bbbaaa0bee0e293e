/** Older jobs of a document in PostgreSQL neither delete nor read the file that was handed in for it later. */
import { afterAll, describe } from 'vitest';
import {
  testImportedPageTorso,
  testImportedTorso,
  testOlderDocumentJobs,
  testPageReadAgain,
} from '../conformance/document-jobs.ts';
import { startPostgres } from '../support/postgres.ts';

const server = await startPostgres();
describe.skipIf(server === undefined)('a document that was handed in again', () => {
  afterAll(() => server?.stop());
  testOlderDocumentJobs(async () => ({ OM_DATABASE_URL: await server!.createSchema() }));
  testImportedTorso(async () => ({ OM_DATABASE_URL: await server!.createSchema() }));
  testImportedPageTorso(async () => ({ OM_DATABASE_URL: await server!.createSchema() }));
  testPageReadAgain(async () => ({ OM_DATABASE_URL: await server!.createSchema() }));
});
